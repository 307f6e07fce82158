// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package cardinalityprocessor

import (
	"encoding/binary"
	"math"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"
)

// The way back. A cumulative series that was added to an overflow series cannot just go on by itself when there is room: its
// value says once more what has been counted there. So it begins anew: with the time of the last value that was added for a
// start, and from there on with what it has grown by since. Overflow series and its own then say together what it says.
//
// It asks for a place with its points, once in an epoch, and is added up as before while it has one but has not begun. It
// begins with a flush, after the ledger was written that has the value it is counted from. A process that is killed at any
// time thus knows of it if anybody else does. docs/design/023 has what else was considered.

// own is from where on a member says by itself what it grows by.
type own struct {
	base   value // what was said of it elsewhere
	bounds *bounds
	since  pcommon.Timestamp
	noted  bool // the ledger has it; until then the member waits
}

// ownCost is what it takes beside the buckets, which move from the member.
const ownCost = 320

// view is a member as the batch at hand sees it: with what the batch has said before.
type view struct {
	member      *member
	limit       *limit
	reason      reason
	start, time pcommon.Timestamp
	last        value
	bounds      *bounds // of last
	exact       bool
	pinned      bool
	own         *own
	noted       bool
}

// view returns what is known of a member.
func (o *overflow) view(fp uint64) view {
	sh := o.lock(fp)
	defer sh.mu.Unlock()
	m := sh.members[fp]
	if m == nil {
		return view{}
	}
	return view{
		member: m, limit: m.limit, reason: m.reason, start: m.start, time: m.time, last: m.last, bounds: m.bounds, exact: m.exact,
		pinned: m.pins > 0, own: m.own, noted: m.own != nil && m.own.noted,
	}
}

// grant notes that a member has a place.
func (o *overflow) grant(fp uint64) {
	sh := o.lock(fp)
	defer sh.mu.Unlock()
	if m := sh.members[fp]; m != nil && m.own == nil && !m.granted {
		m.granted = true
		sh.granted = append(sh.granted, fp)
	}
}

// promoted are members that begin anew, by shard.
type promoted [][]*member

func (p promoted) len() (n int) {
	for _, some := range p {
		n += len(some)
	}
	return n
}

// promote has members that were granted a place begin anew, as soon as it is noted.
func (o *overflow) promote(placed func(fp uint64) bool) promoted {
	all := make(promoted, len(o.shards))
	for i := range o.shards {
		all[i] = o.promoteSome(&o.shards[i], placed)
	}
	return all
}

func (o *overflow) promoteSome(sh *overflowShard, placed func(fp uint64) bool) (all []*member) {
	sh.mu.Lock()
	defer sh.mu.Unlock()
	wait := sh.granted[:0]
	for _, fp := range sh.granted {
		m := sh.members[fp]
		switch {
		case m == nil || !m.granted:
		case m.own != nil || !placed(fp):
			m.granted = false
		case m.rests || !m.exact || m.pins > 0 || o.all.used.Load()+o.all.staged.Load()+ownCost > o.budget || !o.grow(m.output.account, ownCost):
			wait = append(wait, fp)
		default:
			m.granted = false
			m.own = &own{base: m.last, bounds: m.bounds, since: m.time}
			m.last = m.last.scalar()
			m.cost += ownCost
			sh.owning++
			all = append(all, m)
		}
	}
	clear(sh.granted[len(wait):])
	sh.granted = wait
	return all
}

// confirm lets them begin, or go on as before if it could not be noted.
func (o *overflow) confirm(all promoted, noted bool) {
	for i, some := range all {
		if len(some) > 0 {
			o.confirmSome(&o.shards[i], some, noted)
		}
	}
}

func (o *overflow) confirmSome(sh *overflowShard, some []*member, noted bool) {
	sh.mu.Lock()
	defer sh.mu.Unlock()
	for _, m := range some {
		if m.own == nil || m.gone {
			continue
		}
		if noted {
			m.own.noted = true
			continue
		}
		m.last = m.own.base
		sh.disown(m)
		if m.rests {
			o.restMore(sh, m.output.account, -ownCost)
		}
		m.cost -= ownCost
		o.shrink(m.output.account, ownCost)
	}
}

// disown ends what a member has of its own.
func (sh *overflowShard) disown(m *member) {
	if m.own != nil && !m.rests {
		sh.owning--
	}
	m.own = nil
}

// stageOwn notes what a series of its own says. With demoted it was the last time.
func (o *overflow) stageOwn(s *staged, v *view, add *addition, said *bucketed) {
	i := o.shardOf(add.fp)
	sh := &o.shards[i]
	sh.mu.Lock()
	defer sh.mu.Unlock()
	add.member, add.output, add.limit, add.reason, add.passes = v.member, v.member.output, v.limit, v.reason, true
	s.append(add, add.output.subtotal(i), said)
}

