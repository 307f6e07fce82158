// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package cardinalityprocessor

import (
	"context"
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"math"
	"math/bits"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"
)

// The ledger is what is saved of the overflow: cumulative outputs with their totals, and members with their last values. A
// restart goes on where it was, so that no increment counts twice, or not at all.
//
// It is written before a flush is sent: of what the next consumer has seen nothing is forgotten, not even by a process that
// is killed. What such a one added up since then nobody has seen, and cumulative inputs say it again. It is closed, and has
// the deltas that could not be sent, when the process ends as it should:
//
//	magic | closed | certain | outputs | rule names | members | those with series of their own | CRC-32
const snapshotLedger = "overflow"

// saveLedger writes the ledger as it is now.
func (p *cardinalityProcessor) saveLedger(ctx context.Context, closed bool) error {
	if p.storage == nil {
		return nil
	}
	if err := p.storage.Set(ctx, snapshotLedger, p.overflow.appendLedger(nil, closed)); err != nil {
		return fmt.Errorf("cannot save the overflow: %w", err)
	}
	return nil
}

// loadLedger goes on with what was saved, and opens it again. It comes after the places.
func (p *cardinalityProcessor) loadLedger(ctx context.Context) (damaged bool, err error) {
	saved, err := p.storage.Get(ctx, snapshotLedger)
	if err != nil {
		return false, fmt.Errorf("cannot read the snapshot: %w", err)
	}
	if len(saved) > 0 && !p.dryRun {
		now := p.limiter.now()
		damaged = p.overflow.restoreLedger(saved, now.epoch()) != nil
		for fp, m := range p.overflow.members {
			if p.limiter.lapse(fp, now, m.own != nil) && m.own == nil {
				p.overflow.grant(fp)
			}
		}
	}
	if p.saveLedger(ctx, false) != nil { // as it will be when it is next written
		p.saveFailure.Add(1)
	}
	return damaged, nil
}

// lapse takes its place from a series that is a member, unless it has it as one: who was killed had no time to note it. It
// has said its value. One that has a series of its own is not among those who left. It says who keeps a place.
func (l *limiter) lapse(fp uint64, now moment, owns bool) (keeps bool) {
	sh := l.series.lock(fp)
	defer sh.mu.Unlock()
	l.groups.mu.Lock()
	defer l.groups.mu.Unlock()
	id, _ := sh.touch(fp, now)
	switch {
	case id == 0 || l.groups.set(id).output:
	case l.groups.set(id).promoted:
		return true
	case owns:
		l.groups.leave(id)
		sh.remove(fp)
	case id != leftValue && id != leftMark:
		l.groups.leave(id)
		sh.assign(fp, leftValue)
		l.groups.pass(leftValue, 1)
	}
	return false
}

func (o *overflow) appendLedger(dst []byte, closed bool) []byte {
	o.mu.Lock()
	defer o.mu.Unlock()
	begin := len(dst)
	dst = appendFlags(append(dst, snapshotMagic...), closed)
	dst = appendTimes(dst, o.certain)
	index := map[*output]uint64{}
	var outputs []*output
	for _, out := range o.order {
		if out.class.keeps() || closed && out.class == classDelta && out.points > 0 {
			index[out] = uint64(len(outputs))
			outputs = append(outputs, out)
		}
	}
	dst = binary.AppendUvarint(dst, uint64(len(outputs)))
	for _, out := range outputs {
		dst = out.append(dst)
	}
	names, rules := []string{}, map[string]uint64{}
	for _, m := range o.members {
		if _, ok := rules[m.limit.name]; !ok {
			rules[m.limit.name] = uint64(len(names))
			names = append(names, m.limit.name)
		}
	}
	dst = binary.AppendUvarint(dst, uint64(len(names)))
	for _, name := range names {
		dst = appendString(dst, name)
	}
	dst = binary.AppendUvarint(dst, uint64(len(o.members)))
	for fp, m := range o.members {
		dst = binary.LittleEndian.AppendUint64(dst, fp)
		dst = binary.AppendUvarint(dst, index[m.output])
		dst = append(binary.AppendUvarint(dst, rules[m.limit.name]), byte(m.reason))
		dst = appendTimes(dst, m.start, m.time)
		last := m.last
		last.cells = m.bounds.coarsen(last.cells, m.output.bounds)
		dst = last.append(dst)
	}
	dst = o.appendOwn(dst)
	return binary.LittleEndian.AppendUint32(dst, crc32.ChecksumIEEE(dst[begin:]))
}

