// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package cardinalityprocessor

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"maps"
	"slices"
	"strconv"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/extension/xextension/storage"
	"go.uber.org/zap"
)

// A snapshot keeps who has a place, so that a restart does not run the race for places again. It has parts, by the first
// bits of fingerprints, which are saved each by itself, with the groups their series are in. Any mixture of old and new
// parts is as good:
//
//	magic | rule names | sets: kind, groups: (rule<<1 | party, key) | for each set its fingerprints | series, then values | CRC-32
//
// The limits by which all of that was counted are saved beside it. When the rules changed in between, what was saved
// counts as admitted under earlier rules.

const (
	snapshotMagic  = "godwit cardinality 3\n" // changes with the format and with the way fingerprints are made
	snapshotLimits = "limits"

	partBits  = minShardBits
	partCount = minShards
)

var (
	errSnapshot  = errors.New("snapshot is damaged")
	errNoStorage = errors.New("it is not configured, or not a storage extension")
)

func snapshotKey(part int) string { return "shard" + strconv.Itoa(part) }

// eachOf calls f for the entries of one part: of those of its own shards, and of shards that these are, or were just now,
// one with. Entries only move on to later ones, so none is missed, but one may come twice.
func (t *table) eachOf(part int, f func(fp uint64, set uint32)) {
	n := len(t.shards) / partCount
	begin := part * n
	each := func(shard int) {
		t.shards[shard].each(func(fp uint64, set uint32) {
			if fp>>(64-partBits) == uint64(part) {
				f(fp, set)
			}
		})
	}
	for width := t.widths[begin].Load(); width > 0; width-- {
		if begin>>(width-1)&1 != 0 {
			each(begin >> width << width)
		}
	}
	for shard := begin; shard < begin+n; shard++ {
		each(shard)
	}
}

// openStorage returns the client of the storage extension, which is for one instance: that of a pipeline, or of all.
func openStorage(ctx context.Context, host component.Host, id, owner component.ID, of string) (storage.Client, error) {
	extension, ok := host.GetExtensions()[id].(storage.Extension)
	if !ok {
		return nil, fmt.Errorf("cannot use `storage` %q: %w", id, errNoStorage)
	}
	client, err := extension.GetClient(ctx, component.KindProcessor, owner, of)
	if err != nil {
		return nil, fmt.Errorf("cannot open `storage` %q: %w", id, err)
	}
	return client, nil
}

// save writes all parts, one after the other. Batches go on meanwhile.
func (p *cardinalityProcessor) save(ctx context.Context) error {
	p.rules.RLock()
	policy := p.policy
	p.rules.RUnlock()
	if err := p.storage.Set(ctx, snapshotLimits, p.limiter.appendLimits(nil, policy)); err != nil {
		return fmt.Errorf("cannot save the limits: %w", err)
	}
	var buf []byte
	for i := range partCount {
		buf = p.limiter.appendPart(buf[:0], i)
		if err := p.storage.Set(ctx, snapshotKey(i), buf); err != nil {
			return fmt.Errorf("cannot save part %d of %d (%d bytes): %w", i, partCount, len(buf), err)
		}
	}
	return nil
}

// load restores what was saved. What is damaged is left out: its series have to find a place again.
func (p *cardinalityProcessor) load(ctx context.Context) error {
	limits, err := p.storage.Get(ctx, snapshotLimits)
	if err != nil {
		return fmt.Errorf("cannot read the snapshot: %w", err)
	}
	damaged := 0
	for i := range partCount {
		saved, err := p.storage.Get(ctx, snapshotKey(i))
		if err != nil {
			return fmt.Errorf("cannot read the snapshot: %w", err)
		}
		if len(saved) > 0 && p.limiter.restorePart(i, saved) != nil {
			damaged++
		}
	}
	known, err := parseLimits(limits)
	if err != nil {
		damaged++
	}
	for _, load := range []func(context.Context) (bool, error){p.loadLedger, p.loadFeeders} {
		if bad, err := load(ctx); err != nil {
			return err
		} else if bad {
			damaged++
		}
	}
	if p.storage.foreign > 0 {
		p.logger.Warn("The snapshot is of another key or of an earlier version, and left out", zap.Int("parts", p.storage.foreign))
	}
	if damaged > 0 {
		p.logger.Warn("Parts of the snapshot are damaged and left out", zap.Int("parts", damaged))
	}
	p.policy = &policy{known: known} // what is in force now comes next
	return nil
}

// appendLimits appends the bounds by which all series are counted.
func (l *limiter) appendLimits(dst []byte, p *policy) []byte {
	l.groups.mu.Lock()
	defer l.groups.mu.Unlock()
	oldest := min(p.generation, l.groups.oldest)
	begin := len(dst)
	dst = append(dst, snapshotMagic...)
	bounds := p.bounds()
	for _, key := range slices.Sorted(maps.Keys(bounds)) {
		if bounds[key] <= oldest {
			dst = binary.LittleEndian.AppendUint64(dst, key)
		}
	}
	return binary.LittleEndian.AppendUint32(dst, crc32.ChecksumIEEE(dst[begin:]))
}

func parseLimits(saved []byte) (map[uint64]uint32, error) {
	if len(saved) == 0 {
		return nil, nil
	}
	r, err := newReader(saved)
	if err != nil {
		return nil, err
	}
	known := map[uint64]uint32{}
	for len(r.rest) > 0 && r.err == nil {
		known[r.word()] = 0
	}
	return known, r.err
}

