// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package series

import (
	"encoding/binary"
	"hash/crc32"
	"maps"
	"slices"

	"github.com/godwit-otel/godwit/processor/cardinalityprocessor/internal/policy"
	"github.com/godwit-otel/godwit/processor/cardinalityprocessor/internal/store"
)

// A snapshot has the series that have a place, so that a restart does not repeat the race for places. It has parts, by
// the first bits of fingerprints, each saved separately, with the groups that their series are in. Any mixture of old
// and new parts is valid:
//
//	magic | rule names | sets: kind, groups: (rule<<1 | party, key) | for each set its fingerprints | series, then values | CRC-32
//
// The limits by which all of that was counted are saved beside it. If the rules have changed in between, what was saved
// counts as admitted under earlier rules.

// There are as many parts as there are shards at least.
const (
	partBits  = MinShardBits
	PartCount = MinShards
)

// eachOf calls f for the entries of one part: those in its own shards, and in shards that these are, or just were,
// united with. Entries only move to later shards, so none is missed, but one may come twice.
func (t *Table) eachOf(part int, f func(fp uint64, set uint32)) {
	n := len(t.Shards) / PartCount
	begin := part * n
	each := func(shard int) {
		t.Shards[shard].Each(func(fp uint64, set uint32) {
			if fp>>(64-partBits) == uint64(part) {
				f(fp, set)
			}
		})
	}
	for width := t.Widths[begin].Load(); width > 0; width-- {
		if begin>>(width-1)&1 != 0 {
			each(begin >> width << width)
		}
	}
	for shard := begin; shard < begin+n; shard++ {
		each(shard)
	}
}

// AppendLimits appends the bounds by which all series are counted.
func (l *Limiter) AppendLimits(dst []byte, p *policy.Policy) []byte {
	l.Groups.Mu.Lock()
	defer l.Groups.Mu.Unlock()
	oldest := min(p.Generation, l.Groups.oldest)
	begin := len(dst)
	dst = append(dst, store.Magic...)
	bounds := p.Bounds()
	for _, key := range slices.Sorted(maps.Keys(bounds)) {
		if bounds[key] <= oldest {
			dst = binary.LittleEndian.AppendUint64(dst, key)
		}
	}
	return binary.LittleEndian.AppendUint32(dst, crc32.ChecksumIEEE(dst[begin:]))
}

// ParseLimits parses what AppendLimits wrote.
func ParseLimits(saved []byte) (map[uint64]uint32, error) {
	if len(saved) == 0 {
		return nil, nil
	}
	r, err := store.NewReader(saved)
	if err != nil {
		return nil, err
	}
	known := map[uint64]uint32{}
	for len(r.Rest) > 0 && r.Err == nil {
		known[r.Word()] = 0
	}
	return known, r.Err
}

// AppendPart appends one part of both tables.
func (l *Limiter) AppendPart(dst []byte, part int) []byte {
	begin := len(dst)
	dst = append(dst, store.Magic...)
	for _, t := range []*Table{l.Series, l.Values} {
		members := map[*Set][]uint64{} // not by id, which may be another set's by the next shard
		var sets []*Set
		t.eachOf(part, func(fp uint64, id uint32) {
			s := l.Groups.Set(id)
			if members[s] == nil {
				sets = append(sets, s)
			}
			members[s] = append(members[s], fp)
		})
		names, index := []string{}, map[string]int{}
		for _, s := range sets {
			for _, g := range s.Groups {
				if _, ok := index[g.Rule]; !ok {
					index[g.Rule] = len(names)
					names = append(names, g.Rule)
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
			dst = binary.AppendUvarint(dst, uint64(len(s.Groups)))
			for _, g := range s.Groups {
				rule := uint64(index[g.Rule]) << 1
				if g.Party != nil {
					rule |= 1
				}
				dst = binary.AppendUvarint(dst, rule)
				dst = binary.LittleEndian.AppendUint64(dst, g.Key)
			}
			dst = binary.AppendUvarint(dst, uint64(len(members[s])))
			for _, fp := range members[s] {
				dst = binary.LittleEndian.AppendUint64(dst, fp)
			}
		}
	}
	return binary.LittleEndian.AppendUint32(dst, crc32.ChecksumIEEE(dst[begin:]))
}

func (k SetKind) byte() (b byte) {
	if k.labelled {
		b |= 1
	}
	if k.values {
		b |= 2
	}
	if k.Output {
		b |= 4
	}
	if k.Promoted {
		b |= 64
	}
	return b | byte(k.left<<3)
}

func kindOfByte(b byte) SetKind {
	return SetKind{labelled: b&1 != 0, values: b&2 != 0, Output: b&4 != 0, Promoted: b&64 != 0, left: uint32(b >> 3 & 7)}
}

// RestorePart admits what was saved. Its silence counts from now on.
func (l *Limiter) RestorePart(part int, saved []byte) error {
	r, err := store.NewReader(saved)
	if err != nil {
		return err
	}
	for _, t := range []*Table{l.Series, l.Values} {
		limits := make([]*policy.Limit, r.Count(1))
		for i := range limits {
			limits[i] = &policy.Limit{Name: string(r.Bytes(r.Count(1)))}
		}
		for range r.Count(3) {
			kind := kindOfByte(r.Byte())
			if kind.values = t == l.Values; kind.left > LeftLast || kind.values && kind.left > 0 {
				return store.ErrDamaged
			}
			places := make([]Place, r.Count(9))
			for i := range places {
				name := r.Uvarint()
				if name>>1 >= uint64(len(limits)) {
					return store.ErrDamaged
				}
				places[i] = Place{Limit: limits[name>>1], Terms: &policy.Terms{}, Key: r.Word(), party: name&1 != 0}
			}
			for range r.Count(8) {
				if fp := r.Word(); r.Err == nil && fp >= 2 && fp>>(64-partBits) == uint64(part) {
					l.restore(t, fp, places, kind)
				}
			}
		}
	}
	return r.Err
}

// restore admits one member, into a set of a generation before the first.
func (l *Limiter) restore(t *Table, fp uint64, places []Place, kind SetKind) {
	sh := t.Lock(fp)
	defer sh.Mu.Unlock()
	l.Groups.Mu.Lock()
	defer l.Groups.Mu.Unlock()
	now := l.Now()
	id, _ := sh.touch(fp, Nowhere, now.EpochOf(fp))
	switch {
	case id != 0:
	case kind.left != 0:
		sh.Insert(fp, kind.left, now)
		l.Groups.pass(kind.left, 1)
	case !l.Groups.exhausted():
		sh.Insert(fp, l.Groups.Join(0, places, kind, 0), now)
	}
}
