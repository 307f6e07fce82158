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
	o.mu.Lock()
	defer o.mu.Unlock()
	m := o.members[fp]
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
	o.mu.Lock()
	defer o.mu.Unlock()
	if m := o.members[fp]; m != nil && m.own == nil && !m.granted {
		m.granted = true
		o.granted = append(o.granted, fp)
	}
}

// promote has members that were granted a place begin anew, as soon as it is noted.
func (o *overflow) promote(placed func(fp uint64) bool) (all []*member) {
	o.mu.Lock()
	defer o.mu.Unlock()
	wait := o.granted[:0]
	for _, fp := range o.granted {
		m := o.members[fp]
		switch {
		case m == nil || !m.granted:
		case m.own != nil || !placed(fp):
			m.granted = false
		case m.rests || !m.exact || m.pins > 0 || o.used+o.staged+ownCost > o.budget:
			wait = append(wait, fp)
		default:
			m.granted = false
			m.own = &own{base: m.last, bounds: m.bounds, since: m.time}
			m.last = m.last.scalar()
			m.cost += ownCost
			o.used += ownCost
			o.owning++
			all = append(all, m)
		}
	}
	clear(o.granted[len(wait):])
	o.granted = wait
	return all
}

// confirm lets them begin, or go on as before if it could not be noted.
func (o *overflow) confirm(all []*member, noted bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, m := range all {
		if m.own == nil || m.gone {
			continue
		}
		if noted {
			m.own.noted = true
			continue
		}
		m.last = m.own.base
		o.disown(m)
		if m.rests {
			o.rested -= ownCost
		}
		m.cost -= ownCost
		o.used -= ownCost
	}
}

// disown ends what a member has of its own.
func (o *overflow) disown(m *member) {
	if m.own != nil && !m.rests {
		o.owning--
	}
	m.own = nil
}

// stageOwn notes what a series of its own says. With demoted it was the last time.
func (o *overflow) stageOwn(s *staged, v *view, add *addition, said *bucketed) {
	o.mu.Lock()
	defer o.mu.Unlock()
	add.member, add.limit, add.reason, add.passes = v.member, v.limit, v.reason, true
	s.append(add, v.member.output, said)
}

// settleOwn notes what was said.
func (o *overflow) settleOwn(c *settlement, add *addition) {
	m, out := add.member, add.output
	switch {
	case m.gone || m.own == nil: // another batch came first
		return
	case add.noValue:
		if !m.rests {
			o.rest(add.fp, m)
		}
		return
	case add.time <= m.time:
		return
	}
	if m.rests {
		o.wake(m)
	}
	v, of := c.value(add, shapeOf(out.metric))
	m.time, m.seen = min(add.time, c.latest()), c.epoch
	if !add.demoted {
		m.last, m.own = v, add.own
		return
	}
	o.disown(m)
	exact := of
	if !out.agree(&v, of) || !o.afford(m, m.growth(&v)) { // then only what it grows by from the next one on
		o.forget(add.fp, m)
		return
	}
	o.used += m.growth(&v)
	m.last, m.bounds, m.cost, m.exact = v, out.bounds, v.memberCost(), exact == out.bounds
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

// appendOwn appends to the ledger who has a series of its own.
func (o *overflow) appendOwn(dst []byte) []byte {
	n := uint64(0)
	for _, m := range o.members {
		if m.own != nil {
			n++
		}
	}
	dst = binary.AppendUvarint(dst, n)
	for fp, m := range o.members {
		if m.own == nil {
			continue
		}
		dst = appendTimes(binary.LittleEndian.AppendUint64(dst, fp), m.own.since)
		var upper []float64
		if m.own.bounds != nil {
			upper = m.own.bounds.upper
		}
		dst = binary.AppendUvarint(dst, uint64(len(upper)))
		for _, at := range upper {
			dst = binary.LittleEndian.AppendUint64(dst, math.Float64bits(at))
		}
		dst = m.own.base.append(append(dst, byte(m.own.base.shape)))
	}
	return dst
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
		m := o.members[fp]
		if r.err != nil || m == nil || m.own != nil || as > shapeSummary ||
			len(from.base.cells) > 0 && (from.bounds == nil || len(from.base.cells) != len(from.bounds.upper)+1) {
			return errSnapshot
		}
		m.own = from
		o.owning++
		cost := ownCost + from.base.memberCost() - memberCost
		m.cost += cost
		o.used += cost
	}
	return r.err
}