// appendPart appends one part of both tables.
func (l *limiter) appendPart(dst []byte, part int) []byte {
	begin := len(dst)
	dst = append(dst, snapshotMagic...)
	for _, t := range []*table{l.series, l.values} {
		members := map[*set][]uint64{} // not by id: that may be another's by the next shard
		var sets []*set
		t.eachOf(part, func(fp uint64, id uint32) {
			s := l.groups.set(id)
			if members[s] == nil {
				sets = append(sets, s)
			}
			members[s] = append(members[s], fp)
		})
		names, index := []string{}, map[string]int{}
		for _, s := range sets {
			for _, g := range s.groups {
				if _, ok := index[g.rule]; !ok {
					index[g.rule] = len(names)
					names = append(names, g.rule)
				}
			}
		}
		dst = binary.AppendUvarint(dst, uint64(len(names)))
		for _, name := range names {
			dst = append(binary.AppendUvarint(dst, uint64(len(name))), name...)
		}
		dst = binary.AppendUvarint(dst, uint64(len(sets)))
		for _, s := range sets {
			dst = append(dst, s.byte())
			dst = binary.AppendUvarint(dst, uint64(len(s.groups)))
			for _, g := range s.groups {
				rule := uint64(index[g.rule]) << 1
				if g.party != nil {
					rule |= 1
				}
				dst = binary.AppendUvarint(dst, rule)
				dst = binary.LittleEndian.AppendUint64(dst, g.key)
			}
			dst = binary.AppendUvarint(dst, uint64(len(members[s])))
			for _, fp := range members[s] {
				dst = binary.LittleEndian.AppendUint64(dst, fp)
			}
		}
	}
	return binary.LittleEndian.AppendUint32(dst, crc32.ChecksumIEEE(dst[begin:]))
}

func (k setKind) byte() (b byte) {
	if k.labelled {
		b |= 1
	}
	if k.values {
		b |= 2
	}
	if k.output {
		b |= 4
	}
	if k.promoted {
		b |= 64
	}
	return b | byte(k.left<<3)
}

func kindOfByte(b byte) setKind {
	return setKind{labelled: b&1 != 0, values: b&2 != 0, output: b&4 != 0, promoted: b&64 != 0, left: uint32(b >> 3 & 7)}
}

// restorePart admits what was saved. Its silence is counted from now on.
func (l *limiter) restorePart(part int, saved []byte) error {
	r, err := newReader(saved)
	if err != nil {
		return err
	}
	for _, t := range []*table{l.series, l.values} {
		limits := make([]*limit, r.count(1))
		for i := range limits {
			limits[i] = &limit{name: string(r.bytes(r.count(1)))}
		}
		for range r.count(3) {
			kind := kindOfByte(r.byte())
			if kind.values = t == l.values; kind.left > leftLast || kind.values && kind.left > 0 {
				return errSnapshot
			}
			places := make([]place, r.count(9))
			for i := range places {
				name := r.uvarint()
				if name>>1 >= uint64(len(limits)) {
					return errSnapshot
				}
				places[i] = place{limit: limits[name>>1], terms: &terms{}, key: r.word(), party: name&1 != 0}
			}
			for range r.count(8) {
				if fp := r.word(); r.err == nil && fp >= 2 && fp>>(64-partBits) == uint64(part) {
					l.restore(t, fp, places, kind)
				}
			}
		}
	}
	return r.err
}

// restore admits one member, into a set of the generation before the first.
func (l *limiter) restore(t *table, fp uint64, places []place, kind setKind) {
	sh := t.lock(fp)
	defer sh.mu.Unlock()
	l.groups.mu.Lock()
	defer l.groups.mu.Unlock()
	now := l.now()
	id, _ := sh.touch(fp, now)
	switch {
	case id != 0:
	case kind.left != 0:
		sh.insert(fp, kind.left, now)
		l.groups.pass(kind.left, 1)
	case !l.groups.exhausted():
		sh.insert(fp, l.groups.join(0, places, kind, 0), now)
	}
}

// reader takes a snapshot apart. After an error everything it returns is zero.
type reader struct {
	rest []byte
	err  error
}

func newReader(saved []byte) (*reader, error) {
	n := len(saved) - crc32.Size
	if n < len(snapshotMagic) || string(saved[:len(snapshotMagic)]) != snapshotMagic ||
		crc32.ChecksumIEEE(saved[:n]) != binary.LittleEndian.Uint32(saved[n:]) {
		return nil, errSnapshot
	}
	return &reader{rest: saved[len(snapshotMagic):n]}, nil
}

func (r *reader) bytes(n int) []byte {
	if n > len(r.rest) {
		r.rest, r.err = nil, errSnapshot
		return nil
	}
	b := r.rest[:n]
	r.rest = r.rest[n:]
	return b
}

func (r *reader) byte() byte {
	if b := r.bytes(1); b != nil {
		return b[0]
	}
	return 0
}

func (r *reader) word() uint64 {
	if b := r.bytes(8); b != nil {
		return binary.LittleEndian.Uint64(b)
	}
	return 0
}

func (r *reader) uvarint() uint64 {
	v, n := binary.Uvarint(r.rest)
	if n <= 0 {
		r.rest, r.err = nil, errSnapshot
		return 0
	}
	r.rest = r.rest[n:]
	return v
}

func (r *reader) varint() int64 {
	v, n := binary.Varint(r.rest)
	if n <= 0 {
		r.rest, r.err = nil, errSnapshot
		return 0
	}
	r.rest = r.rest[n:]
	return v
}

// count reads a number of things, each of which takes at least so many bytes.
func (r *reader) count(size int) int {
	n := r.uvarint()
	if n > uint64(len(r.rest)/size) {
		r.rest, r.err = nil, errSnapshot
		return 0
	}
	return int(n)
}
