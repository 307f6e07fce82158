// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package cardinalityprocessor

import (
	"context"
	"math"
	"slices"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"
)

// Points that rules aggregate are taken out of their batch before limits are asked: they need no place. What is made of them
// needs one when it is sent. A point that is taken is gathered: noted with its batch, and settled when that is accepted.

// gathered are the points of a batch that are to be aggregated.
type gathered struct {
	intakes    []intake
	histograms []bucketed
	births     []birth
	byShard    []uint32 // of intakes, when they are settled
	leaving    []int    // points of the metric at hand whose series ends here, and goes on in an aggregate
	counts     []gatheredCount
}

// intake is a point that was taken.
type intake struct {
	key         uint64
	bits        uint64 // of the number, or where in histograms the value is that is none
	start, time pcommon.Timestamp
	rule        int32 // its aggregation's index
	birth       int32 // of a feeder that was not there, and one more
	flags       intakeFlags
}

type intakeFlags uint8

const (
	intakeFloat   intakeFlags = 1 << iota
	intakeNothing             // a stale marker, or a gauge that is no number
	intakePartial             // its sum cannot be used
)

// birth is a feeder that was not there when its first point was taken.
type birth struct {
	to     *aggregate
	cost   int64 // that is reserved
	begun  *begun
	passes bool   // its first value is said by a series of its own
	whole  bool   // all of its first value is to be added
	stays  bool   // the point does, as the last one of that series
	ousts  uint64 // a member of the overflow that ends with it
}

// gatheredCount is how many points a rule took, or could not.
type gatheredCount struct {
	taken int64
	lost  [losses]int64
}

const (
	maxGathered           = 1 << 15
	maxGatheredHistograms = 1 << 13
)

// reset lets go of all, and keeps some memory.
func (g *gathered) reset() {
	if cap(g.intakes) > maxGathered {
		g.intakes, g.byShard = nil, nil
	}
	if cap(g.histograms) > maxGatheredHistograms {
		g.histograms = nil
	}
	if cap(g.births) > maxGathered {
		g.births = nil
	}
	clear(g.histograms)
	clear(g.births)
	clear(g.counts)
	g.counts = g.counts[:0]
	g.intakes, g.histograms, g.births, g.leaving = g.intakes[:0], g.histograms[:0], g.births[:0], g.leaving[:0]
}

// gather takes the points of the metric at hand that rules aggregate, and says whether any is to be dropped.
func (b *batch) gather() (dropped bool) {
	m := b.at.m
	for _, a := range b.policy.aggregates {
		if !a.limit.match.matchMetric(&b.owner) {
			continue
		}
		if outputs, why := a.operationsOn(m); outputs == nil {
			b.refuse(a, why)
			continue
		}
		if !dropped && !a.keepInput {
			dropped = true
			b.drop = zeroed(b.drop, len(b.fps))
		}
		switch m.Type() {
		case pmetric.MetricTypeGauge:
			b.gatherNumbers(a, m.Gauge().DataPoints())
		case pmetric.MetricTypeSum:
			b.gatherNumbers(a, m.Sum().DataPoints())
		default:
			b.gatherHistograms(a)
		}
	}
	return dropped
}

// refuse counts points that a rule matches and makes nothing of. They pass.
func (b *batch) refuse(a *aggregation, why loss) {
	n := int64(0)
	for i := range b.fps {
		if !b.passesBy(a, attributesAt(b.at.m, i)) {
			n++
		}
	}
	if n > 0 {
		b.gatheredOf(a.index).lost[why] += n
		a.limit.alive.match(b.now)
	}
}

// passesBy says whether a point of a metric that a rule matches is none of its own.
func (b *batch) passesBy(a *aggregation, attributes pcommon.Map) bool {
	return len(a.limit.match.attributes) > 0 && !a.limit.match.matchPoint(&b.owner, attributes) ||
		len(b.exempt) > 0 && b.passesPoint(attributes)
}

func (b *batch) gatheredOf(index int) *gatheredCount {
	if n := len(b.policy.aggregates); len(b.gathered.counts) < n {
		b.gathered.counts = slices.Grow(b.gathered.counts, n)[:n] // all are 0
	}
	return &b.gathered.counts[index]
}

