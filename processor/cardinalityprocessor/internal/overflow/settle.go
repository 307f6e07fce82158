// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package overflow

import (
	"slices"
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"

	"github.com/godwit-otel/godwit/processor/cardinalityprocessor/internal/amount"
)

// Staged points are settled when their batch is accepted: against the values that are committed by then.

// Settlement is what a commit needs besides the overflow.
type Settlement struct {
	*Staged

	Epoch  uint32
	Now    time.Time
	Placed func(fp uint64) bool // whether a series has been admitted by now, and reports its whole value by itself
	Lost   *[amount.Losses]int64

	overflow *Overflow
	stamp    uint64            // of the point before the first
	now      pcommon.Timestamp // Now
	latest   pcommon.Timestamp // the latest time that is accepted
}

// MostAhead is how far the clock of an input may be ahead. A point from later than that, by mistake, must not make all
// points after it too old.
const MostAhead = time.Hour

// committedAtOnce is how many points are added while others wait.
const committedAtOnce = 16

// Commit adds what was staged, shard by shard.
func (o *Overflow) Commit(c *Settlement) {
	o.Unhold(c.Staged)
	o.makeRoom()
	c.overflow = o
	c.now, c.latest = pcommon.NewTimestampFromTime(c.Now), pcommon.NewTimestampFromTime(c.Now.Add(MostAhead))
	if n := uint64(len(c.Additions)); n > 0 {
		c.stamp = o.commits.Add(n) - n
	}
	all := c.inShards(o)
	o.commitAll(c, &all)
	o.unbegun(c.Staged)
}

// commitAll goes through the shards, some points at a time. It stays with a shard until all of its points are added,
// since what has been written there is still in the cache of this CPU, and begins with another one each time. Shards that
// are locked are left for later: it only waits when there is nothing else to do.
func (o *Overflow) commitAll(c *Settlement, all *perShard) {
	first := o.shardOf(c.stamp)
	for left, wait := len(c.Additions), false; left > 0; {
		before := left
		for k := range o.Shards {
			i := (first + k) % len(o.Shards)
			for len(all[i]) > 0 {
				some := all[i][:min(committedAtOnce, len(all[i]))]
				if !o.Shards[i].commit(c, some, wait) {
					break
				}
				all[i] = all[i][len(some):]
				left -= len(some)
				wait = false
			}
		}
		wait = left == before
	}
}

// inShards sorts additions by their shards, and keeps the order within each. Points that need no member may be added in
// any shard: so they all go to a single one, which other senders mostly do not need.
func (s *Staged) inShards(o *Overflow) (all perShard) {
	s.byShard = slices.Grow(s.byShard[:0], len(s.Additions))[:len(s.Additions)]
	var ends [len(all)]int
	plain := -1
	for i := range s.Additions {
		add := &s.Additions[i]
		switch {
		case add.output.Class.Keeps():
			add.shard = uint8(o.shardOf(add.FP))
		case plain < 0:
			plain = o.shardOf(add.FP)
			fallthrough
		default:
			add.shard = uint8(plain)
		}
		ends[add.shard]++
	}
	for i, at := 0, 0; i < len(o.Shards); i++ {
		all[i] = s.byShard[at : at : at+ends[i]]
		at += ends[i]
	}
	for i := range s.Additions {
		shard := s.Additions[i].shard
		all[shard] = append(all[shard], uint32(i))
	}
	return all
}

// perShard has the indices of each shard's additions.
type perShard [1 << maxOverflowShardBits][]uint32

// commit adds some of a shard's points, unless it is locked and wait is false.
func (sh *overflowShard) commit(c *Settlement, some []uint32, wait bool) (done bool) {
	if wait {
		sh.Mu.Lock()
	} else if !sh.Mu.TryLock() {
		return false
	}
	defer sh.Mu.Unlock()
	for _, i := range some {
		add := &c.Additions[i]
		p := add.output.subtotal(sh.number)
		x := settling{Settlement: c, Addition: add, shard: sh, stamp: c.stamp + uint64(i) + 1}
		if add.member != nil {
			add.member.pins--
		}
		var lost amount.Loss
		switch {
		case add.Kind == AdditionOwn:
			x.own()
		case x.advances(p): // fast path
		case add.output.Class.Keeps():
			if lost = x.member(); lost != amount.LossNone && add.passes {
				x.disagrees()
			}
		default:
			lost = x.plain()
		}
		c.Lost[lost]++
		if lost.Taken() && p.owned != c.Epoch+1 {
			p.owned = c.Epoch + 1
			c.Owned = append(c.Owned, add.output.FP)
		}
		sh.memory.unreserve(add.output.account, int64(add.cost))
	}
	return true
}

// Discard forgets what was staged.
func (o *Overflow) Discard(s *Staged) {
	if s.Empty() {
		return
	}
	o.Unhold(s)
	for shard, some := range s.inShards(o) {
		if len(some) > 0 {
			o.Shards[shard].discard(s, some)
		}
	}
	o.unbegun(s)
}