// restoreLedger begins where another process ended. If that was killed, what began before this one may have been counted.
func (o *overflow) restoreLedger(saved []byte, epoch uint32) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.certain = o.begin
	r, err := newReader(saved)
	if err != nil {
		return err
	}
	closed, certain := r.byte() == 1, r.time()
	outputs := make([]*output, r.count(minOutput))
	for i := range outputs {
		out := r.output()
		if out == nil || o.outputs[out.fp] != nil {
			return errSnapshot
		}
		out.seen, out.points = epoch, max(out.points, 1) // who knows whether it was sent
		outputs[i] = out
		o.used += out.cost
		o.outputs[out.fp] = out
		o.install(out)
	}
	limits := make([]*limit, r.count(1))
	for i := range limits {
		limits[i] = &limit{name: r.string()}
	}
	for range r.count(minMember) {
		fp := r.word()
		at, rule, why := r.uvarint(), r.uvarint(), reason(r.byte())
		m := &member{reason: why, seen: epoch, start: r.time(), time: r.time(), last: r.value()}
		if r.err != nil || at >= uint64(len(outputs)) || rule >= uint64(len(limits)) || why >= reasons ||
			o.members[fp] != nil || !outputs[at].keeps(m.last) {
			return errSnapshot
		}
		m.output, m.limit, m.cost = outputs[at], limits[rule], m.last.memberCost()
		m.bounds, m.last.shape = m.output.bounds, m.output.total.shape
		m.output.members++
		o.members[fp] = m
		o.used += m.cost
		m.exact = m.last.shape != shapeHistogram || m.bounds == nil // else it is not known before its next value
	}
	if err := o.restoreOwn(r); err != nil {
		return err
	}
	if closed && r.err == nil {
		o.certain = certain // another one may have been killed earlier
	}
	return r.err
}

// What outputs and members take at least.
const (
	minOutput = 3 + 4*8 + 3 + valueFields
	minMember = 8 + 3 + 2*8 + valueFields

	valueFields = 12
)

func (out *output) append(dst []byte) []byte {
	dst = appendString(appendString(appendString(dst, out.tenant.name), out.tenant.key), out.rule)
	for _, word := range []uint64{out.fp, out.keys.scope, out.keys.metric} {
		dst = binary.LittleEndian.AppendUint64(dst, word)
	}
	dst = appendTimes(dst, out.start)
	dst = binary.AppendUvarint(appendFlags(dst, out.sent), uint64(out.points))
	var to pmetric.ProtoMarshaler
	data, _ := to.MarshalMetrics(out.data) // it never fails
	dst = append(binary.AppendUvarint(dst, uint64(len(data))), data...)
	return out.total.append(dst)
}

// output returns nil if it is none.
func (r *reader) output() *output {
	out := &output{tenant: tenant{name: r.string(), key: r.string()}, rule: r.string()}
	out.fp, out.keys.scope, out.keys.metric = r.word(), r.word(), r.word()
	out.start = r.time()
	out.sent, out.points = r.byte() == 1, int(min(r.uvarint(), math.MaxInt32))
	data := r.bytes(r.count(1))
	out.total = r.value()
	if r.err != nil {
		return nil
	}
	if out.data, out.metric = onlyPoint(data); out.metric == (pmetric.Metric{}) {
		return nil
	}
	out.class = classOf(out.metric)
	if out.metric.Type() == pmetric.MetricTypeHistogram {
		if upper := out.metric.Histogram().DataPoints().At(0).ExplicitBounds().AsRaw(); len(upper) > 0 {
			out.bounds = &bounds{upper: upper}
		}
	}
	out.total.shape = shapeOf(out.metric)
	if out.class == classGauge || !out.keeps(out.total) {
		return nil
	}
	out.cost = out.weight(len(data))
	return out
}

