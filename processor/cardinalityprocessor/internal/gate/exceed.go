// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package gate

import (
	"slices"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/godwit-otel/godwit/processor/cardinalityprocessor/internal/amount"
	"github.com/godwit-otel/godwit/processor/cardinalityprocessor/internal/ident"
	"github.com/godwit-otel/godwit/processor/cardinalityprocessor/internal/overflow"
	"github.com/godwit-otel/godwit/processor/cardinalityprocessor/internal/policy"
	"github.com/godwit-otel/godwit/processor/cardinalityprocessor/internal/series"
)

// ruling is a verdict, with the output that the series is a member of.
type ruling struct {
	series.Verdict

	held *overflow.Output
	id   uint32 // of the series' set, if it is held
}

// location is where the points of the current metric belong.
type location struct {
	rm     pmetric.ResourceMetrics
	sm     pmetric.ScopeMetrics
	m      pmetric.Metric
	metric uint64 // hash
	scope  uint64
	tenant ident.Tenant
	seed   uint64 // of the tenant
}

// exceed decides what becomes of a point for which a limit has no room, and reports whether it passes.
func (b *Batch) exceed(i int, v ruling) (passes bool) {
	b.part(b.fps[i], v.Step)
	if v.Last == series.LastValue {
		if !b.NoValue && !adds(b.act(i, v)) { // what was known about it as a member no longer applies
			b.release(i)
		}
		return true
	}
	b.page.before = b.losses[amount.LossGauge]
	what := policy.ActionDrop
	if v.Reason != policy.ReasonPointsRate {
		v.Limit.Demand.Add(b.fps[i])
		what = b.act(i, v)
	}
	b.count(v.Limit)[v.Reason][what]++
	b.noteRejection(i, &v, what)
	if v.Reason != policy.ReasonPointsRate {
		b.observeRejected(i, v, what)
	}
	if v.Last == series.EndMark && what != policy.ActionSample {
		if !b.g.DryRun {
			b.silence(b.at.m, i)
			b.marked++
		}
		return true
	}
	return what == policy.ActionSample
}

// adds reports whether an action keeps state about a series from then on.
func adds(what policy.Action) bool {
	return what == policy.ActionCollapse || what == policy.ActionCollapseWorst || what == policy.ActionOverflow
}

func (b *Batch) act(i int, v ruling) policy.Action {
	a := overflow.Arrival{
		Metric: b.at.m, Index: i, FP: b.fps[i], Now: b.Now, Limit: v.Limit, Reason: v.Reason,
		Counted: v.Counted, Passes: v.Last == series.LastValue,
	}
	if v.held != nil { // it knows its output, unless that has just gone
		b.merge(v.held.FP, &a, nil)
		return policy.ActionOverflow
	}
	if v.Waits && b.Class == amount.ClassCumulative {
		return policy.ActionWait
	}
	for _, what := range v.Limit.Exceed.Actions {
		switch what {
		case policy.ActionCollapse, policy.ActionCollapseWorst:
			if b.collapse(&a, v.Verdict, what) {
				return what
			}
		case policy.ActionOverflow:
			if b.overflow(&a) {
				return what
			}
		case policy.ActionSample:
			if float64(ident.Mix(a.FP, ident.TagEmpty)>>11)/(1<<53) < v.Limit.Exceed.Rate {
				return what
			}
		default:
			return policy.ActionDrop
		}
	}
	return policy.ActionDrop
}

