// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package cardinalityprocessor

import (
	"slices"
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"
)

// What was staged is settled when its batch is accepted: against the values that were committed until then.

// settlement is what a commit knows beside the overflow.
type settlement struct {
	*staged

	epoch  uint32
	now    time.Time
	placed func(fp uint64) bool // whether a series has a place by now, and says all by itself
	lost   *[losses]int64
}

// mostAhead is by how much the clock of an input may be ahead. A point from later than that, by mistake, must not make all
// that come after it too old.
const mostAhead = time.Hour

func (c *settlement) latest() pcommon.Timestamp {
	return pcommon.NewTimestampFromTime(c.now.Add(mostAhead))
}

// committedAtOnce is how many points are added while others wait.
const committedAtOnce = 256

// commit adds what was staged.
func (o *overflow) commit(c *settlement) {
	for some := range slices.Chunk(c.additions, committedAtOnce) {
		o.commitSome(c, some)
	}
}

func (o *overflow) commitSome(c *settlement, some []addition) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for i := range some {
		add := &some[i]
		o.staged -= int64(add.cost)
		if add.member != nil {
			add.member.pins--
		}
		var lost loss
		switch {
		case add.kind == additionOwn:
			o.settleOwn(c, add)
		case add.output.class.keeps():
			lost = o.settleMember(c, add)
		default:
			lost = o.settlePlain(c, add)
		}
		c.lost[lost]++
		if out := add.output; lost.taken() && out.owned != c.epoch+1 {
			out.owned = c.epoch + 1
			c.owned = append(c.owned, out.fp)
		}
		o.unpin(add.output)
	}
}

