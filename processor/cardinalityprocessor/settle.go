// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package cardinalityprocessor

import (
	"slices"
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"
)

// What was staged is settled when its batch is accepted: against the values that were committed until then.

// settlement is what a commit knows beside the overflow.
type settlement struct {
	*staged

	epoch  uint32
	now    time.Time
	placed func(fp uint64) bool // whether a series has a place by now, and says all by itself
	lost   *[losses]int64
	stamp  uint64 // of the point before the first
}

// mostAhead is by how much the clock of an input may be ahead. A point from later than that, by mistake, must not make all
// that come after it too old.
const mostAhead = time.Hour

func (c *settlement) latest() pcommon.Timestamp {
	return pcommon.NewTimestampFromTime(c.now.Add(mostAhead))
}

// committedAtOnce is how many points are added while others wait.
const committedAtOnce = 256

// commit adds what was staged, shard by shard.
func (o *overflow) commit(c *settlement) {
	o.makeRoom()
	if n := uint64(len(c.additions)); n > 0 {
		c.stamp = o.commits.Add(n) - n
	}
	for i, some := range c.inShards(o) {
		for few := range slices.Chunk(some, committedAtOnce) {
			o.commitSome(c, i, few)
		}
	}
	o.unbegun(c.staged)
}

// inShards sorts additions by the shards that they belong to, and keeps the order of those of one.
func (s *staged) inShards(o *overflow) [][]uint32 {
	s.byShard = slices.Grow(s.byShard[:0], len(s.additions))[:len(s.additions)]
	n := make([]int, len(o.shards)+1)
	for i := range s.additions {
		n[o.shardOf(s.additions[i].fp)+1]++
	}
	for i := range o.shards {
		n[i+1] += n[i]
	}
	all, at := make([][]uint32, len(o.shards)), slices.Clone(n)
	for i := range s.additions {
		shard := o.shardOf(s.additions[i].fp)
		s.byShard[at[shard]] = uint32(i)
		at[shard]++
	}
	for i := range o.shards {
		all[i] = s.byShard[n[i]:n[i+1]]
	}
	return all
}

func (o *overflow) commitSome(c *settlement, shard int, some []uint32) {
	sh := &o.shards[shard]
	sh.mu.Lock()
	defer sh.mu.Unlock()
	for _, i := range some {
		add := &c.additions[i]
		p := add.output.subtotal(shard)
		x := settling{settlement: c, overflow: o, shard: sh, number: shard, addition: add, stamp: c.stamp + uint64(i) + 1}
		if add.member != nil {
			add.member.pins--
		}
		var lost loss
		switch {
		case add.kind == additionOwn:
			x.own()
		case add.output.class.keeps():
			lost = x.member()
		default:
			lost = x.plain()
		}
		c.lost[lost]++
		if lost.taken() && p.owned != c.epoch+1 {
			p.owned = c.epoch + 1
			c.owned = append(c.owned, add.output.fp)
		}
		p.pins--
		o.unreserve(add.output.account, int64(add.cost))
	}
}

// discard forgets what was staged.
func (o *overflow) discard(s *staged) {
	if len(s.additions)+len(s.orphans) == 0 {
		return
	}
	for shard, some := range s.inShards(o) {
		o.discardSome(s, shard, some)
	}
	o.unbegun(s)
}

func (o *overflow) discardSome(s *staged, shard int, some []uint32) {
	sh := &o.shards[shard]
	sh.mu.Lock()
	defer sh.mu.Unlock()
	for _, i := range some {
		add := &s.additions[i]
		if add.member != nil {
			add.member.pins--
		}
		add.output.subtotal(shard).pins--
		o.unreserve(add.output.account, int64(add.cost))
	}
}

// settling is an addition that is settled. Its shard's lock is held.
type settling struct {
	*settlement
	*addition

	overflow *overflow
	shard    *overflowShard
	number   int // of the shard
	stamp    uint64
}

// grew notes that a point was added to a subtotal of an output, without a sum if it is bare.
func (x *settling) grew(out *output, p *subtotal, bare bool) {
	if !out.begun.Load() {
		out.begun.Store(true)
	}
	p.points++
	p.seen = x.epoch
	p.stamp = x.stamp
	switch {
	case x.partial:
		x.lost[lossNotFinite]++
	case bare && out.summed.Load():
		x.lost[lossNoSum]++
	case p.total.hasSum && !out.summed.Load():
		out.summed.Store(true)
	}
}

// plain adds a delta, or a gauge.
func (x *settling) plain() loss {
	out := x.output
	p := out.subtotal(x.number)
	v, of := x.value(x.addition, out.form)
	if !out.agree(p, &v, of) {
		return lossBounds
	}
	x.grew(out, p, !v.hasSum)
	switch {
	case out.class == classGauge && p.points == 1:
		p.total = v
	case out.class == classGauge && out.gauge != gaugeMean:
		out.gauge.blend(&p.total, &v, true)
	case !p.total.add(v):
		return lossNotFinite
	case p.total.hasSum && !out.summed.Load():
		out.summed.Store(true)
	}
	return lossNone
}