// heldBack repeats the verdict on a series that is a member of one made here. It reports whether the series should ask
// for a place, and whether it had one; and if there is no verdict, whether it has restarted since it was a member.
func (b *Batch) heldBack(i int) (v ruling, asks, owns, anew bool) {
	if b.Class != amount.ClassCumulative {
		return ruling{}, false, false, false
	}
	id, placed := b.g.Limiter.Standing(b.fps[i], &b.Sighting)
	if placed { // it is not looked up here
		return ruling{}, false, false, false
	}
	of, asks, owns := b.g.Overflow.Held(&b.staged, b.fps, i, amount.WhenAt(b.at.m, i), b.Moment.Epoch(), pcommon.Timestamp(b.Now))
	if of.Limit == nil {
		return ruling{}, false, false, of.Anew
	}
	if to, ok := b.Parted[b.fps[i]]; ok && to == series.LeftValue { // it left in this batch: the marker comes next
		asks, owns = false, false
	} else if id == series.LeftValue && !owns {
		asks = false
	}
	return b.present(ruling{Verdict: series.Verdict{Limit: of.Limit, Reason: of.Reason}, held: of.Output, id: id}), asks, owns, false
}

// join adds an incoming point to the series made here with the same identity, so that there are not two. It reports
// whether the point passes, which it does in a dry run.
func (b *Batch) join(i int) bool {
	b.match()
	total := b.Policy.Named[policy.RuleTotal]
	a := overflow.Arrival{Metric: b.at.m, Index: i, FP: b.fps[i], Now: b.Now, Limit: total, Reason: policy.ReasonSeries}
	b.Output = true
	b.merge(a.FP, &a, func() *overflow.Output {
		return b.newOutput(b.keepAll, ident.Keys{Scope: b.at.scope, Metric: b.at.metric})
	})
	b.Output = false
	return b.g.DryRun
}

// offend adds to the labels that are to be collapsed: the one with too many values, or, if there are too many series,
// those with the most values, except labels to keep. It reports whether there was any.
func (b *Batch) offend(v series.Verdict, what policy.Action) bool {
	if v.Reason == policy.ReasonLabel {
		b.Collapsed = append(b.Collapsed, v.Label)
		return true
	}
	if v.Reason != policy.ReasonSeries || what != policy.ActionCollapseWorst || b.g.Book == nil {
		return false
	}
	b.candidates = b.candidates[:0]
	for s := range ident.Sides {
		for key := range b.Of(s).All() {
			if !slices.Contains(v.Limit.Exceed.Keep, key) && !slices.Contains(b.Collapsed, ident.LabelAt{Key: key, Side: s}) {
				b.candidates = append(b.candidates, key)
			}
		}
	}
	before := len(b.Collapsed)
	for _, key := range b.g.Book.Worst(b.Owner.Metric, b.candidates) {
		for s := range ident.Sides {
			if _, there := b.Of(s).Get(key); there && !slices.Contains(b.Collapsed, ident.LabelAt{Key: key, Side: s}) {
				b.Collapsed = append(b.Collapsed, ident.LabelAt{Key: key, Side: s})
			}
		}
	}
	return len(b.Collapsed) > before
}

// collapse replaces the values of offending labels. The resulting series needs a place like any other; if another label
// prevents that, it is replaced, too.
func (b *Batch) collapse(a *overflow.Arrival, v series.Verdict, what policy.Action) bool {
	if a.Limit.Exceed.Gauge == amount.GaugeDrop && a.Metric.Type() == pmetric.MetricTypeGauge { // useless: take no place for it
		return false
	}
	defer func() { b.Collapsed, b.Output = b.Collapsed[:0], false }()
	b.Output = true
	for b.offend(v, what) {
		keys, fp := b.collapsedIdentity()
		s := b.g.Limiter.Known(fp, &b.Sighting)
		if s == nil || !s.Output {
			s, v = b.g.Limiter.See(fp, &b.Sighting)
		}
		if s != nil {
			return b.merge(fp, a, func() *overflow.Output { return b.newOutput(b.keepAll, keys) })
		}
	}
	return false
}

// overflow adds the point to the series of all that overflow, or of those with the same kept labels. That takes no
// place from others.
func (b *Batch) overflow(a *overflow.Arrival) bool {
	keep := a.Limit.Exceed.Keep
	resource := b.Hash.Kept(b.Owner.Resource, keep, 0)
	if b.at.seed != 0 {
		resource = ident.Mix(resource, b.at.seed)
	}
	scope := b.Hash.Scope(resource, b.at.sm.Scope())
	metric := b.Hash.Metric(scope, b.at.m)
	fp := ident.Settled(ident.Mix(metric, b.Hash.Kept(b.Attributes, keep, b.Hash.Overflowing)))
	return b.merge(fp, a, func() *overflow.Output {
		return b.newOutput(func(key string, _ pcommon.Value) bool { return slices.Contains(keep, key) }, ident.Keys{Scope: scope, Metric: metric})
	})
}