func (b *batch) gatherNumbers(a *aggregation, points pmetric.NumberDataPointSlice) {
	aggregator, epoch := b.p.aggregator, b.moment.epoch()
	class := classOf(b.at.m)
	last := class == classGauge || class == classUpDown
	picky := len(a.limit.match.attributes) > 0 || len(b.exempt) > 0
	count := b.gatheredOf(a.index)
	for i, fp := range b.fps {
		dp := points.At(i)
		if picky && b.passesBy(a, dp.Attributes()) {
			continue
		}
		in := intake{key: a.state.feederKey(fp), start: dp.StartTimestamp(), time: dp.Timestamp(), rule: int32(a.index)}
		usable := true
		if dp.ValueType() == pmetric.NumberDataPointValueTypeInt {
			in.bits = uint64(dp.IntValue())
		} else {
			f := dp.DoubleValue()
			in.bits, in.flags, usable = math.Float64bits(f), intakeFloat, finite(f)
		}
		switch {
		case ends(dp):
			in.flags |= intakeNothing
		case !usable && last:
			count.lost[lossNotFinite]++
			in.flags |= intakeNothing
		case !usable: // the next value makes up for it
			count.lost[lossNotFinite]++
			b.withhold(a, i)
			continue
		}
		if !aggregator.shards[aggregator.shardOf(in.key)].knows(in.key, epoch) { // else fast path: nothing to find out
			if in.birth = b.bear(a, i, class, in, nil); in.birth == 0 {
				continue
			}
		}
		count.taken++
		b.gathered.intakes = append(b.gathered.intakes, in)
		if !a.keepInput && (in.birth == 0 || !b.gathered.births[in.birth-1].stays) {
			b.drop[i] = true
		}
	}
}

func (b *batch) gatherHistograms(a *aggregation) {
	aggregator, epoch, m := b.p.aggregator, b.moment.epoch(), b.at.m
	class := classOf(m)
	count := b.gatheredOf(a.index)
	for i, fp := range b.fps {
		if b.passesBy(a, attributesAt(m, i)) {
			continue
		}
		w := whenAt(m, i)
		in := intake{key: a.state.feederKey(fp), start: w.start, time: w.time, rule: int32(a.index)}
		known := aggregator.shards[aggregator.shardOf(in.key)].knows(in.key, epoch)
		var v bucketed
		if w.noValue {
			in.flags = intakeNothing
		} else {
			v.value = valueAt(m, i)
			var of *bounds
			if known {
				of = aggregator.knownBounds(in.key)
			}
			partial, lost := v.read(m, i, of)
			if lost != lossNone {
				count.lost[lost]++
				if known { // the next value may make up for it
					b.withhold(a, i)
				}
				continue
			}
			if partial {
				in.flags = intakePartial
			}
		}
		if !known {
			if in.birth = b.bear(a, i, class, in, &v); in.birth == 0 {
				continue
			}
		}
		count.taken++
		in.bits = uint64(len(b.gathered.histograms))
		b.gathered.histograms = append(b.gathered.histograms, v)
		b.gathered.intakes = append(b.gathered.intakes, in)
		if !a.keepInput && (in.birth == 0 || !b.gathered.births[in.birth-1].stays) {
			b.drop[i] = true
		}
	}
}

// withhold keeps a point back that can neither be added nor pass.
func (b *batch) withhold(a *aggregation, i int) {
	if !a.keepInput {
		b.drop[i] = true
	}
}

// bear is the slow path of a series that feeds nothing yet. It finds the aggregate that it is to feed, and returns the number
// of its birth. A point that is not taken has none; it passes, unless it is dropped here.
func (b *batch) bear(a *aggregation, i int, class class, in intake, v *bucketed) (number int32) {
	m, fp := b.at.m, b.fps[i]
	aggregator, overflow := b.p.aggregator, b.p.overflow
	a.limit.alive.match(b.now)
	count := b.gatheredOf(a.index)
	earlier := aggregator.earlier(a.state, fp, b.moment.epoch())
	placed := !a.keepInput && earlier == nil && b.p.limiter.peek(fp) // what was aggregated has none, but what was made of it may
	if in.flags&intakeNothing != 0 {                                 // it ends, and nothing has begun
		if !placed {
			b.withhold(a, i)
		}
		return 0
	}
	if placed && class == classCumulative && v != nil && v.shape != shapeSummary && !v.hasSum {
		return 0 // what its series said of the sum is not known here: it stays with it until it says that again
	}
	attributes := attributesAt(m, i)
	scope, metric, identity := b.identify(a, attributes)
	of := birth{passes: placed && class == classCumulative, stays: placed && class != classDelta, begun: earlier}
	if !a.keepInput && !placed && earlier == nil && class.keeps() {
		seen := overflow.view(fp)
		switch {
		case seen.member == nil:
		case seen.own != nil || seen.pinned: // it has just been on its way to the overflow
			return 0
		case seen.start == in.start:
			of.ousts = fp
			of.begun = &begun{start: seen.start, time: seen.time, last: bucketed{seen.last, seen.bounds}}
			if class == classUpDown {
				of.begun = nil
			}
		}
	}
	of.whole = class == classCumulative && of.begun == nil && !of.passes && aggregator.whole(a.state, in.start, in.time, b.now)
	cost := int64(feederCost + portionCost)
	if v != nil && class == classCumulative {
		cost += histogramCost + v.cost()
	}
	to, reserved := aggregator.pin(a.state, identity, cost, func() *aggregate {
		g := b.newAggregate(a, attributes, outputKeys{scope, metric}, class)
		if of.whole {
			g.start = in.start
		}
		if v != nil {
			g.bounds.Store(v.bounds)
		}
		return g
	})
	if to == nil {
		count.lost[lossState]++
		if earlier != nil && class == classCumulative { // it would say once more what it has said there
			b.withhold(a, i)
		}
		if identity == fp && a.nameOf(b.owner.metric, class, operationSum) == b.owner.metric { // it would be taken for what is made
			b.withhold(a, i)
		}
		return 0
	}
	of.to, of.cost = to, reserved
	if v != nil {
		if known := to.bounds.Load(); known != nil && known.common(v.bounds) == nil {
			aggregator.used.Add(-reserved)
			aggregator.unpin([]birth{of})
			count.lost[lossBounds]++
			if earlier != nil && class == classCumulative {
				b.withhold(a, i)
			}
			return 0
		}
	}
	b.gathered.births = append(b.gathered.births, of)
	if of.stays {
		b.gathered.leaving = append(b.gathered.leaving, i)
	}
	return int32(len(b.gathered.births))
}

