// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package cardinalityprocessor

import (
	"slices"
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"
)

// What was gathered is settled when its batch is accepted: against the values that feeders had by then, shard by shard. Of
// two batches that are accepted in another order than they came in, the earlier one has nothing to add of what counts up.

// feeding is what it takes to settle a batch.
type feeding struct {
	*gathered

	aggregator *aggregator
	epoch      uint32
	latest     pcommon.Timestamp
	batch      *batch
}

func (f *feeding) count(rule int32) *gatheredCount { return f.batch.gatheredOf(int(rule)) }

// settledAtOnce is how many points are settled while others wait for a shard.
const settledAtOnce = 256

// settle lets a batch feed.
func (a *aggregator) settle(f *feeding) {
	if len(f.intakes) == 0 {
		return
	}
	var begins [1<<maxFeederShardBits + 1]uint32 // in byShard, by shard; and where the last one ends
	for i := range f.intakes {
		begins[a.shardOf(f.intakes[i].key)+1]++
	}
	for i := range a.shards {
		begins[i+1] += begins[i]
	}
	at := begins
	f.byShard = slices.Grow(f.byShard[:0], len(f.intakes))[:len(f.intakes)]
	for i := range f.intakes {
		shard := a.shardOf(f.intakes[i].key)
		f.byShard[at[shard]] = uint32(i)
		at[shard]++
	}
	first := int(a.turn.Add(1)) // or all would queue for the same
	for i := range a.shards {
		shard := (first + i) % len(a.shards)
		for some := f.byShard[begins[shard]:begins[shard+1]]; len(some) > 0; { // not slices.Chunk, which allocates
			n := min(len(some), settledAtOnce)
			f.shard(shard, some[:n])
			some = some[n:]
		}
	}
	if len(f.births) > 0 {
		a.unpin(f.births)
	}
}

// spurn forgets what was gathered.
func (a *aggregator) spurn(g *gathered) {
	if len(g.births) == 0 {
		return
	}
	for i := range g.births {
		a.used.Add(-g.births[i].cost)
	}
	a.unpin(g.births)
}

func (f *feeding) shard(shard int, some []uint32) {
	s := &f.aggregator.shards[shard]
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, i := range some {
		in := &f.intakes[i]
		if lost := f.settle(s, shard, in); lost != lossNone {
			f.count(in.rule).lost[lost]++
		}
	}
}

// settle settles one point. The lock of its shard is held, here and below.
func (f *feeding) settle(s *feederShard, shard int, in *intake) loss {
	slots := s.slots.Load()
	at := slots.find(in.key)
	if in.birth > 0 {
		if at < 0 {
			slots, at = f.bear(s, shard, in)
		} else { // another batch came first
			f.aggregator.used.Add(-f.births[in.birth-1].cost)
		}
	}
	if at < 0 { // it was on its way for so long that it was forgotten
		return lossState
	}
	feeder := &slots.feeders[at]
	p := &s.portions[feeder.portion]
	switch {
	case p.of.shape() != shapeNumber:
		return f.histogram(s, feeder, p, in)
	case in.flags&intakeNothing != 0:
		if p.of.class != classDelta {
			p.rest(feeder)
		}
		return lossNone
	}
	v := numberOf(in.bits, in.flags&intakeFloat != 0)
	switch p.of.class {
	case classDelta:
		if !p.sum.addNumber(&v) {
			return lossNotFinite
		}
		p.points++
		p.wake(feeder)
		return lossNone
	case classCumulative:
		return f.counter(feeder, p, in, v)
	default:
		if in.time < feeder.time {
			return lossOld
		}
		f.keep(feeder, p, in)
		return lossNone
	}
}

// bear adds a feeder.
func (f *feeding) bear(s *feederShard, shard int, in *intake) (*feederSlots, int) {
	of := &f.births[in.birth-1]
	portion, fresh := s.portionOf(of.to, shard)
	if !fresh {
		f.aggregator.used.Add(-portionCost)
	}
	feeder := feeder{portion: portion}
	if p := &s.portions[portion]; p.of.shape() == shapeNumber {
		if of.begun != nil {
			feeder.start, feeder.time = of.begun.start, of.begun.time
			feeder.remember(of.begun.last.numeric)
		}
	} else if p.of.class == classCumulative {
		feeder.bits = uint64(s.keep())
		h := histogramFeeder{cost: of.cost - feederCost - portionCost}
		if of.begun != nil {
			if both, ok := of.to.agree(of.begun.last.bounds); ok { // else it is not known what it has grown by
				of.begun.last.bring(both)
				feeder.start, feeder.time, feeder.flags = of.begun.start, of.begun.time, feederBegun
				h.last, h.bounds = of.begun.last.value, both
			}
		}
		s.histograms[feeder.bits] = h
	}
	s.portions[portion].feeders++
	s.portions[portion].awake++
	of.to.state.feeders.Add(1)
	return s.insert(in.key, feeder, f.epoch)
}