// merge adds a point to an output, once the batch is accepted. A dry run does so, too, because later decisions depend
// on it.
func (b *Batch) merge(fp uint64, a *overflow.Arrival, build func() *overflow.Output) bool {
	loss := b.g.Overflow.Stage(&b.staged, fp, a, build)
	if loss != amount.LossNone { // else it is counted once its fate is known
		b.losses[loss]++
	}
	return loss.Taken()
}

func (b *Batch) keepAll(string, pcommon.Value) bool { return true }

// newOutput copies what identifies the series of the current point, as far as it is kept.
func (b *Batch) newOutput(keep func(string, pcommon.Value) bool, keys ident.Keys) *overflow.Output {
	out := &overflow.Output{Data: pmetric.NewMetrics(), Tenant: b.at.tenant, Keys: keys}
	rm := out.Data.ResourceMetrics().AppendEmpty()
	rm.SetSchemaUrl(b.at.rm.SchemaUrl())
	amount.CopyKept(rm.Resource().Attributes(), b.Owner.Resource, keep)
	replace(rm.Resource().Attributes(), b.Collapsed, ident.OfResource)
	sm := rm.ScopeMetrics().AppendEmpty()
	sm.SetSchemaUrl(b.at.sm.SchemaUrl())
	b.at.sm.Scope().CopyTo(sm.Scope())
	out.Metric = sm.Metrics().AppendEmpty()
	out.Metric.SetName(b.at.m.Name())
	out.Metric.SetUnit(b.at.m.Unit())
	out.Metric.SetDescription(b.at.m.Description())
	b.at.m.Metadata().CopyTo(out.Metric.Metadata())
	attributes := amount.EmptyPoint(out.Metric, b.at.m)
	amount.CopyKept(attributes, b.Attributes, keep)
	replace(attributes, b.Collapsed, ident.OfPoint)
	if !b.Output {
		attributes.PutBool(ident.OverflowKey, true)
	}
	if b.at.m.Type() == pmetric.MetricTypeHistogram { // to know their cost
		b.at.m.Histogram().DataPoints().At(b.index).ExplicitBounds().CopyTo(out.Metric.Histogram().DataPoints().At(0).ExplicitBounds())
	}
	var sizer pmetric.ProtoMarshaler
	out.Cost = out.Weight(sizer.MetricsSize(out.Data))
	return out
}

// collapsedIdentity is the identity of the current point with the values of its collapsed labels replaced: of the
// scope, the metric, and the whole.
func (b *Batch) collapsedIdentity() (keys ident.Keys, fp uint64) {
	keys = ident.Keys{Scope: b.at.scope, Metric: b.at.metric}
	if slices.ContainsFunc(b.Collapsed, func(l ident.LabelAt) bool { return l.Side == ident.OfResource }) {
		resource := b.Hash.Without(b.Owner.Resource, b.Collapsed, ident.OfResource)
		if b.at.seed != 0 {
			resource = ident.Mix(resource, b.at.seed)
		}
		keys.Scope = b.Hash.Scope(resource, b.at.sm.Scope())
		keys.Metric = b.Hash.Metric(keys.Scope, b.at.m)
	}
	return keys, ident.Settled(ident.Mix(keys.Metric, b.Hash.Without(b.Attributes, b.Collapsed, ident.OfPoint)))
}

// replace replaces the values of collapsed labels by the mark.
func replace(attributes pcommon.Map, collapsed []ident.LabelAt, on ident.Side) {
	for _, l := range collapsed {
		if l.Side == on {
			attributes.PutStr(l.Key, ident.CollapsedValue)
		}
	}
}
