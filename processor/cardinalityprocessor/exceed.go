// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package cardinalityprocessor

import (
	"slices"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"
)

// What marks series that are made here.
const (
	overflowKey    = "otel.metric.overflow" // of the specification, with the value true
	collapsedValue = "__collapsed__"        // instead of a label's value
)

// exceed is what a rule does with points that find no room, in order. What nothing takes is dropped.
type exceed struct {
	actions []action
	keep    []string // attributes that overflow series keep
	rate    float64  // of the series that sample lets through
	gauge   gaugeMode
}

func newExceed(cfg, defaults *ExceedConfig, keep []string) exceed {
	pick := func(own, common []string) []string {
		if len(own) > 0 {
			return own
		}
		return common
	}
	e := exceed{rate: cfg.SampleRate, gauge: gaugeModes[cfg.Gauge]}
	for _, name := range pick(cfg.OnExceed, defaults.OnExceed) {
		e.actions = append(e.actions, action(slices.Index(actionNames[:], name)))
	}
	if cfg.SampleRate == 0 {
		e.rate = defaults.SampleRate
	}
	if cfg.Gauge == "" {
		e.gauge = gaugeModes[defaults.Gauge]
	}
	e.keep = append(slices.Clone(pick(cfg.KeepLabels, defaults.KeepLabels)), keep...)
	slices.Sort(e.keep)
	e.keep = slices.Compact(e.keep)
	return e
}

// location is where the points of the metric at hand belong.
type location struct {
	rm     pmetric.ResourceMetrics
	sm     pmetric.ScopeMetrics
	m      pmetric.Metric
	metric uint64 // hash
	scope  uint64
	tenant tenant
	seed   uint64 // of the tenant
}

// exceed finds out what becomes of a point that a limit has no room for, and says whether it passes.
func (b *batch) exceed(i int, v verdict) (passes bool) {
	b.part(b.fps[i], v.step)
	if v.farewell == farewellValue {
		if !b.noValue {
			b.act(i, v)
		}
		return true
	}
	what := actionDrop
	if v.reason != reasonPointsRate {
		v.limit.demand.add(b.fps[i])
		what = b.act(i, v)
	}
	b.count(v.limit)[v.reason][what]++
	if v.reason != reasonPointsRate {
		b.observeRejected(i, v, what)
	}
	if v.farewell == farewellMark && what != actionSample {
		if !b.p.dryRun {
			b.silence(i)
			b.marked++
		}
		return true
	}
	return what == actionSample
}

func (b *batch) act(i int, v verdict) action {
	a := arrival{
		metric: b.at.m, index: i, fp: b.fps[i], now: b.now, limit: v.limit, reason: v.reason,
		counted: v.counted, passes: v.farewell == farewellValue,
	}
	if v.held != nil { // it knows where it belongs, unless that has just gone
		b.merge(v.held.fp, &a, nil)
		return actionOverflow
	}
	if v.waits && b.class == classCumulative {
		return actionWait
	}
	for _, what := range v.limit.exceed.actions {
		switch what {
		case actionCollapse, actionCollapseWorst:
			if b.collapse(&a, v, what) {
				return what
			}
		case actionOverflow:
			if b.overflow(&a) {
				return what
			}
		case actionSample:
			if float64(mix(a.fp, tagEmpty)>>11)/(1<<53) < v.limit.exceed.rate {
				return what
			}
		default:
			return actionDrop
		}
	}
	return actionDrop
}

// heldBack repeats the verdict on a series that is a member of one made here. It says whether it should ask for a place, and
// whether it had one.
func (b *batch) heldBack(i int) (v verdict, asks, owns bool) {
	if b.class != classCumulative || b.p.limiter.placed(b.fps[i], &b.sighting) { // who has a place waits for nobody here
		return verdict{}, false, false
	}
	if v, asks, owns = b.p.overflow.held(b.fps[i], b.at.m, i, b.moment.epoch()); v.limit == nil {
		return v, false, false
	}
	if to, ok := b.parted[b.fps[i]]; ok && to == leftValue { // in this batch: the mark comes next
		asks, owns = false, false
	} else if id, _ := b.p.limiter.series.touch(b.fps[i], b.moment); id == leftValue && !owns {
		asks = false
	}
	return b.present(v), asks, owns
}