// identify hashes what stays of a series: as that of the scope, the metric, and the whole.
func (b *batch) identify(a *aggregation, attributes pcommon.Map) (scope, metric, identity uint64) {
	resource := a.labels.hash(b.hash, a.labels.resource, b.owner.resource)
	if b.at.seed != 0 {
		resource = mix(resource, b.at.seed)
	}
	scope = b.hash.scope(resource, b.at.sm.Scope())
	metric = b.hash.metric(scope, b.at.m)
	return scope, metric, settled(mix(metric, a.labels.hash(b.hash, a.labels.attribute, attributes)))
}

// newAggregate copies what stays of the series of the point at hand.
func (b *batch) newAggregate(a *aggregation, attributes pcommon.Map, keys outputKeys, class class) *aggregate {
	g := &aggregate{rule: a, data: pmetric.NewMetrics(), tenant: b.at.tenant, keys: keys, class: class}
	rm := g.data.ResourceMetrics().AppendEmpty()
	rm.SetSchemaUrl(b.at.rm.SchemaUrl())
	copyKept(rm.Resource().Attributes(), b.owner.resource, func(key string, _ pcommon.Value) bool {
		return a.labels.keeps(a.labels.resource, key)
	})
	sm := rm.ScopeMetrics().AppendEmpty()
	sm.SetSchemaUrl(b.at.sm.SchemaUrl())
	b.at.sm.Scope().CopyTo(sm.Scope())
	g.metric = sm.Metrics().AppendEmpty()
	g.metric.SetName(b.at.m.Name())
	g.metric.SetUnit(b.at.m.Unit())
	g.metric.SetDescription(b.at.m.Description())
	b.at.m.Metadata().CopyTo(g.metric.Metadata())
	copyKept(emptyPoint(g.metric, b.at.m), attributes, func(key string, _ pcommon.Value) bool {
		return a.labels.keeps(a.labels.attribute, key)
	})
	g.outputs, _ = a.operationsOn(g.metric)
	var sizer pmetric.ProtoMarshaler
	g.cost = g.weight(sizer.MetricsSize(g.data), 0)
	return g
}

// weight is the memory of an aggregate whose data is of a size, and of all that its total may become.
func (g *aggregate) weight(size, upper int) int64 {
	n := aggregateCost + 2*int64(size) + g.tenant.size()
	const copies = 3 // of buckets: the total's, a portion's, and those that were last sent
	switch g.metric.Type() {
	case pmetric.MetricTypeHistogram:
		n += copies * bucketCost * int64(max(upper, 16))
	case pmetric.MetricTypeExponentialHistogram:
		n += copies * bucketCost * 2 * maxBuckets
	default:
	}
	return n
}

// cost is the memory of a value's buckets.
func (v *value) cost() int64 {
	return bucketCost * int64(len(v.cells)+len(v.positive.counts)+len(v.negative.counts))
}

// reportGathered counts what was taken, and what could not be.
func (b *batch) reportGathered(ctx context.Context) {
	for i := range b.gathered.counts {
		count := &b.gathered.counts[i]
		a := b.policy.aggregates[i]
		if count.taken > 0 {
			b.p.telemetry.ProcessorCardinalityAggregatedPoints.Add(ctx, count.taken, a.taken)
		}
		for why, n := range count.lost {
			if n > 0 && why != int(lossNone) {
				b.p.telemetry.ProcessorCardinalityUnaggregatedPoints.Add(ctx, n, a.lost[why])
			}
		}
	}
}