func (sh *overflowShard) discard(s *Staged, some []uint32) {
	sh.Mu.Lock()
	defer sh.Mu.Unlock()
	for _, i := range some {
		add := &s.Additions[i]
		if add.member != nil {
			add.member.pins--
		}
		sh.memory.unreserve(add.output.account, int64(add.cost))
	}
}

// settling is an addition being settled. Its shard's lock is held.
type settling struct {
	*Settlement
	*Addition

	shard *overflowShard
	stamp uint64
}

// grew records that a point was added to a subtotal of an output, without a sum if it is bare.
func (x *settling) grew(out *Output, p *subtotal, bare bool) {
	if !out.begun.Load() {
		out.begun.Store(true)
	}
	p.points++
	p.seen = x.Epoch
	p.stamp = x.stamp
	switch {
	case x.partial:
		x.Lost[amount.LossNotFinite]++
	case bare && out.summed.Load():
		x.Lost[amount.LossNoSum]++
	case p.total.HasSum && !out.summed.Load():
		out.summed.Store(true)
	}
}

// plain adds a delta, or a gauge.
func (x *settling) plain() amount.Loss {
	out := x.output
	p := out.subtotal(x.shard.number)
	v, of := x.value(x.Addition, out.form)
	if !out.agree(p, &v, of) {
		return amount.LossBounds
	}
	x.grew(out, p, !v.HasSum)
	switch {
	case out.Class == amount.ClassGauge && p.points == 1:
		p.total = v
	case out.Class == amount.ClassGauge && out.gauge != amount.GaugeMean:
		out.gauge.Blend(&p.total, &v, true)
	case !p.total.Add(v):
		if v.Shape == amount.ShapeNumber { // for what is the mean of points
			p.points--
		}
		return amount.LossNotFinite
	case p.total.HasSum && !out.summed.Load():
		out.summed.Store(true)
	}
	return amount.LossNone
}

// advances is member in the usual case: the counter has grown since its last value, and nothing else has changed. It
// reports whether that was so; otherwise it has done nothing.
func (x *settling) advances(p *subtotal) bool {
	out, m := x.output, x.Addition.member
	switch {
	case m == nil || m.gone || m.rests || m.own != nil || m.Output != out || out.Class != amount.ClassCumulative || out.gone.Load(),
		x.NoValue || x.passes || x.partial || x.Start != m.Start || x.Time <= m.Time:
		return false
	}
	bare := true
	if out.form == amount.ShapeNumber {
		v := amount.Value{Numeric: amount.NumberOf(x.number, x.isFloat)}
		if !v.Advance(&m.Last, &p.total) {
			return false
		}
	} else {
		v := &x.histograms[x.number]
		if v.Bounds != p.bounds || v.Bounds != m.bounds || v.Bounds != out.Bounds.Load() || !v.Advance(&m.Last, &p.total) {
			return false
		}
		bare = false
	}
	m.Limit, m.Reason, m.Seen = x.limit, x.reason, x.Epoch
	m.Time, m.ahead, m.exact = min(x.Time, x.latest), x.Start > x.now, true
	x.grew(out, p, bare)
	return true
}

// member adds the growth of a cumulative input.
func (x *settling) member() amount.Loss {
	out, m := x.output, x.Addition.member
	if m == nil || m.gone { // another batch may have come first
		m = x.shard.Members[x.FP]
	}
	if m != nil && m.Output.gone.Load() { // it rests, and its output no longer exists
		x.shard.forget(x.FP, m)
		m = nil
	}
	if m != nil {
		out = m.Output
	}
	switch {
	case m != nil && m.own != nil && !x.anew(m): // it reports that by itself
		return amount.LossOld
	case !out.fits(x.output.kind()):
		return amount.LossKind
	case x.NoValue:
		if m != nil && x.Time != 0 && x.Time < m.Time {
			return amount.LossOld
		}
		if m != nil && !m.rests { // it may come back: a scrape that failed sends an end for every series
			x.shard.rest(x.FP, m)
		}
		return amount.LossNoValue
	case m != nil && x.Time <= m.Time, m == nil && x.Placed(x.FP):
		return amount.LossOld
	}
	p := out.subtotal(x.shard.number)
	v, of := x.value(x.Addition, out.form)
	exact := of
	if !out.agree(p, &v, of) {
		return amount.LossBounds
	}
	growth := m.growth(&v)
	if !x.afford(m, out.account, growth) {
		return amount.LossState
	}
	var lost amount.Loss
	bare := !v.HasSum
	if m == nil {
		if lost = x.begins(out, p, &v); lost == amount.LossNotFinite {
			x.shard.memory.shrink(out.account, growth)
			return lost
		}
		m = &Member{Output: out}
		x.shard.admit(x.FP, m)
		p.Members++
	} else {
		if lost = x.goesOn(out, p, &v, m); lost == amount.LossNotFinite {
			x.shard.memory.shrink(out.account, growth)
			return lost
		}
		if m.rests {
			x.shard.wake(m)
		}
		x.shard.disown(m) // it began anew, and is added up here again
	}
	m.Limit, m.Reason, m.Cost = x.limit, x.reason, costOf(&v)
	m.Start, m.Time, m.bounds, m.Seen = x.Start, min(x.Time, x.latest), p.bounds, x.Epoch
	m.ahead = x.Start > x.now
	m.Last.Keep(&v)
	m.exact = exact == p.bounds
	x.grew(out, p, bare)
	return lost
}