// join adds a point that came in to the series made here that has the same identity, so that there are not two. It says
// whether the point passes, which it does in a dry run.
func (b *batch) join(i int) bool {
	b.match()
	total := b.policy.named[ruleTotal]
	a := arrival{metric: b.at.m, index: i, fp: b.fps[i], now: b.now, limit: total, reason: reasonSeries}
	b.output = true
	b.merge(a.fp, &a, func() *output { return b.newOutput(b.keepAll, outputKeys{b.at.scope, b.at.metric}) })
	b.output = false
	return b.p.dryRun
}

// offend adds to the labels that are to be collapsed: the one that has too many values, or where there are too many series, those that
// have most of all that nobody wants to keep. It says whether there was any.
func (b *batch) offend(v verdict, what action) bool {
	if v.reason == reasonLabel {
		b.collapsed = append(b.collapsed, v.label)
		return true
	}
	if v.reason != reasonSeries || what != actionCollapseWorst || b.p.book == nil {
		return false
	}
	b.candidates = b.candidates[:0]
	for s := range sides {
		for key := range b.of(s).All() {
			if !slices.Contains(v.limit.exceed.keep, key) && !slices.Contains(b.collapsed, labelAt{key, s}) {
				b.candidates = append(b.candidates, key)
			}
		}
	}
	before := len(b.collapsed)
	for _, key := range b.p.book.Worst(b.owner.metric, b.candidates) {
		for s := range sides {
			if _, there := b.of(s).Get(key); there && !slices.Contains(b.collapsed, labelAt{key, s}) {
				b.collapsed = append(b.collapsed, labelAt{key, s})
			}
		}
	}
	return len(b.collapsed) > before
}

// collapse replaces the values of offending labels. The series that this makes needs a place like any other, and if it
// finds none for another label, that one is replaced, too.
func (b *batch) collapse(a *arrival, v verdict, what action) bool {
	if a.limit.exceed.gauge == gaugeDrop && a.metric.Type() == pmetric.MetricTypeGauge { // in vain: take no place for it
		return false
	}
	defer func() { b.collapsed, b.output = b.collapsed[:0], false }()
	b.output = true
	for b.offend(v, what) {
		keys, fp := b.collapsedIdentity()
		s := b.p.limiter.known(fp, &b.sighting)
		if s == nil || !s.output {
			s, v = b.p.limiter.see(fp, &b.sighting)
		}
		if s != nil {
			return b.merge(fp, a, func() *output { return b.newOutput(b.keepAll, keys) })
		}
	}
	return false
}

// overflow adds the point to the series of all that overflow, or of those with the same kept labels. It takes no place
// from others.
func (b *batch) overflow(a *arrival) bool {
	keep := a.limit.exceed.keep
	resource := b.hash.kept(b.owner.resource, keep, 0)
	if b.at.seed != 0 {
		resource = mix(resource, b.at.seed)
	}
	scope := b.hash.scope(resource, b.at.sm.Scope())
	metric := b.hash.metric(scope, b.at.m)
	fp := settled(mix(metric, b.hash.kept(b.attributes, keep, b.hash.overflowing)))
	return b.merge(fp, a, func() *output {
		return b.newOutput(func(key string, _ pcommon.Value) bool { return slices.Contains(keep, key) }, outputKeys{scope, metric})
	})
}

// merge adds a point to an output, once the batch is accepted. A dry run does, too, because what is decided later depends
// on it.
func (b *batch) merge(fp uint64, a *arrival, build func() *output) bool {
	loss := b.p.overflow.stage(&b.staged, fp, a, build)
	if loss != lossNone { // else it is counted when it is known what became of it
		b.losses[loss]++
	}
	return loss.taken()
}

