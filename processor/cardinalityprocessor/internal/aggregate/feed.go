// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package aggregate

import (
	"slices"
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"

	"github.com/godwit-otel/godwit/processor/cardinalityprocessor/internal/amount"
	"github.com/godwit-otel/godwit/processor/cardinalityprocessor/internal/overflow"
)

// Gathered points are settled when their batch is accepted, shard by shard, against the values that feeders have by
// then. If two batches are accepted in another order than they came in, the earlier one has nothing to add to counters.

// Feeding holds what is needed to settle a batch.
type Feeding struct {
	*Gathered

	Aggregator *Aggregator
	epoch      uint32
	now        pcommon.Timestamp
	latest     pcommon.Timestamp
}

func (f *Feeding) count(rule int32) *gatheredCount { return f.Of(int(rule)) }

// settledAtOnce is how many points are settled while others wait for a shard.
const settledAtOnce = 256

// Feed settles the points of an accepted batch.
func (a *Aggregator) Feed(g *Gathered, epoch uint32, now time.Time) {
	if len(g.Intakes) == 0 {
		return
	}
	f := &Feeding{Gathered: g, Aggregator: a, epoch: epoch, now: pcommon.NewTimestampFromTime(now), latest: latestOf(now)}
	var begins [1<<maxFeederShardBits + 1]uint32 // where each shard's part of byShard begins; and where the last one ends
	for i := range f.Intakes {
		begins[a.ShardOf(f.Intakes[i].Key)+1]++
	}
	for i := range a.Shards {
		begins[i+1] += begins[i]
	}
	at := begins
	f.byShard = slices.Grow(f.byShard[:0], len(f.Intakes))[:len(f.Intakes)]
	for i := range f.Intakes {
		shard := a.ShardOf(f.Intakes[i].Key)
		f.byShard[at[shard]] = uint32(i)
		at[shard]++
	}
	first := int(a.turn.Add(1)) // otherwise all batches would queue for the same shard
	for i := range a.Shards {
		shard := (first + i) % len(a.Shards)
		for some := f.byShard[begins[shard]:begins[shard+1]]; len(some) > 0; { // not slices.Chunk, which allocates
			n := min(len(some), settledAtOnce)
			f.shard(shard, some[:n])
			some = some[n:]
		}
	}
	if len(f.Births) > 0 {
		a.unpin(f.Births)
	}
}

// Discard drops feeders that were to be added.
func (a *Aggregator) Discard(births []Birth) {
	if len(births) == 0 {
		return
	}
	for i := range births {
		a.release(births[i].To.account, births[i].Cost)
	}
	a.unpin(births)
}

func (f *Feeding) shard(shard int, some []uint32) {
	s := &f.Aggregator.Shards[shard]
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, i := range some {
		in := &f.Intakes[i]
		if lost := f.settle(s, shard, in); lost != amount.LossNone {
			f.count(in.Rule).Lost[lost]++
		}
	}
}

// settle settles one point. The lock of its shard is held, here and below.
func (f *Feeding) settle(s *feederShard, shard int, in *Intake) amount.Loss {
	rows, row := s.rows.Load(), in.row
	if !rows.is(row, in.Key) { // it was not there, or has moved
		row = rows.find(in.Key)
	}
	if in.Birth > 0 {
		if row == noRow {
			row = f.Bear(s, shard, in)
			rows = s.rows.Load()
		} else { // another batch added it first
			of := &f.Births[in.Birth-1]
			f.Aggregator.release(of.To.account, of.Cost)
		}
	}
	if row == noRow { // its batch was in flight for so long that the feeder was forgotten
		return amount.LossState
	}
	feeder := rows.feeder(row)
	lost := f.add(s, &feeder, in)
	rows.put(row, feeder)
	return lost
}

