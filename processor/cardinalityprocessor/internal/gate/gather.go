// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package gate

import (
	"context"
	"math"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/godwit-otel/godwit/processor/cardinalityprocessor/internal/aggregate"
	"github.com/godwit-otel/godwit/processor/cardinalityprocessor/internal/amount"
	"github.com/godwit-otel/godwit/processor/cardinalityprocessor/internal/ident"
	"github.com/godwit-otel/godwit/processor/cardinalityprocessor/internal/policy"
)

// Points that rules aggregate are removed from their batch before limits are checked: they need no place. The
// aggregates need one when they are sent. A point that is removed is gathered: recorded with its batch, and settled
// when that is accepted.

// gather takes the points of the current metric that rules aggregate, and reports whether any is to be dropped.
func (b *Batch) gather() (dropped bool) {
	m := b.at.m
	for _, a := range b.aggregations {
		if !a.Limit.Match.MatchMetric(&b.Owner) {
			continue
		}
		if outputs, why := a.OperationsOn(m); outputs == nil {
			b.refuse(a, why)
			continue
		}
		if !dropped && !a.KeepInput {
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

// refuse counts points that a rule matches but cannot aggregate. They pass.
func (b *Batch) refuse(a *aggregate.Rule, why amount.Loss) {
	n := int64(0)
	for i := range b.fps {
		if !b.passesBy(a, amount.AttributesAt(b.at.m, i)) {
			n++
		}
	}
	if n > 0 {
		b.gathered.Of(a.Index).Lost[why] += n
		a.Limit.Alive.Match(b.Now)
	}
}

// passesBy reports whether a point of a metric that a rule matches does not match.
func (b *Batch) passesBy(a *aggregate.Rule, attributes pcommon.Map) bool {
	return len(a.Limit.Match.Attributes) > 0 && !a.Limit.Match.MatchPoint(&b.Owner, attributes) ||
		len(b.exempt) > 0 && b.passesPoint(attributes)
}

func (b *Batch) gatherNumbers(a *aggregate.Rule, points pmetric.NumberDataPointSlice) {
	aggregator, epoch := b.g.Aggregator, b.Moment.Epoch()
	class := amount.ClassOf(b.at.m)
	last := class == amount.ClassGauge || class == amount.ClassUpDown
	picky := len(a.Limit.Match.Attributes) > 0 || len(b.exempt) > 0
	count := b.gathered.Of(a.Index)
	for i, fp := range b.fps {
		dp := points.At(i)
		if picky && b.passesBy(a, dp.Attributes()) {
			continue
		}
		in := aggregate.Intake{Key: a.State.FeederKey(fp), Start: dp.StartTimestamp(), Time: dp.Timestamp(), Rule: int32(a.Index)}
		usable := true
		if dp.ValueType() == pmetric.NumberDataPointValueTypeInt {
			in.Bits = uint64(dp.IntValue())
		} else {
			f := dp.DoubleValue()
			in.Bits, in.Flags, usable = math.Float64bits(f), aggregate.IntakeFloat, amount.Finite(f)
		}
		switch {
		case amount.Ends(dp):
			in.Flags |= aggregate.IntakeNothing
		case !usable && last:
			count.Lost[amount.LossNotFinite]++
			in.Flags |= aggregate.IntakeNothing
		case !usable: // the next value makes up for it
			count.Lost[amount.LossNotFinite]++
			b.withhold(a, i)
			continue
		}
		if !aggregator.Knows(&in, epoch, &b.gathered.Trail) { // else fast path: nothing to look up
			if in.Birth = b.startFeeding(a, i, class, in, nil); in.Birth == 0 {
				continue
			}
		}
		count.Taken++
		b.gathered.Intakes = append(b.gathered.Intakes, in)
		if !a.KeepInput && (in.Birth == 0 || !b.gathered.Births[in.Birth-1].Stays) {
			b.drop[i] = true
		}
	}
}

func (b *Batch) gatherHistograms(a *aggregate.Rule) {
	aggregator, epoch, m := b.g.Aggregator, b.Moment.Epoch(), b.at.m
	class := amount.ClassOf(m)
	count := b.gathered.Of(a.Index)
	for i, fp := range b.fps {
		if b.passesBy(a, amount.AttributesAt(m, i)) {
			continue
		}
		w := amount.WhenAt(m, i)
		in := aggregate.Intake{Key: a.State.FeederKey(fp), Start: w.Start, Time: w.Time, Rule: int32(a.Index)}
		known := aggregator.Knows(&in, epoch, &b.gathered.Trail)
		var v amount.Bucketed
		if w.NoValue {
			in.Flags = aggregate.IntakeNothing
		} else {
			v.Value = amount.ValueAt(m, i)
			var of *amount.Bounds
			if known {
				of = aggregator.KnownBounds(in.Key)
			}
			partial, lost := v.Read(m, i, of)
			if lost != amount.LossNone {
				count.Lost[lost]++
				if known { // the next value may make up for it
					b.withhold(a, i)
				}
				continue
			}
			if partial {
				in.Flags = aggregate.IntakePartial
			}
		}
		if !known {
			if in.Birth = b.startFeeding(a, i, class, in, &v); in.Birth == 0 {
				continue
			}
		}
		count.Taken++
		in.Bits = uint64(len(b.gathered.Histograms))
		b.gathered.Histograms = append(b.gathered.Histograms, v)
		b.gathered.Intakes = append(b.gathered.Intakes, in)
		if !a.KeepInput && (in.Birth == 0 || !b.gathered.Births[in.Birth-1].Stays) {
			b.drop[i] = true
		}
	}
}

// withhold holds back a point that can neither be added nor pass.
func (b *Batch) withhold(a *aggregate.Rule, i int) {
	if !a.KeepInput {
		b.drop[i] = true
	}
}

// startFeeding is the slow path of a series that does not feed an aggregate yet. It finds the aggregate that it is to
// feed, and returns the number of its birth. A point that is not taken has none; it passes, unless it is dropped here.
func (b *Batch) startFeeding(a *aggregate.Rule, i int, class amount.Class, in aggregate.Intake, v *amount.Bucketed) (number int32) {
	m, fp := b.at.m, b.fps[i]
	aggregator, overflow := b.g.Aggregator, b.g.Overflow
	a.Limit.Alive.Match(b.Now)
	count := b.gathered.Of(a.Index)
	earlier, made := aggregator.Earlier(a.State, fp, b.Moment.Epoch())
	placed := !a.KeepInput && !made && b.g.Limiter.Peek(fp) // it passes by itself, or its output has the place
	if placed {
		earlier = nil // an earlier version let it pass, or it was gone for a time
	}
	if in.Flags&aggregate.IntakeNothing != 0 { // it ends before it began
		if !placed {
			b.withhold(a, i)
		}
		return 0
	}
	if placed && class == amount.ClassCumulative && v != nil && v.Shape != amount.ShapeSummary && !v.HasSum {
		return 0 // its part of an earlier sum is not known: it continues as before until it restarts
	}
	attributes := amount.AttributesAt(m, i)
	scope, metric, identity := b.identify(a, attributes)
	of := aggregate.Birth{Passes: placed && class == amount.ClassCumulative, Stays: placed && class != amount.ClassDelta, Begun: earlier}
	if !a.KeepInput && !placed && class.Keeps() {
		seen := overflow.View(fp)
		switch {
		case seen.Member == nil || earlier != nil && (made || class != amount.ClassUpDown && seen.Time <= earlier.Time):
		case seen.Own != nil || seen.Pinned: // it was just being moved to the overflow
			return 0
		case class == amount.ClassUpDown || !amount.When{Start: in.Start, Time: in.Time}.Anew(seen.When(), pcommon.Timestamp(b.Now)):
			of.Ousts = fp
			of.Begun = &aggregate.Begun{Start: seen.Start, Time: seen.Time, Last: amount.Bucketed{Value: seen.Last, Bounds: seen.Bounds}}
			if class == amount.ClassUpDown {
				of.Begun = nil
			}
		}
	}
	of.Whole = class == amount.ClassCumulative && of.Begun == nil && !of.Passes && aggregator.Whole(a.State, in.Start, in.Time, b.Now)
	cost := int64(aggregate.FeederCost + aggregate.PortionCost)
	if v != nil && class == amount.ClassCumulative {
		cost += aggregate.HistogramCost + v.Cost()
	}
	wanted := aggregate.Wanted{Identity: identity, From: m, Twins: func() []uint64 { return b.twins(a, attributes, scope) }}
	to, reserved, lost := aggregator.Pin(a.State, wanted, cost, func() *aggregate.Aggregate {
		g := b.newAggregate(a, attributes, ident.Keys{Scope: scope, Metric: metric}, class)
		if of.Whole {
			g.Start = in.Start
		}
		if v != nil {
			g.Bounds.Store(v.Bounds)
		}
		return g
	})
	if to == nil {
		count.Lost[lost]++
		if earlier != nil && class == amount.ClassCumulative { // it would repeat its contribution there
			b.withhold(a, i)
		}
		if identity == fp && a.NameOf(b.Owner.Metric, class, policy.OperationSum) == b.Owner.Metric { // it would be mistaken for the aggregate
			b.withhold(a, i)
		}
		return 0
	}
	of.To, of.Cost = to, reserved
	if v != nil {
		if known := to.Bounds.Load(); known != nil && known.Common(v.Bounds) == nil {
			aggregator.Discard([]aggregate.Birth{of})
			count.Lost[amount.LossBounds]++
			if earlier != nil && class == amount.ClassCumulative {
				b.withhold(a, i)
			}
			return 0
		}
	}
	b.gathered.Births = append(b.gathered.Births, of)
	if of.Stays {
		b.gathered.Leaving = append(b.gathered.Leaving, i)
	}
	return int32(len(b.gathered.Births))
}

// identify hashes what remains of a series: the identity of its scope, the metric, and the whole.
func (b *Batch) identify(a *aggregate.Rule, attributes pcommon.Map) (scope, metric, identity uint64) {
	resource := a.Labels.Hash(b.Hash, a.Labels.Resource, b.Owner.Resource)
	if b.at.seed != 0 {
		resource = ident.Mix(resource, b.at.seed)
	}
	scope = b.Hash.Scope(resource, b.at.sm.Scope())
	metric = b.Hash.Metric(scope, b.at.m)
	return scope, metric, ident.Settled(ident.Mix(metric, a.Labels.Hash(b.Hash, a.Labels.Attribute, attributes)))
}

// twins returns the identities of what remains of series that only differ in the type of their numbers.
func (b *Batch) twins(a *aggregate.Rule, attributes pcommon.Map, scope uint64) (all []uint64) {
	rest := a.Labels.Hash(b.Hash, a.Labels.Attribute, attributes)
	for _, kind := range amount.NumberKinds() {
		if kind != amount.KindOf(b.at.m) {
			all = append(all, ident.Settled(ident.Mix(b.Hash.MetricOfKind(scope, b.at.m, kind), rest)))
		}
	}
	return all
}

// newAggregate copies what remains of the series of the current point.
func (b *Batch) newAggregate(a *aggregate.Rule, attributes pcommon.Map, keys ident.Keys, class amount.Class) *aggregate.Aggregate {
	g := &aggregate.Aggregate{Rule: a, Data: pmetric.NewMetrics(), Tenant: b.at.tenant, Keys: keys, Class: class}
	rm := g.Data.ResourceMetrics().AppendEmpty()
	rm.SetSchemaUrl(b.at.rm.SchemaUrl())
	amount.CopyKept(rm.Resource().Attributes(), b.Owner.Resource, func(key string, _ pcommon.Value) bool {
		return a.Labels.Keeps(a.Labels.Resource, key)
	})
	sm := rm.ScopeMetrics().AppendEmpty()
	sm.SetSchemaUrl(b.at.sm.SchemaUrl())
	b.at.sm.Scope().CopyTo(sm.Scope())
	g.Metric = sm.Metrics().AppendEmpty()
	g.Metric.SetName(b.at.m.Name())
	g.Metric.SetUnit(b.at.m.Unit())
	g.Metric.SetDescription(b.at.m.Description())
	b.at.m.Metadata().CopyTo(g.Metric.Metadata())
	amount.CopyKept(amount.EmptyPoint(g.Metric, b.at.m), attributes, func(key string, _ pcommon.Value) bool {
		return a.Labels.Keeps(a.Labels.Attribute, key)
	})
	g.Outputs, _ = a.OperationsOn(g.Metric)
	var sizer pmetric.ProtoMarshaler
	g.Cost = g.Weight(sizer.MetricsSize(g.Data), 0)
	return g
}

// reportGathered counts what was taken, and what could not be.
func (b *Batch) reportGathered(ctx context.Context) {
	for i := range b.gathered.Counts {
		count := &b.gathered.Counts[i]
		a := b.aggregations[i]
		if count.Taken > 0 {
			b.g.Telemetry.ProcessorCardinalityAggregatedPoints.Add(ctx, count.Taken, a.Taken)
		}
		for why, n := range count.Lost {
			if n > 0 && why != int(amount.LossNone) {
				b.g.Telemetry.ProcessorCardinalityUnaggregatedPoints.Add(ctx, n, a.Lost[why])
			}
		}
	}
}
