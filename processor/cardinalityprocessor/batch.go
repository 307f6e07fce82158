// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package cardinalityprocessor

import (
	"context"
	"slices"

	"go.opentelemetry.io/collector/client"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/godwit-otel/godwit/processor/cardinalityprocessor/internal/stats"
)

// batch is the working memory of one call. It goes through metrics in two rounds, some points at a time: all fingerprints, then
// all look-ups, so that the memory accesses of the second do not wait for each other. Data is touched only where something is
// rejected.
type batch struct {
	sighting

	p        *cardinalityProcessor
	client   client.Metadata
	metadata string // of the client, what goes with what is made
	road     string // pipeline of a shared processor

	at     location
	index  int        // of the point at hand
	exempt []*matcher // that match the metric, and look at points, too
	recall recall
	hinted hinted
	ahead  ahead
	fps    []uint64 // of the points of the metric at hand
	marks  []int    // of these points, those that are stale markers
	drop   []bool
	counts []counted // by limit
	met    []*limit  // that anything is counted of
	losses [losses]int64
	marked int64
	came   int64 // points
	gone   int64 // of these, removed
	taken  int64 // of these, because they are aggregated

	candidates []string // labels of the point at hand that may be collapsed, by key

	passage    passage
	staged     staged
	departures []departure
	paid       []paid
	views      map[uint64]view   // members that have said something in this batch
	ending     map[uint64]uint32 // series that have said that they end

	gathered gathered
	made     bool // by aggregation, so it is not aggregated

	lent   bool     // the metrics go back to the receiver
	hidden []func() // put back what was hidden of them

	weighed  bool // statistics are told how many points there are
	refusals refusals

	account account
}

// counted is how many points of a rule met the same fate.
type counted struct {
	points [reasons][actions]int64
	any    bool
}

// count returns the counts of a limit.
func (b *batch) count(l *limit) *[reasons][actions]int64 {
	if n := len(b.policy.limits); len(b.counts) < n {
		b.counts = slices.Grow(b.counts, n)[:n] // all are 0
	}
	c := &b.counts[l.index]
	if !c.any {
		c.any = true
		b.met = append(b.met, l)
	}
	return &c.points
}

// maxRetained is how many points of one metric a batch keeps memory for: a giant must not pin it for ever.
const maxRetained = 1 << 16

// maxHidden is for how many slices that something was hidden of a batch keeps memory.
const maxHidden = 1 << 12

func (b *batch) begin(ctx context.Context, p *cardinalityProcessor) {
	b.p = p
	b.client = client.FromContext(ctx).Metadata
	if len(p.metadataKeys) > 0 {
		b.metadata = string(appendMetadata(nil, b.client, p.metadataKeys))
	}
	b.policy, b.hash = p.policy, &p.hash
	b.now = p.now().UnixNano()
	b.weighed = p.book != nil && mix(p.batches.Add(1), tagEmpty)%weighedOneIn == 0
}

// weighedOneIn is how many batches there are for each that statistics count the points of. Which one it is, is left to
// chance, because senders come in turn.
const weighedOneIn = 16

// zeroed returns n zero values in the memory of s, if that is enough.
func zeroed[T any](s []T, n int) []T {
	s = slices.Grow(s[:0], n)[:n]
	clear(s)
	return s
}

// letGo lets go of the data, which others may change as soon as it is passed on. What is left is for the end of the batch.
func (b *batch) letGo() {
	b.fps, b.marks = nil, nil
	if cap(b.ahead.fps) > maxRetained {
		b.ahead, b.drop = ahead{}, nil
	}
	b.recall.forget()
	b.hinted = hinted{}
	clear(b.exempt)
	clear(b.limits)
	clear(b.places)
	clear(b.values)
	clear(b.candidates)
	clear(b.collapsed[:cap(b.collapsed)])
	labels := b.account.series.Labels
	clear(labels[:cap(labels)])
	b.account, b.at, b.owner, b.attributes = account{series: stats.Series{Labels: labels[:0]}}, location{}, owner{}, pcommon.Map{}
}

// reset makes a batch ready for the next one.
func (b *batch) reset() {
	for _, l := range b.met { // and not all: rules may be many, and batches small
		b.counts[l.index] = counted{}
	}
	clear(b.met)
	b.staged.reset()
	b.gathered.reset()
	b.refusals.reset()
	clear(b.paid)
	if len(b.departures) > maxStaged {
		b.departures, b.parted = nil, nil
	}
	clear(b.parted)
	if len(b.views)+len(b.ending) > maxStaged {
		b.views, b.ending = nil, nil
	}
	clear(b.views)
	clear(b.ending)
	if cap(b.hidden) > maxHidden {
		b.hidden = nil
	}
	clear(b.hidden)
	*b = batch{
		hidden: b.hidden[:0],
		recall: b.recall, ahead: b.ahead, drop: b.drop[:0], counts: b.counts[:0], met: b.met[:0], exempt: b.exempt[:0],
		candidates: b.candidates[:0],
		account:    b.account,
		refusals:   b.refusals,
		staged:     b.staged,
		gathered:   b.gathered,
		departures: b.departures[:0],
		paid:       b.paid[:0],
		views:      b.views,
		ending:     b.ending,
		sighting: sighting{
			limits: b.limits[:0], places: b.places[:0], values: b.values[:0], collapsed: b.collapsed[:0], parted: b.parted,
		},
	}
}

