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
	if err := p.storage.Set(ctx, snapshotLedger, p.overflow.sealedLedger(closed)); err != nil {
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
		for i := range p.overflow.shards {
			for fp, m := range p.overflow.shards[i].members { // nobody else is here yet
				if p.limiter.lapse(fp, now, m.own != nil) && m.own == nil {
					p.overflow.grant(fp)
				}
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

// sealedLedger goes from shard to shard: what the members of one have said is what its subtotals of the outputs have, at any time. Only
// bounds must not change on the way; when they have, it begins anew, and holds all the third time.
func (o *overflow) sealedLedger(closed bool) []byte {
	o.flushing.Lock()
	defer o.flushing.Unlock()
	for range 2 {
		if l := o.ledger(closed); l.whole() {
			return o.seal(l, closed)
		}
	}
	order := o.ordered()
	o.lockAll()
	defer o.unlockAll()
	l := newLedger(order, closed)
	for i := range o.shards {
		l.add(o, i)
	}
	return o.seal(l, closed)
}

// ledger is what is noted of the overflow before it is written.
type ledger struct {
	outputs []*output // deltas come last
	bounds  []*bounds // of these, when it was begun
	index   map[*output]uint64
	names   []string // of rules
	rules   map[string]uint64
	members []byte
	n       uint64
	own     []byte
	owning  uint64
}

// newLedger begins one, of outputs that were added to and whose total is kept, or that are sent by who comes next.
func newLedger(order []*output, closed bool) *ledger {
	l := &ledger{index: map[*output]uint64{}, rules: map[string]uint64{}}
	for _, deltas := range []bool{false, closed} {
		for _, out := range order {
			if out.begun.Load() && (!deltas && out.class.keeps() || deltas && out.class == classDelta) {
				out.sum = summed{bounds: out.bounds.Load()}
				l.index[out] = uint64(len(l.outputs))
				l.outputs, l.bounds = append(l.outputs, out), append(l.bounds, out.sum.bounds)
			}
		}
		if !closed {
			break
		}
	}
	return l
}

func (o *overflow) ledger(closed bool) *ledger {
	l := newLedger(o.ordered(), closed)
	for i := range o.shards {
		o.noteShard(l, i)
	}
	return l
}

func (o *overflow) noteShard(l *ledger, i int) {
	sh := &o.shards[i]
	sh.mu.Lock()
	defer sh.mu.Unlock()
	l.add(o, i)
}

// add notes a shard, whose lock is held.
func (l *ledger) add(o *overflow, i int) {
	for _, out := range l.outputs {
		if p := out.subtotals[i]; p != nil {
			out.sum.add(out, p, false)
		}
	}
	for fp, m := range o.shards[i].members {
		at, ok := l.index[m.output]
		if !ok { // it came meanwhile
			continue
		}
		rule, ok := l.rules[m.limit.name]
		if !ok {
			rule = uint64(len(l.names))
			l.rules[m.limit.name] = rule
			l.names = append(l.names, m.limit.name)
		}
		l.n++
		l.members = binary.AppendUvarint(binary.LittleEndian.AppendUint64(l.members, fp), at)
		l.members = append(binary.AppendUvarint(l.members, rule), byte(m.reason))
		l.members = appendTimes(l.members, m.start, m.time)
		last := m.last
		last.cells = m.bounds.coarsen(last.cells, m.output.sum.bounds)
		l.members = last.append(l.members)
		if m.own != nil {
			l.owning++
			l.own = m.appendOwn(l.own, fp)
		}
	}
}

// whole says whether the bounds of all are what they were when it was begun.
func (l *ledger) whole() bool {
	for i, out := range l.outputs {
		if out.bounds.Load() != l.bounds[i] {
			return false
		}
	}
	return true
}

// seal writes what was noted.
func (o *overflow) seal(l *ledger, closed bool) []byte {
	dst := appendFlags([]byte(snapshotMagic), closed)
	dst = appendTimes(dst, o.certain)
	outputs, told := uint64(0), []byte(nil)
	for _, out := range l.outputs {
		if !out.class.keeps() && out.sum.points == 0 { // and nobody is a member
			continue
		}
		outputs++
		told = out.append(told)
	}
	dst = append(binary.AppendUvarint(dst, outputs), told...)
	dst = binary.AppendUvarint(dst, uint64(len(l.names)))
	for _, name := range l.names {
		dst = appendString(dst, name)
	}
	dst = append(binary.AppendUvarint(dst, l.n), l.members...)
	dst = append(binary.AppendUvarint(dst, l.owning), l.own...)
	return binary.LittleEndian.AppendUint32(dst, crc32.ChecksumIEEE(dst))
}

// restoreLedger begins where another process ended. If that was killed, what began before this one may have been counted. It is
// for a processor that has not started.
func (o *overflow) restoreLedger(saved []byte, epoch uint32) error {
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
		o.reinstall(out, epoch)
		outputs[i] = out
	}
	limits := make([]*limit, r.count(1))
	for i := range limits {
		limits[i] = &limit{name: r.string()}
	}
	for range r.count(minMember) {
		fp := r.word()
		at, rule, why := r.uvarint(), r.uvarint(), reason(r.byte())
		m := &member{reason: why, seen: epoch, start: r.time(), time: r.time(), last: r.value()}
		shard := o.shardOf(fp)
		sh := &o.shards[shard]
		if r.err != nil || at >= uint64(len(outputs)) || rule >= uint64(len(limits)) || why >= reasons ||
			sh.members[fp] != nil || !outputs[at].keeps(m.last) {
			return errSnapshot
		}
		m.output, m.limit, m.cost = outputs[at], limits[rule], m.last.memberCost()
		m.bounds, m.last.shape = m.output.bounds.Load(), m.output.form
		m.output.subtotal(shard).members++
		sh.members[fp] = m
		o.all.used.Add(m.cost)
		m.output.account.used.Add(m.cost)
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

// reinstall gives an output that was saved its place. All that it has said is its first subtotal's.
func (o *overflow) reinstall(out *output, epoch uint32) {
	out.subtotals = make([]*subtotal, len(o.shards))
	out.cost += subtotalSize * int64(len(o.shards))
	p := out.subtotal(0)
	p.total, p.points, p.seen = out.sum.total, max(out.sum.points, 1), epoch // who knows whether it was sent
	out.since = out.start
	out.account = o.accountOf(out.rule, out.tenant.name)
	out.begun.Store(true)
	out.summed.Store(p.total.hasSum)
	o.all.used.Add(out.cost)
	out.account.used.Add(out.cost)
	o.install(out)
}

// What outputs and members take at least.
const (
	minOutput = 3 + 4*8 + 3 + valueFields
	minMember = 8 + 3 + 2*8 + valueFields

	valueFields = 12
)

func (out *output) append(dst []byte) []byte {
	dst = appendString(appendTenant(dst, out.tenant), out.rule)
	for _, word := range []uint64{out.fp, out.keys.scope, out.keys.metric} {
		dst = binary.LittleEndian.AppendUint64(dst, word)
	}
	dst = appendTimes(dst, out.start)
	dst = binary.AppendUvarint(appendFlags(dst, out.sent), uint64(out.sum.points))
	if out.form == shapeHistogram {
		setBounds(out.metric, out.sum.bounds)
	}
	var to pmetric.ProtoMarshaler
	data, _ := to.MarshalMetrics(out.data) // it never fails
	dst = append(binary.AppendUvarint(dst, uint64(len(data))), data...)
	return out.sum.total.append(dst)
}

// output returns nil if it is none.
func (r *reader) output() *output {
	out := &output{tenant: r.tenant(), rule: r.string()}
	out.fp, out.keys.scope, out.keys.metric = r.word(), r.word(), r.word()
	out.start = r.time()
	out.sent, out.sum.points = r.byte() == 1, int(min(r.uvarint(), math.MaxInt32))
	data := r.bytes(r.count(1))
	total := r.value()
	if r.err != nil {
		return nil
	}
	if out.data, out.metric = onlyPoint(data); out.metric == (pmetric.Metric{}) {
		return nil
	}
	out.class = classOf(out.metric)
	if out.metric.Type() == pmetric.MetricTypeHistogram {
		if upper := out.metric.Histogram().DataPoints().At(0).ExplicitBounds().AsRaw(); len(upper) > 0 {
			out.bounds.Store(&bounds{upper: upper})
		}
	}
	out.form = shapeOf(out.metric)
	if total.shape = out.form; out.class == classGauge || !out.keeps(total) {
		return nil
	}
	out.sum.total = total
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
	in := out.bounds.Load()
	return len(v.cells) == 0 || in != nil && len(v.cells) == len(in.upper)+1
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