// add adds the value of a point.
func (f *Feeding) add(s *feederShard, feeder *feeder, in *Intake) amount.Loss {
	p := &s.portions[feeder.portion]
	switch {
	case p.form != amount.ShapeNumber:
		return f.histogram(s, feeder, p, in)
	case in.Flags&IntakeNothing != 0:
		if p.class != amount.ClassDelta {
			return p.ends(feeder, in)
		}
		return amount.LossNone
	}
	v := amount.NumberOf(in.Bits, in.Flags&IntakeFloat != 0)
	switch p.class {
	case amount.ClassDelta:
		if !p.sum.AddNumber(&v) {
			return amount.LossNotFinite
		}
		p.points++
		p.wake(feeder)
		return amount.LossNone
	case amount.ClassCumulative:
		return f.counter(feeder, p, in, v)
	default:
		if in.Time < feeder.time {
			return amount.LossOld
		}
		f.keep(feeder, p, in)
		return amount.LossNone
	}
}

// anew reports whether a point says that its feeder has begun anew.
func (f *Feeding) anew(feeder *feeder, in *Intake) bool {
	return amount.When{Start: in.Start, Time: in.Time}.Anew(amount.When{Start: feeder.start, Time: feeder.time}, f.now)
}

// ends marks the end of a feeder, unless it has had a later point.
func (p *portion) ends(feeder *feeder, in *Intake) amount.Loss {
	if in.Time != 0 && in.Time < feeder.time {
		return amount.LossOld
	}
	p.rest(feeder)
	return amount.LossNone
}

// Bear adds a feeder, and returns its row.
func (f *Feeding) Bear(s *feederShard, shard int, in *Intake) uint32 {
	of := &f.Births[in.Birth-1]
	portion, fresh := s.portionOf(of.To, shard)
	if !fresh {
		f.Aggregator.release(of.To.account, PortionCost)
	}
	feeder := feeder{portion: portion}
	if p := &s.portions[portion]; p.of.shape() == amount.ShapeNumber {
		if of.Begun != nil {
			feeder.start, feeder.time = of.Begun.Start, of.Begun.Time
			feeder.remember(of.Begun.Last.Numeric)
		}
	} else if p.of.Class == amount.ClassCumulative {
		feeder.bits = uint64(s.keep())
		h := histogramFeeder{cost: of.Cost - FeederCost - PortionCost}
		if of.Begun != nil {
			if both, ok := of.To.agree(of.Begun.Last.Bounds); ok { // otherwise its growth is unknown
				of.Begun.Last.Bring(both)
				feeder.start, feeder.time, feeder.flags = of.Begun.Start, of.Begun.Time, feederBegun
				h.last, h.bounds = of.Begun.Last.Value, both
			}
		}
		s.histograms[feeder.bits] = h
	}
	s.portions[portion].feeders++
	s.portions[portion].awake++
	of.To.state.Feeders.Add(1)
	return s.insert(in.Key, feeder, f.epoch)
}

// keep remembers a feeder's last value.
func (f *Feeding) keep(feeder *feeder, p *portion, in *Intake) {
	p.wake(feeder)
	p.points++
	feeder.start, feeder.time = in.Start, min(in.Time, f.latest)
	feeder.remember(amount.NumberOf(in.Bits, in.Flags&IntakeFloat != 0))
}

// counter adds the growth of a counter.
func (f *Feeding) counter(feeder *feeder, p *portion, in *Intake, v amount.Numeric) amount.Loss {
	passes := in.Birth > 0 && f.Births[in.Birth-1].Passes
	begins := feeder.flags&feederBegun == 0
	if !begins && in.Time <= feeder.time {
		return amount.LossOld
	}
	last, anew := feeder.number(), f.anew(feeder, in)
	lost := amount.LossNone
	switch {
	case passes: // its own series has reported it
		v = amount.Numeric{IsFloat: v.IsFloat}
	case begins && in.Birth > 0 && f.Births[in.Birth-1].Whole:
	case begins, anew && in.Start == in.Time: // of unknown beginning
		v, lost = amount.Numeric{IsFloat: v.IsFloat}, amount.LossBaseline
	case !anew && !v.Below(&last):
		v.SubNumber(&last)
	default: // it began anew
	}
	if v.IsFloat || v.Integer != 0 {
		if !p.sum.AddNumber(&v) {
			return amount.LossNotFinite
		}
	}
	f.keep(feeder, p, in)
	return lost
}