// member adds what a cumulative input has grown by.
func (x *settling) member() loss {
	o, out, m := x.overflow, x.output, x.addition.member
	if m == nil || m.gone { // another batch may have come first
		m = x.shard.members[x.fp]
	}
	if m != nil && m.output.gone.Load() { // it rests, and has nothing to go on with
		o.forget(x.shard, x.fp, m)
		m = nil
	}
	if m != nil {
		out = m.output
	}
	switch {
	case m != nil && m.own != nil && x.start == m.start: // it says so by itself
		return lossOld
	case !out.fits(x.output.kind()):
		return lossKind
	case x.noValue:
		if m != nil && !m.rests { // it may come back: a scrape that failed says so of all that it had
			o.rest(x.shard, x.fp, m)
		}
		return lossNoValue
	case m != nil && x.time <= m.time, m == nil && x.placed(x.fp):
		return lossOld
	}
	p := out.subtotal(x.number)
	v, of := x.value(x.addition, out.form)
	exact := of
	if !out.agree(p, &v, of) {
		return lossBounds
	}
	growth := m.growth(&v)
	if !x.afford(m, out.account, growth) {
		return lossState
	}
	var lost loss
	bare := !v.hasSum
	if m == nil {
		if lost = x.begins(out, p, &v); lost == lossNotFinite {
			o.shrink(out.account, growth)
			return lost
		}
		m = &member{output: out}
		x.shard.members[x.fp] = m
		p.members++
	} else {
		if lost = x.goesOn(out, p, &v, m); lost == lossNotFinite {
			o.shrink(out.account, growth)
			return lost
		}
		if m.rests {
			o.wake(x.shard, x.fp, m)
		}
		x.shard.disown(m) // it began anew, where it is added up
	}
	m.limit, m.reason, m.cost = x.limit, x.reason, v.memberCost()
	m.start, m.time, m.last, m.bounds, m.seen = x.start, min(x.time, x.latest()), v, p.bounds, x.epoch
	m.exact = exact == p.bounds
	x.grew(out, p, bare)
	return lost
}

// growth is by how much more memory a member takes with a new value. Without a member it is that of a new one.
func (m *member) growth(v *value) int64 {
	if m == nil {
		return v.memberCost()
	}
	return v.memberCost() - m.cost
}

// afford takes the memory that a member grows by, if there is so much, and makes room for it.
func (x *settling) afford(m *member, of *purse, growth int64) bool {
	o := x.overflow
	if growth <= 0 {
		o.shrink(of, -growth)
		return true
	}
	if m != nil && m.rests { // it has come back, and is not to be forgotten for its own sake
		o.wake(x.shard, x.fp, m)
	}
	if promised := o.all.staged.Load() - int64(x.cost); o.all.used.Load()+promised+growth > o.budget {
		o.forgetOldest(x.shard, o.all.used.Load()+promised+growth-o.budget)
	}
	return o.grow(of, growth)
}

// begins adds what a new member has said so far, unless that was counted elsewhere.
func (x *settling) begins(out *output, p *subtotal, v *value) loss {
	switch {
	case x.passes:
		return lossNone
	case out.class == classUpDown || !x.counted && x.overflow.whole(out, x.start, x.time):
		return x.addAll(p, v)
	default:
		return lossBaseline
	}
}

// goesOn adds what a member has grown by.
func (x *settling) goesOn(out *output, p *subtotal, v *value, m *member) loss {
	if x.passes { // a place of its own has said it
		return lossNone
	}
	last := m.last
	last.cells = m.bounds.coarsen(last.cells, p.bounds)
	if out.class == classUpDown {
		lost := x.sum(p, *v)
		if lost == lossNone {
			p.total.add(last.opposite())
		}
		return lost
	}
	grown, ok := v.minus(last)
	switch {
	case ok && x.start == m.start:
		if !v.hasSum { // the next one may have it again
			v.sum, v.hasSum = last.sum, last.hasSum
		}
		return x.sum(p, grown)
	case x.start != m.start && (x.start == x.time || x.start < x.overflow.certain): // begun anew, and may be known elsewhere
		return lossBaseline
	default:
		return x.addAll(p, v)
	}
}

// addAll adds all of an input's value. If it has no sum yet then all of that is to be added later.
func (x *settling) addAll(p *subtotal, v *value) loss {
	lost := x.sum(p, v.clone())
	if v.shape != shapeNumber {
		v.hasSum = true
	}
	return lost
}

// sum adds to the total. A number that would make it infinite is left out as a whole, of a histogram only its sum is.
func (x *settling) sum(p *subtotal, v value) loss {
	if p.total.add(v) {
		return lossNone
	}
	if v.shape == shapeNumber {
		return lossNotFinite
	}
	x.partial = true // as if it had none
	return lossNone
}

// whole says whether all of a new member's value is its output's: it began after the output did, and so lately that it
// cannot have been counted elsewhere, as an admitted series or a member, and been forgotten for being idle, or by a process
// that was killed.
func (o *overflow) whole(out *output, start, at pcommon.Timestamp) bool {
	return start != 0 && start < at && start >= max(out.since, o.certain) && time.Duration(at-start) < o.idle
}

// agree brings a value, and a subtotal of the output if it needs be, to the bounds that all inputs have.
func (out *output) agree(p *subtotal, v *value, of *bounds) bool {
	if v.shape != shapeHistogram {
		return true
	}
	both := out.bounds.Load()
	for both != of {
		known := both
		if both = known.common(of); both == nil && known != nil {
			return false
		}
		if both == known || out.bounds.CompareAndSwap(known, both) {
			break
		}
		both = out.bounds.Load() // of another shard
	}
	if both != p.bounds {
		p.total.cells = p.bounds.coarsen(p.total.cells, both)
		p.bounds = both
	}
	v.cells = of.coarsen(v.cells, both)
	return true
}

func setBounds(m pmetric.Metric, b *bounds) {
	if b != nil {
		m.Histogram().DataPoints().At(0).ExplicitBounds().FromRaw(b.upper)
	}
}