// onlyPoint reads data with one point. Its metric is the zero value if it is something else.
func onlyPoint(data []byte) (md pmetric.Metrics, m pmetric.Metric) {
	var from pmetric.ProtoUnmarshaler
	md, err := from.UnmarshalMetrics(data)
	if err != nil || md.ResourceMetrics().Len() != 1 || md.ResourceMetrics().At(0).ScopeMetrics().Len() != 1 ||
		md.MetricCount() != 1 || md.DataPointCount() != 1 {
		return md, m
	}
	return md, md.ResourceMetrics().At(0).ScopeMetrics().At(0).Metrics().At(0)
}

// keeps says whether a value may be added to those of the output.
func (out *output) keeps(v value) bool {
	return len(v.cells) == 0 || out.bounds != nil && len(v.cells) == len(out.bounds.upper)+1
}

func (v *value) append(dst []byte) []byte {
	dst = binary.AppendVarint(appendFlags(dst, v.isFloat, !v.hasSum), v.integer)
	dst = binary.AppendUvarint(binary.AppendUvarint(dst, v.count), v.zero)
	for _, f := range []float64{v.float + v.carry, v.sum, v.zeroThreshold} {
		dst = binary.AppendUvarint(dst, bits.ReverseBytes64(math.Float64bits(f))) // short if it is a small integer
	}
	dst = binary.AppendVarint(dst, int64(v.scale))
	dst = binary.AppendVarint(binary.AppendVarint(dst, v.positive.offset), v.negative.offset)
	for _, counts := range [][]uint64{v.cells, v.positive.counts, v.negative.counts} {
		dst = binary.AppendUvarint(dst, uint64(len(counts)))
		for _, n := range counts {
			dst = binary.AppendUvarint(dst, n)
		}
	}
	return dst
}

func (r *reader) value() value {
	var v value
	flags := r.byte()
	v.isFloat, v.hasSum = flags&1 != 0, flags&2 == 0
	v.integer, v.count, v.zero = r.varint(), r.uvarint(), r.uvarint()
	for _, f := range []*float64{&v.float, &v.sum, &v.zeroThreshold} {
		*f = math.Float64frombits(bits.ReverseBytes64(r.uvarint()))
	}
	scale := r.varint()
	v.positive.offset, v.negative.offset = r.varint(), r.varint()
	v.scale = int32(scale)
	v.cells, v.positive.counts, v.negative.counts = r.counts(), r.counts(), r.counts()
	for _, b := range []buckets{v.positive, v.negative} {
		if b.offset != int64(int32(b.offset)) || len(b.counts) > maxBuckets || scale != int64(v.scale) {
			r.rest, r.err = nil, errSnapshot
		}
	}
	return v
}

func (r *reader) counts() []uint64 {
	var counts []uint64 // nil is none
	for range r.count(1) {
		counts = append(counts, r.uvarint())
	}
	return counts
}

func (r *reader) string() string { return string(r.bytes(r.count(1))) }

func (r *reader) time() pcommon.Timestamp { return pcommon.Timestamp(r.word()) }

func appendTimes(dst []byte, times ...pcommon.Timestamp) []byte {
	for _, t := range times {
		dst = binary.LittleEndian.AppendUint64(dst, uint64(t))
	}
	return dst
}

func appendString(dst []byte, s string) []byte {
	return append(binary.AppendUvarint(dst, uint64(len(s))), s...)
}

// appendFlags appends up to eight of them in one byte.
func appendFlags(dst []byte, flags ...bool) []byte {
	var b byte
	for i, set := range flags {
		if set {
			b |= 1 << i
		}
	}
	return append(dst, b)
}