// walk decides about all points and says whether any was removed.
func (b *batch) walk(md pmetric.Metrics) bool {
	removed := false
	for i := range md.ResourceMetrics().Len() {
		rm := md.ResourceMetrics().At(i)
		b.owner.resource = rm.Resource().Attributes()
		b.at = location{rm: rm, tenant: b.p.tenant(b.client, b.owner.resource)}
		b.at.tenant.metadata, b.at.tenant.road = b.metadata, b.road
		b.owner.tenant, b.owner.account = b.at.tenant.name, 0
		if b.owner.tenant != "" {
			b.owner.account = b.hash.text(b.owner.tenant)
		}
		resource := b.hash.attributes(b.owner.resource)
		if b.at.seed = b.hash.tenant(&b.at.tenant); b.at.seed != 0 {
			resource = mix(resource, b.at.seed)
		}
		emptied := false
		for j := range rm.ScopeMetrics().Len() {
			sm := rm.ScopeMetrics().At(j)
			emptied = b.scope(sm, b.hash.scope(resource, sm.Scope())) || emptied
		}
		if emptied {
			removed = true
			b.removeScopes(rm.ScopeMetrics())
		}
	}
	if removed {
		b.removeResources(md.ResourceMetrics())
	}
	return removed
}

// scope says whether a scope lost its last metric.
func (b *batch) scope(sm pmetric.ScopeMetrics, scope uint64) bool {
	emptied := false
	b.at.sm, b.at.scope, b.owner.scope = sm, scope, sm.Scope().Name()
	for i := range sm.Metrics().Len() {
		m := sm.Metrics().At(i)
		if i == b.ahead.end || i == 0 {
			b.lookAhead(sm.Metrics(), i, scope)
		}
		if b.metric(m, i) && !b.p.dryRun {
			left := b.removePoints(m, b.drop)
			b.gone += int64(len(b.drop) - left)
			emptied = left == 0 || emptied
		}
	}
	if emptied {
		b.removeMetrics(sm.Metrics())
	}
	return emptied && sm.Metrics().Len() == 0
}

// metric decides about the points of one metric and says whether any is to be dropped.
func (b *batch) metric(m pmetric.Metric, i int) bool {
	b.owner.metric = m.Name()
	if b.passes() {
		return false
	}
	b.limits = b.limits[:0]
	b.moment = b.p.limiter.now()
	b.at.m = m
	b.at.metric, b.fps, b.marks = b.ahead.metric(i)
	if b.weighed {
		b.p.book.Passed(m.Name(), len(b.fps)*weighedOneIn)
	}
	dropped := len(b.policy.aggregates) > 0 && !b.made && b.gather()
	if dropped && !b.p.dryRun {
		for _, drop := range b.drop {
			if drop {
				b.taken++
			}
		}
	}
	for i, fp := range b.fps {
		if i%warmed == 0 && len(b.fps) > warmed {
			b.p.limiter.series.warm(b.fps[i:min(i+warmed, len(b.fps))])
		}
		if dropped && b.drop[i] { // it was gathered
			continue
		}
		if len(b.exempt) > 0 && b.passesPoint(attributesAt(m, i)) {
			continue
		}
		s := b.p.limiter.known(fp, &b.sighting)
		if s != nil && s.plain { // fast path: nothing to do but let it pass
			continue
		}
		if b.decide(i, s) {
			continue
		}
		if !dropped {
			dropped = true
			b.drop = zeroed(b.drop, len(b.fps))
		}
		b.drop[i] = true
	}
	if len(b.refusals.fps) > 0 {
		b.observeAllRejected()
	}
	if len(b.marks)+len(b.ending) > 0 {
		b.end(dropped)
	}
	if len(b.gathered.leaving) > 0 {
		b.leave(dropped)
	}
	return dropped
}