// keep remembers what a feeder said.
func (f *feeding) keep(feeder *feeder, p *portion, in *intake) {
	p.wake(feeder)
	p.points++
	feeder.start, feeder.time = in.start, min(in.time, f.latest)
	feeder.remember(numberOf(in.bits, in.flags&intakeFloat != 0))
}

// counter adds what a counter has grown by.
func (f *feeding) counter(feeder *feeder, p *portion, in *intake, v numeric) loss {
	passes := in.birth > 0 && f.births[in.birth-1].passes
	begins := feeder.flags&feederBegun == 0
	if !begins && in.time <= feeder.time {
		return lossOld
	}
	last := feeder.number()
	lost := lossNone
	switch {
	case passes: // its own series has said it
		v = numeric{isFloat: v.isFloat}
	case begins && in.birth > 0 && f.births[in.birth-1].whole:
	case begins, in.start != feeder.start && in.start == in.time: // of unknown beginning
		v, lost = numeric{isFloat: v.isFloat}, lossBaseline
	case in.start == feeder.start && !v.below(&last):
		v.subNumber(&last)
	default: // it began anew
	}
	if v.isFloat || v.integer != 0 {
		if !p.sum.addNumber(&v) {
			return lossNotFinite
		}
	}
	f.keep(feeder, p, in)
	return lost
}

// histogram adds a value that is no number.
func (f *feeding) histogram(s *feederShard, feeder *feeder, p *portion, in *intake) loss {
	counts := p.of.class == classCumulative
	begins := feeder.flags&feederBegun == 0
	switch {
	case in.flags&intakeNothing != 0:
		if counts {
			p.rest(feeder)
		}
		return lossNone
	case counts && !begins && in.time <= feeder.time:
		return lossOld
	}
	of := &f.histograms[in.bits]
	both, ok := p.of.agree(of.bounds)
	if !ok {
		return lossBounds
	}
	v := of.value
	v.cells = of.bounds.coarsen(v.cells, both)
	lost := lossNone
	if in.flags&intakePartial != 0 {
		f.count(in.rule).lost[lossNotFinite]++
	} else if !v.hasSum {
		f.count(in.rule).lost[lossNoSum]++
	}
	if !counts {
		p.wake(feeder)
		p.points++
		return p.add(v, both)
	}
	h := &s.histograms[feeder.bits]
	if growth := histogramCost + v.cost() - h.cost; growth > 0 && !f.aggregator.reserve(growth) {
		return lossState
	} else if growth < 0 {
		f.aggregator.used.Add(growth)
	}
	last := h.last
	last.cells = h.bounds.coarsen(last.cells, both)
	h.cost = histogramCost + v.cost()
	passes := in.birth > 0 && f.births[in.birth-1].passes
	switch grown, ok := v.minus(last); {
	case passes:
		p.add(v.none(), both)
	case begins && in.birth > 0 && f.births[in.birth-1].whole:
		lost = p.addAll(&v, both)
	case begins, in.start != feeder.start && in.start == in.time:
		p.add(v.none(), both)
		lost = lossBaseline
	case in.start == feeder.start && ok:
		if !v.hasSum { // the next one may have it again
			v.sum, v.hasSum = last.sum, last.hasSum
		}
		lost = p.add(grown, both)
	default:
		lost = p.addAll(&v, both)
	}
	h.last, h.bounds = v, both
	p.wake(feeder)
	p.points++
	feeder.start, feeder.time = in.start, min(in.time, f.latest)
	feeder.flags |= feederBegun
	return lost
}

// addAll adds all of a value. If it has no sum yet then all of that is to be added later.
func (p *portion) addAll(v *value, in *bounds) loss {
	lost := p.add(v.clone(), in)
	v.hasSum = true
	return lost
}

// add adds a value in the bounds that the aggregate has now. A sum that would be infinite is left out.
func (p *portion) add(v value, in *bounds) loss {
	if p.histogram == nil {
		p.histogram = &bucketed{bounds: in}
	}
	p.histogram.bring(in)
	if !p.histogram.add(v) {
		return lossNotFinite
	}
	return lossNone
}

// none is a value of the same form with nothing in it: it makes known what there will be.
func (v *value) none() value {
	return value{
		shape: v.shape, hasSum: v.hasSum, cells: make([]uint64, len(v.cells)), scale: v.scale, zeroThreshold: v.zeroThreshold,
	}
}

// bring brings a value to fewer bounds.
func (v *bucketed) bring(to *bounds) {
	v.cells, v.bounds = v.bounds.coarsen(v.cells, to), to
}

// agree returns the bounds that an aggregate and a value have in common, which are the aggregate's from here on.
func (g *aggregate) agree(of *bounds) (*bounds, bool) {
	for {
		known := g.bounds.Load()
		both := known.common(of)
		switch {
		case both == nil && known != nil:
			return nil, false
		case both == known || g.bounds.CompareAndSwap(known, both):
			return both, true
		}
	}
}

// latestOf is by how much the clock of a feeder may be ahead. A point from later than that, by mistake, must not make all that
// come after it too old.
func latestOf(now time.Time) pcommon.Timestamp {
	return pcommon.NewTimestampFromTime(now.Add(mostAhead))
}