// own notes what was said.
func (x *settling) own() {
	o, m, out := x.overflow, x.addition.member, x.output
	switch {
	case m.gone || m.own == nil: // another batch came first
		return
	case x.noValue:
		if !m.rests {
			o.rest(x.shard, x.fp, m)
		}
		return
	case x.time <= m.time:
		return
	}
	if m.rests {
		o.wake(x.shard, x.fp, m)
	}
	v, of := x.value(x.addition, out.form)
	m.time, m.seen = min(x.time, x.latest()), x.epoch
	if !x.demoted {
		m.last, m.own = v, x.addition.own
		return
	}
	x.shard.disown(m)
	exact, p := of, out.subtotal(x.number)
	growth := m.growth(&v)
	if !out.agree(p, &v, of) || !x.afford(m, out.account, growth) { // then only what it grows by from the next one on
		o.forget(x.shard, x.fp, m)
		return
	}
	m.last, m.bounds, m.cost, m.exact = v, p.bounds, m.cost+growth, exact == p.bounds
}

// scalar is what tells whether a counter began anew.
func (v *value) scalar() value {
	w := *v
	w.cells, w.positive, w.negative = nil, buckets{}, buckets{}
	return w
}

// fell says whether a counter has less than before.
func (v *value) fell(last *value) bool {
	if v.shape == shapeNumber {
		return v.below(&last.numeric)
	}
	return v.count < last.count
}

// viewed is how the batch sees a member.
func (b *batch) viewed(fp uint64) view {
	if v, ok := b.views[fp]; ok {
		return v
	}
	return b.p.overflow.view(fp)
}

func (b *batch) saw(fp uint64, v *view) {
	if b.views == nil {
		b.views = map[uint64]view{}
	}
	b.views[fp] = *v
}

// present is a verdict under the rules of now: the one that it is of may be another by now, or gone.
func (b *batch) present(v verdict) verdict {
	if v.limit = b.policy.named[v.limit.name]; v.limit == nil {
		v.limit = b.policy.named[ruleTotal]
	}
	return v
}

// own decides about a point of a series that has a place, and is a member or was one.
func (b *batch) own(i int, s *set) (passes bool) {
	b.class, b.noValue = classOf(b.at.m), whenAt(b.at.m, i).noValue
	fp := b.fps[i]
	v := b.viewed(fp)
	switch {
	case v.member == nil || !b.noValue && whenAt(b.at.m, i).start != v.start: // it began anew by itself
		delete(b.views, fp)
		b.p.overflow.release(fp)
		b.match()
		b.p.limiter.ordinary(fp, &b.sighting)
		return b.tolled(i, s)
	case v.own == nil:
		if !v.exact { // it can never begin
			b.p.limiter.end(fp, 0, b.moment)
		}
		return b.exceed(i, b.present(verdict{limit: v.limit, reason: v.reason, held: v.member.output}))
	case !v.noted:
		return b.exceed(i, b.present(verdict{limit: v.limit, reason: v.reason, waits: true}))
	default:
		return b.tolled(i, s) && b.restate(i, &v, false)
	}
}

// demote is for a series of its own that has no place any more, and finds none. It says its value once more; from there on
// it is added to the overflow.
func (b *batch) demote(i int, v verdict) (passes bool) {
	seen := b.viewed(b.fps[i])
	if seen.member == nil || seen.own == nil || !seen.noted {
		v.waits, v.step, v.farewell = true, step{}, farewellNone
		return b.exceed(i, v)
	}
	seen.limit, seen.reason = v.limit, v.reason
	return b.restate(i, &seen, true)
}