// histogram adds a value that is not a number.
func (f *Feeding) histogram(s *feederShard, feeder *feeder, p *portion, in *Intake) amount.Loss {
	counts := p.of.Class == amount.ClassCumulative
	begins := feeder.flags&feederBegun == 0
	switch {
	case in.Flags&IntakeNothing != 0:
		if counts {
			return p.ends(feeder, in)
		}
		return amount.LossNone
	case counts && !begins && in.Time <= feeder.time:
		return amount.LossOld
	}
	of := &f.Histograms[in.Bits]
	both, ok := p.of.agree(of.Bounds)
	if !ok {
		return amount.LossBounds
	}
	v := of.Value
	v.Cells = of.Bounds.Coarsen(v.Cells, both)
	lost := amount.LossNone
	if in.Flags&IntakePartial != 0 {
		f.count(in.Rule).Lost[amount.LossNotFinite]++
	} else if !v.HasSum {
		f.count(in.Rule).Lost[amount.LossNoSum]++
	}
	if !counts {
		p.wake(feeder)
		p.points++
		return p.add(v, both)
	}
	h := &s.histograms[feeder.bits]
	if growth := HistogramCost + v.Cost() - h.cost; growth > 0 && !f.Aggregator.reserve(p.of.account, growth) {
		return amount.LossState
	} else if growth < 0 {
		f.Aggregator.release(p.of.account, -growth)
	}
	last := h.last
	last.Cells = h.bounds.Coarsen(last.Cells, both)
	h.cost = HistogramCost + v.Cost()
	passes := in.Birth > 0 && f.Births[in.Birth-1].Passes
	f.difference.Reset()
	anew := f.anew(feeder, in)
	switch grown, ok := v.MinusIn(&f.difference, last); {
	case passes:
		p.add(v.None(), both)
	case begins && in.Birth > 0 && f.Births[in.Birth-1].Whole:
		lost = p.addAll(&v, both)
	case begins, anew && in.Start == in.Time:
		p.add(v.None(), both)
		lost = amount.LossBaseline
	case !anew && ok:
		if !v.HasSum { // the next one may have a sum again
			v.Sum, v.HasSum = last.Sum, last.HasSum
		}
		lost = p.add(grown, both)
	default:
		lost = p.addAll(&v, both)
	}
	h.last, h.bounds = v, both
	p.wake(feeder)
	p.points++
	feeder.start, feeder.time = in.Start, min(in.Time, f.latest)
	feeder.flags |= feederBegun
	return lost
}

// addAll adds all of a value. If it has no sum yet, the whole sum is to be added later.
func (p *portion) addAll(v *amount.Value, in *amount.Bounds) amount.Loss {
	lost := p.add(v.Clone(), in)
	v.HasSum = true
	return lost
}

// add adds a value in the aggregate's current bounds. A sum that would become infinite is left out.
func (p *portion) add(v amount.Value, in *amount.Bounds) amount.Loss {
	if p.histogram == nil {
		p.histogram = &amount.Bucketed{Bounds: in}
	}
	p.histogram.Bring(in)
	if !p.histogram.Add(v) {
		return amount.LossNotFinite
	}
	return amount.LossNone
}

// agree returns the bounds that an aggregate and a value have in common, which become the aggregate's.
func (g *Aggregate) agree(of *amount.Bounds) (*amount.Bounds, bool) {
	for {
		known := g.Bounds.Load()
		both := known.Common(of)
		switch {
		case both == nil && known != nil:
			return nil, false
		case both == known || g.Bounds.CompareAndSwap(known, both):
			return both, true
		}
	}
}

// latestOf returns the latest time accepted from a feeder whose clock is ahead. A point from later than that, by
// mistake, must not make all points after it too old.
func latestOf(now time.Time) pcommon.Timestamp {
	return pcommon.NewTimestampFromTime(now.Add(overflow.MostAhead))
}