// anew reports whether a member says that it began anew.
func (x *settling) anew(m *Member) bool { return x.when().Anew(m.when(), x.now) }

// disagrees forgets an input that has just reported its value by itself, which could not be recorded: its next value
// would be compared with an older one.
func (x *settling) disagrees() {
	m := x.shard.Members[x.FP]
	if m != nil && (x.Start != m.Start || x.Time > m.Time) { // otherwise another batch came first
		x.shard.forget(x.FP, m)
	}
}

// growth returns how much more memory a member takes with a new value. Without a member, it is the memory of a new one.
func (m *Member) growth(v *amount.Value) int64 {
	if m == nil {
		return costOf(v)
	}
	return costOf(v) - m.Cost
}

// afford takes the memory that a member grows by, if there is enough, and makes room for it.
func (x *settling) afford(m *Member, of *usage, growth int64) bool {
	b := x.shard.memory
	if growth <= 0 {
		b.shrink(of, -growth)
		return true
	}
	if m != nil && m.rests { // it has come back, and must not be forgotten to make room for itself
		x.shard.wake(m)
	}
	if promised := b.All.Staged.Load() - int64(x.cost); b.All.Used.Load()+promised+growth > b.Budget {
		x.shard.forgetOldest(b.All.Used.Load() + promised + growth - b.Budget)
	}
	return b.grow(of, growth)
}

// begins adds the first value of a new member, unless that was counted elsewhere.
func (x *settling) begins(out *Output, p *subtotal, v *amount.Value) amount.Loss {
	switch {
	case x.passes:
		return amount.LossNone
	case out.Class == amount.ClassUpDown || !x.counted && x.overflow.whole(out, p, x.Start, x.Time):
		return x.addAll(p, v)
	default:
		return amount.LossBaseline
	}
}

// goesOn adds the growth of a member.
func (x *settling) goesOn(out *Output, p *subtotal, v *amount.Value, m *Member) amount.Loss {
	if x.passes { // a series of its own has reported it
		return amount.LossNone
	}
	last := m.Last
	last.Cells = m.bounds.Coarsen(last.Cells, p.bounds)
	if out.Class == amount.ClassUpDown {
		lost := x.sum(p, *v)
		if lost == amount.LossNone {
			p.total.Add(last.Opposite())
		}
		return lost
	}
	x.difference.Reset()
	grown, ok := v.MinusIn(&x.difference, last)
	switch {
	case ok && !x.anew(m):
		if !v.HasSum { // the next one may have a sum again
			v.Sum, v.HasSum = last.Sum, last.HasSum
		}
		return x.sum(p, grown)
	case x.Start != m.Start && (x.Start == x.Time || x.Start < x.overflow.Certain): // it has begun anew, and may be known elsewhere
		return amount.LossBaseline
	default:
		return x.addAll(p, v)
	}
}

// addAll adds all of an input's value. If it has no sum yet, the whole sum is to be added later.
func (x *settling) addAll(p *subtotal, v *amount.Value) amount.Loss {
	lost := x.sum(p, v.Clone())
	if v.Shape != amount.ShapeNumber {
		v.HasSum = true
	}
	return lost
}

// sum adds to the total. A number that would make it infinite is left out as a whole, as are counts that would
// overflow; of other histograms only the sum is left out.
func (x *settling) sum(p *subtotal, v amount.Value) amount.Loss {
	if p.total.Add(v) {
		return amount.LossNone
	}
	if v.Shape == amount.ShapeNumber || !p.total.Holds(&v) {
		return amount.LossNotFinite
	}
	x.partial = true // as if it had none
	return amount.LossNone
}

// whole reports whether all of a new member's value belongs to its output: it began after the output did, and so
// recently that it cannot have been counted elsewhere, as an admitted series or a member, and been forgotten because it
// was idle or memory was short, or by a process that was killed.
func (o *Overflow) whole(out *Output, p *subtotal, start, at pcommon.Timestamp) bool {
	return start != 0 && start < at && start >= max(out.since, p.certain, o.Certain) && time.Duration(at-start) < o.Idle &&
		!slices.Contains(p.ahead, start) && !o.ahead[start]
}

// agree brings a value, and if need be a subtotal of the output, to the bounds common to all inputs.
func (out *Output) agree(p *subtotal, v *amount.Value, of *amount.Bounds) bool {
	if v.Shape != amount.ShapeHistogram {
		return true
	}
	both := out.Bounds.Load()
	for both != of {
		known := both
		if both = known.Common(of); both == nil && known != nil {
			return false
		}
		if both == known || out.Bounds.CompareAndSwap(known, both) {
			break
		}
		both = out.Bounds.Load() // another shard has changed them
	}
	if both != p.bounds {
		p.total.Cells = p.bounds.Coarsen(p.total.Cells, both)
		p.bounds = both
	}
	v.Cells = of.Coarsen(v.Cells, both)
	return true
}