// decide is the slow path of one point. It says whether it passes. Its series' set is nil unless it is known.
func (b *batch) decide(i int, s *set) bool {
	b.index, b.attributes = i, attributesAt(b.at.m, i)
	var v verdict
	if s == nil {
		b.match()
		b.class, b.noValue = classOf(b.at.m), whenAt(b.at.m, i).noValue
		held, asks, owns := b.heldBack(i)
		if held.limit == nil || asks {
			b.promoted = asks
			s, v = b.p.limiter.see(b.fps[i], &b.sighting)
			b.promoted = false
		}
		switch {
		case s != nil:
			b.welcome(i, asks)
		case owns:
			return b.demote(i, v)
		case held.limit != nil:
			if asks { // this is what keeps it there now
				held.limit, held.reason = v.limit, v.reason
			} else {
				b.witness()
			}
			b.p.limiter.lastWord(b.fps[i], &b.sighting, &held)
			return b.exceed(i, held)
		}
	}
	switch {
	case s == nil:
		return b.exceed(i, v)
	case s.output:
		return b.join(i)
	case s.promoted:
		return b.own(i, s)
	default:
		return b.tolled(i, s)
	}
}

// welcome is for a series that was seen, and given a place if it had none. It may stay a member.
func (b *batch) welcome(i int, member bool) {
	switch {
	case member:
		b.p.overflow.grant(b.fps[i])
	case b.fresh && (b.class == classCumulative || b.class == classUpDown):
		b.p.overflow.release(b.fps[i])
	}
	if b.due {
		b.observe(i)
	}
}

// tolled has a point pay, and says whether it passes.
func (b *batch) tolled(i int, s *set) bool {
	if len(s.tolls) == 0 || s.generation != b.policy.generation {
		return true
	}
	v := s.pay(b.now)
	if v.limit != nil {
		return b.exceed(i, v)
	}
	b.pays(s)
	return true
}

// match finds the limits that apply to the metric. The total always does, so this is done once for each.
func (b *batch) match() {
	if len(b.limits) > 0 {
		return
	}
	for _, l := range b.policy.limits {
		if l.match.matchMetric(&b.owner) {
			b.limits = append(b.limits, l)
		}
	}
}

// passes says whether a whole metric is exempt, and finds out what its points have to be compared with if not.
func (b *batch) passes() bool {
	b.exempt = b.exempt[:0]
	for i := range b.policy.exempt {
		e := &b.policy.exempt[i]
		if !e.matchMetric(&b.owner) {
			continue
		}
		if len(e.attributes) == 0 {
			return true
		}
		b.exempt = append(b.exempt, e)
	}
	return false
}

func (b *batch) passesPoint(attributes pcommon.Map) bool {
	for _, e := range b.exempt {
		if e.matchPoint(&b.owner, attributes) {
			return true
		}
	}
	return false
}

func (b *batch) report(ctx context.Context) {
	for _, l := range b.met {
		var all int64
		for why := range b.counts[l.index].points {
			for what, n := range b.counts[l.index].points[why] {
				if n > 0 {
					all += n
					b.p.telemetry.ProcessorCardinalityRejectedPoints.Add(ctx, n, l.rejected[why][what])
				}
			}
		}
		b.p.note(l, all, b.now)
	}
	b.reportGathered(ctx)
	if b.marked > 0 {
		b.p.telemetry.ProcessorCardinalityEndMarkers.Add(ctx, b.marked)
	}
	for loss, n := range b.losses {
		if loss != int(lossNone) && n > 0 {
			b.p.telemetry.ProcessorCardinalityUnaccountedPoints.Add(ctx, n, lossOptions[loss])
		}
	}
}

// pointCount returns how many points a metric has.
func pointCount(m pmetric.Metric) int {
	switch m.Type() {
	case pmetric.MetricTypeGauge:
		return m.Gauge().DataPoints().Len()
	case pmetric.MetricTypeSum:
		return m.Sum().DataPoints().Len()
	case pmetric.MetricTypeHistogram:
		return m.Histogram().DataPoints().Len()
	case pmetric.MetricTypeExponentialHistogram:
		return m.ExponentialHistogram().DataPoints().Len()
	case pmetric.MetricTypeSummary:
		return m.Summary().DataPoints().Len()
	default:
		return 0
	}
}

// removePoints removes the points that drop says and returns how many are left.
func removePoints(m pmetric.Metric, drop []bool) int {
	i := -1
	next := func() bool {
		i++
		return drop[i]
	}
	switch m.Type() {
	case pmetric.MetricTypeGauge:
		m.Gauge().DataPoints().RemoveIf(func(pmetric.NumberDataPoint) bool { return next() })
	case pmetric.MetricTypeSum:
		m.Sum().DataPoints().RemoveIf(func(pmetric.NumberDataPoint) bool { return next() })
	case pmetric.MetricTypeHistogram:
		m.Histogram().DataPoints().RemoveIf(func(pmetric.HistogramDataPoint) bool { return next() })
	case pmetric.MetricTypeExponentialHistogram:
		m.ExponentialHistogram().DataPoints().RemoveIf(func(pmetric.ExponentialHistogramDataPoint) bool { return next() })
	default:
		m.Summary().DataPoints().RemoveIf(func(pmetric.SummaryDataPoint) bool { return next() })
	}
	return pointCount(m)
}