func (b *batch) keepAll(string, pcommon.Value) bool { return true }

// newOutput copies what identifies the series of the point at hand, as far as it is kept.
func (b *batch) newOutput(keep func(string, pcommon.Value) bool, keys outputKeys) *output {
	out := &output{data: pmetric.NewMetrics(), tenant: b.at.tenant, keys: keys}
	rm := out.data.ResourceMetrics().AppendEmpty()
	rm.SetSchemaUrl(b.at.rm.SchemaUrl())
	copyKept(rm.Resource().Attributes(), b.owner.resource, keep)
	replace(rm.Resource().Attributes(), b.collapsed, ofResource)
	sm := rm.ScopeMetrics().AppendEmpty()
	sm.SetSchemaUrl(b.at.sm.SchemaUrl())
	b.at.sm.Scope().CopyTo(sm.Scope())
	out.metric = sm.Metrics().AppendEmpty()
	out.metric.SetName(b.at.m.Name())
	out.metric.SetUnit(b.at.m.Unit())
	out.metric.SetDescription(b.at.m.Description())
	b.at.m.Metadata().CopyTo(out.metric.Metadata())
	attributes := emptyPoint(out.metric, b.at.m)
	copyKept(attributes, b.attributes, keep)
	replace(attributes, b.collapsed, ofPoint)
	if !b.output {
		attributes.PutBool(overflowKey, true)
	}
	if b.at.m.Type() == pmetric.MetricTypeHistogram { // for what they cost
		b.at.m.Histogram().DataPoints().At(b.index).ExplicitBounds().CopyTo(out.metric.Histogram().DataPoints().At(0).ExplicitBounds())
	}
	var sizer pmetric.ProtoMarshaler
	out.cost = out.weight(sizer.MetricsSize(out.data))
	return out
}

// emptyPoint gives to the type of from and one point, and returns its attributes.
func emptyPoint(to, from pmetric.Metric) pcommon.Map {
	switch from.Type() {
	case pmetric.MetricTypeGauge:
		return to.SetEmptyGauge().DataPoints().AppendEmpty().Attributes()
	case pmetric.MetricTypeSum:
		to.SetEmptySum().SetIsMonotonic(from.Sum().IsMonotonic())
		to.Sum().SetAggregationTemporality(from.Sum().AggregationTemporality())
		return to.Sum().DataPoints().AppendEmpty().Attributes()
	case pmetric.MetricTypeHistogram:
		to.SetEmptyHistogram().SetAggregationTemporality(from.Histogram().AggregationTemporality())
		return to.Histogram().DataPoints().AppendEmpty().Attributes()
	case pmetric.MetricTypeExponentialHistogram:
		to.SetEmptyExponentialHistogram().SetAggregationTemporality(from.ExponentialHistogram().AggregationTemporality())
		return to.ExponentialHistogram().DataPoints().AppendEmpty().Attributes()
	default:
		return to.SetEmptySummary().DataPoints().AppendEmpty().Attributes()
	}
}

// maxRebuilt is how many attributes a map has at most that is made one by one: for each that is put there all before it are looked at.
const maxRebuilt = 128

// copyKept does not copy what is not kept, which may be large.
func copyKept(to, from pcommon.Map, keep func(string, pcommon.Value) bool) {
	n := 0
	for key, value := range from.All() {
		if keep(key, value) {
			n++
		}
	}
	if n < from.Len() && n <= maxRebuilt { // each that is put there takes a look at all before
		for key, value := range from.All() {
			if keep(key, value) {
				value.CopyTo(to.PutEmpty(key))
			}
		}
		if to.Len() == n { // else one is there twice
			return
		}
	}
	from.CopyTo(to)
	to.RemoveIf(func(key string, value pcommon.Value) bool { return !keep(key, value) })
}