// restate has a point say what its series says by itself.
func (b *batch) restate(i int, v *view, demote bool) (passes bool) {
	m, w := b.at.m, whenAt(b.at.m, i)
	add := addition{fp: b.fps[i], start: w.start, time: w.time, noValue: w.noValue, kind: additionOwn}
	if w.noValue {
		b.write(i, nil, v.own.since, nil)
		b.p.overflow.stageOwn(&b.staged, v, &add, &bucketed{})
		return true
	}
	now := bucketed{value: valueAt(m, i)}
	if now.shape == shapeNumber && !finite(now.number()) {
		b.write(i, nil, v.own.since, nil)
		return true
	}
	base, is, in := v.own.base, now.value, (*bounds)(nil)
	if now.shape == shapeHistogram {
		of, ok := boundsOf(m.Histogram().DataPoints().At(i), v.own.bounds)
		if now.bounds, in = of, of; ok && !base.nothing() { // said in the bounds that both have
			in = v.own.bounds.common(of)
			ok = in != nil || of == nil && v.own.bounds == nil
			base.cells, is.cells = v.own.bounds.coarsen(base.cells, in), of.coarsen(is.cells, in)
		}
		if !ok {
			b.losses[lossBounds]++
			return b.p.dryRun
		}
	}
	said, grown := is.minus(base)
	anew := !grown || now.fell(&v.last)
	if w.time <= v.time {
		if anew {
			b.losses[lossOld]++
			return b.p.dryRun
		}
		b.write(i, &said, v.own.since, in)
		return true
	}
	if anew { // without a new start
		in, said, v.own = now.bounds, now.clone(), &own{since: v.time, noted: true}
	} else if !base.nothing() && !base.hasSum {
		said.hasSum = false
	}
	b.write(i, &said, v.own.since, in)
	add.own, add.demoted = v.own, demote
	v.time, v.last = w.time, now.scalar()
	if demote {
		id, _ := b.p.limiter.series.touch(b.fps[i], b.moment)
		b.part(b.fps[i], step{from: uint8(min(id, leftLast)), to: uint8(leftValue)})
		v.last, v.own = now.value, nil
	} else {
		now.value = v.last
	}
	b.p.overflow.stageOwn(&b.staged, v, &add, &now)
	b.saw(b.fps[i], v)
	return true
}

// write changes what a point says, and since when. Of the least and the greatest of a time nothing is known about a part of it.
func (b *batch) write(i int, v *value, since pcommon.Timestamp, in *bounds) {
	m := b.at.m
	if b.p.dryRun {
		return
	}
	switch m.Type() {
	case pmetric.MetricTypeSum:
		m.Sum().DataPoints().At(i).SetStartTimestamp(since)
	case pmetric.MetricTypeHistogram:
		dp := m.Histogram().DataPoints().At(i)
		dp.SetStartTimestamp(since)
		dp.RemoveMin()
		dp.RemoveMax()
		if v != nil && !v.hasSum {
			dp.RemoveSum()
		}
		if v != nil && in != nil {
			dp.ExplicitBounds().FromRaw(in.upper)
		}
	case pmetric.MetricTypeExponentialHistogram:
		dp := m.ExponentialHistogram().DataPoints().At(i)
		dp.SetStartTimestamp(since)
		dp.RemoveMin()
		dp.RemoveMax()
		if v != nil && !v.hasSum {
			dp.RemoveSum()
		}
	case pmetric.MetricTypeSummary:
		m.Summary().DataPoints().At(i).SetStartTimestamp(since)
	default:
	}
	if v != nil {
		v.writeTo(m, i)
	}
}

// appendOwn appends to the ledger what a member says by itself.
func (m *member) appendOwn(dst []byte, fp uint64) []byte {
	dst = appendTimes(binary.LittleEndian.AppendUint64(dst, fp), m.own.since)
	var upper []float64
	if m.own.bounds != nil {
		upper = m.own.bounds.upper
	}
	dst = binary.AppendUvarint(dst, uint64(len(upper)))
	for _, at := range upper {
		dst = binary.LittleEndian.AppendUint64(dst, math.Float64bits(at))
	}
	return m.own.base.append(append(dst, byte(m.own.base.shape)))
}

// restoreOwn reads that. A ledger of a version that had nobody with one ends before it.
func (o *overflow) restoreOwn(r *reader) error {
	if r.err != nil || len(r.rest) == 0 {
		return r.err
	}
	for range r.count(2*8 + 2 + valueFields) {
		fp, from := r.word(), &own{since: r.time(), noted: true}
		if n := r.count(8); n > 0 {
			from.bounds = &bounds{upper: make([]float64, n)}
			for i := range from.bounds.upper {
				from.bounds.upper[i] = math.Float64frombits(r.word())
			}
		}
		as := shape(r.byte())
		from.base = r.value()
		from.base.shape = as
		sh := &o.shards[o.shardOf(fp)]
		m := sh.members[fp]
		if r.err != nil || m == nil || m.own != nil || as > shapeSummary ||
			len(from.base.cells) > 0 && (from.bounds == nil || len(from.base.cells) != len(from.bounds.upper)+1) {
			return errSnapshot
		}
		m.own = from
		sh.owning++
		cost := ownCost + from.base.memberCost() - memberCost
		m.cost += cost
		o.all.used.Add(cost)
		m.output.account.used.Add(cost)
	}
	return r.err
}