// discard forgets what was staged.
func (o *overflow) discard(s *staged) {
	if len(s.additions) == 0 {
		return
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	for i := range s.additions {
		o.staged -= int64(s.additions[i].cost)
		if m := s.additions[i].member; m != nil {
			m.pins--
		}
		o.unpin(s.additions[i].output)
	}
}

// unpin forgets an output that nothing was ever added to, when nobody is left who would.
func (o *overflow) unpin(out *output) {
	if out.pins--; out.pins == 0 && !out.begun {
		o.used -= out.cost
		delete(o.outputs, out.fp)
	}
}

// grew notes that a point was added to an output, without a sum if it is bare.
func (o *overflow) grew(out *output, c *settlement, add *addition, bare bool) {
	o.install(out)
	out.points++
	out.seen = c.epoch
	switch {
	case add.partial:
		c.lost[lossNotFinite]++
	case bare && out.total.hasSum:
		c.lost[lossNoSum]++
	}
}

// settlePlain adds a delta, or a gauge.
func (o *overflow) settlePlain(c *settlement, add *addition) loss {
	out := add.output
	v, of := c.value(add, shapeOf(out.metric))
	if !out.agree(&v, of) {
		return lossBounds
	}
	o.grew(out, c, add, !v.hasSum)
	switch {
	case out.class == classGauge && out.points == 1:
		out.total = v
	case out.class == classGauge && out.gauge != gaugeMean:
		out.blend(v)
	case !out.total.add(v):
		return lossNotFinite
	}
	return lossNone
}

// blend is for gauges that are not added up.
func (out *output) blend(v value) {
	if out.gauge == gaugeLast ||
		out.gauge == gaugeMin && v.number() < out.total.number() ||
		out.gauge == gaugeMax && v.number() > out.total.number() {
		out.total = v
	}
}

// settleMember adds what a cumulative input has grown by.
func (o *overflow) settleMember(c *settlement, add *addition) loss {
	out, m := add.output, add.member
	if m == nil || m.gone { // another batch may have come first
		m = o.members[add.fp]
	}
	if m != nil {
		out = m.output
	}
	switch {
	case m != nil && m.own != nil && add.start == m.start: // it says so by itself
		return lossOld
	case !out.fits(add.output.kind()):
		return lossKind
	case add.noValue:
		if m != nil && !m.rests { // it may come back: a scrape that failed says so of all that it had
			o.rest(add.fp, m)
		}
		return lossNoValue
	case m != nil && add.time <= m.time, m == nil && c.placed(add.fp):
		return lossOld
	}
	v, of := c.value(add, shapeOf(out.metric))
	exact := of
	if !out.agree(&v, of) {
		return lossBounds
	}
	if !o.afford(m, m.growth(&v)) {
		return lossState
	}
	var lost loss
	bare := !v.hasSum
	if m == nil {
		if lost = out.begins(&v, add, o); lost == lossNotFinite {
			return lost
		}
		m = &member{output: out}
		o.members[add.fp] = m
		out.members++
	} else {
		if lost = out.goesOn(&v, add, o, m); lost == lossNotFinite {
			return lost
		}
		if m.rests {
			o.wake(m)
		}
		o.disown(m) // it began anew, where it is added up
	}
	o.used += m.growth(&v)
	m.limit, m.reason, m.cost = add.limit, add.reason, v.memberCost()
	m.start, m.time, m.last, m.bounds, m.seen = add.start, min(add.time, c.latest()), v, out.bounds, c.epoch
	m.exact = exact == out.bounds
	o.grew(out, c, add, bare)
	return lost
}

// growth is by how much more memory a member takes with a new value. Without a member it is that of a new one.
func (m *member) growth(v *value) int64 {
	if m == nil {
		return v.memberCost()
	}
	return v.memberCost() - m.cost
}

// afford says whether there is memory for a member to grow by so much, and makes room for it.
func (o *overflow) afford(m *member, growth int64) bool {
	if growth <= 0 {
		return true
	}
	if m != nil && m.rests { // it has come back, and is not to be forgotten for its own sake
		o.wake(m)
	}
	o.forgetOldest(o.used + o.staged + growth - o.budget)
	return o.used+growth <= o.budget
}

// begins adds what a new member has said so far, unless that was counted elsewhere.
func (out *output) begins(v *value, add *addition, o *overflow) loss {
	switch {
	case add.passes:
		return lossNone
	case out.class == classUpDown || !add.counted && o.whole(out, add.start, add.time):
		return out.addAll(v, add)
	default:
		return lossBaseline
	}
}

// goesOn adds what a member has grown by.
func (out *output) goesOn(v *value, add *addition, o *overflow, m *member) loss {
	if add.passes { // a place of its own has said it
		return lossNone
	}
	last := m.last
	last.cells = m.bounds.coarsen(last.cells, out.bounds)
	if out.class == classUpDown {
		lost := out.sum(*v, add)
		if lost == lossNone {
			out.total.add(last.opposite())
		}
		return lost
	}
	grown, ok := v.minus(last)
	switch {
	case ok && add.start == m.start:
		if !v.hasSum { // the next one may have it again
			v.sum, v.hasSum = last.sum, last.hasSum
		}
		return out.sum(grown, add)
	case add.start != m.start && (add.start == add.time || add.start < o.certain): // begun anew, and may be known elsewhere
		return lossBaseline
	default:
		return out.addAll(v, add)
	}
}

// addAll adds all of an input's value. If it has no sum yet then all of that is to be added later.
func (out *output) addAll(v *value, add *addition) loss {
	lost := out.sum(v.clone(), add)
	if v.shape != shapeNumber {
		v.hasSum = true
	}
	return lost
}

// sum adds to the total. A number that would make it infinite is left out as a whole, of a histogram only its sum is.
func (out *output) sum(v value, add *addition) loss {
	if out.total.add(v) {
		return lossNone
	}
	if v.shape == shapeNumber {
		return lossNotFinite
	}
	add.partial = true // as if it had none
	return lossNone
}

// whole says whether all of a new member's value is its output's: it began after the output did, and so lately that it
// cannot have been counted elsewhere, as an admitted series or a member, and been forgotten for being idle, or by a process
// that was killed.
func (o *overflow) whole(out *output, start, at pcommon.Timestamp) bool {
	return start != 0 && start < at && start >= max(out.start, o.certain) && time.Duration(at-start) < o.idle
}

// agree brings a value, and the output if it needs be, to the bounds that both have.
func (out *output) agree(v *value, of *bounds) bool {
	if v.shape != shapeHistogram || of == out.bounds {
		return true
	}
	both := out.bounds.common(of)
	if both == nil && out.bounds != nil {
		return false
	}
	if both != out.bounds {
		out.total.cells = out.bounds.coarsen(out.total.cells, both)
		out.setBounds(both)
	}
	v.cells = of.coarsen(v.cells, both)
	return true
}

func (out *output) setBounds(b *bounds) {
	out.bounds = b
	if b != nil {
		out.metric.Histogram().DataPoints().At(0).ExplicitBounds().FromRaw(b.upper)
	}
}
