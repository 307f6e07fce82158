// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package gate

import (
	"context"
	"slices"

	"go.opentelemetry.io/collector/client"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/godwit-otel/godwit/processor/cardinalityprocessor/internal/aggregate"
	"github.com/godwit-otel/godwit/processor/cardinalityprocessor/internal/amount"
	"github.com/godwit-otel/godwit/processor/cardinalityprocessor/internal/ident"
	"github.com/godwit-otel/godwit/processor/cardinalityprocessor/internal/overflow"
	"github.com/godwit-otel/godwit/processor/cardinalityprocessor/internal/policy"
	"github.com/godwit-otel/godwit/processor/cardinalityprocessor/internal/series"
)

// Batch is the working memory of one call. It processes metrics in two rounds, some points at a time: first all
// fingerprints, then all look-ups, so that the memory accesses of the look-ups do not wait for each other. Data is only
// accessed if something is rejected.
type Batch struct {
	series.Sighting
	effects
	lending
	reading
	removals
	telling

	g        *Gate
	client   client.Metadata
	metadata string // of the client, which is sent with what is made
	road     string // pipeline of a shared processor

	at     location
	index  int               // of the current point
	rests  bool              // nothing more must be decided about its series
	exempt []*policy.Matcher // that match the metric, and depend on points, too
	taking bool              // all points of the last metric were aggregated

	candidates []string // labels of the current point that

	aggregations []*aggregate.Rule // in force
	made         bool              // made by aggregation, so it is not aggregated again
}

// reading is what a batch knows about metrics before it decides about them.
type reading struct {
	wording

	recall ident.Recall
	hinted ident.Hinted
	page   currentPage
	ahead  ahead
	fps    []uint64 // of the points of the current metric
	marks  []int    // of these points, those that are stale markers
}

// dropReferences removes references to the data.
func (r *reading) dropReferences() {
	r.fps, r.marks = nil, nil
	if cap(r.ahead.fps) > maxRetained {
		r.ahead = ahead{}
	}
	r.recall.Forget()
	r.hinted = ident.Hinted{}
	r.wording = r.kept()
	r.page = r.page.kept()
}

// maxRetained is the number of points of one metric up to which a batch keeps memory, so that a huge metric does not
// hold memory for ever.
const maxRetained = 1 << 16

func (b *Batch) begin(ctx context.Context, g *Gate) {
	b.g = g
	b.client = client.FromContext(ctx).Metadata
	if len(g.metadataKeys) > 0 {
		b.metadata = string(ident.AppendMetadata(nil, b.client, g.metadataKeys))
	}
	b.Policy, b.aggregations, b.Hash = g.Rules.Policy, g.Rules.aggregations, &g.Hash
	b.Now = g.Now().UnixNano()
	b.weighed = g.Book != nil && ident.Mix(g.batches.Add(1), ident.TagEmpty)%WeighedOneIn == 0
}

// WeighedOneIn is the number of batches for each whose points are counted for statistics. These are chosen at random,
// because senders come in turn.
const WeighedOneIn = 16

// zeroed returns n zero values in the memory of s, if that is enough.
func zeroed[T any](s []T, n int) []T {
	s = slices.Grow(s[:0], n)[:n]
	clear(s)
	return s
}

// dropReferences removes references to the data, which others may change as soon as it is passed on. What remains is for
// the end of the batch.
func (b *Batch) dropReferences() {
	b.reading.dropReferences()
	b.telling.dropReferences()
	clear(b.exempt)
	clear(b.Limits)
	clear(b.Places)
	clear(b.Values)
	clear(b.candidates)
	clear(b.Collapsed[:cap(b.Collapsed)])
	b.at, b.Owner, b.Attributes = location{}, policy.Owner{}, pcommon.Map{}
}

// Points returns how many points came in, and how many are passed on, including those that were added.
func (b *Batch) Points() (came, left int64) { return b.came, b.came - b.gone + b.added }

// reset prepares a batch for reuse.
func (b *Batch) reset() {
	if len(b.Parted) > overflow.MaxStaged {
		b.Parted = nil
	}
	clear(b.Parted)
	*b = Batch{
		effects: b.effects.again(), lending: b.lending.again(), removals: b.removals.again(), telling: b.telling.again(),
		reading: reading{recall: b.recall, page: b.page, wording: b.wording, ahead: b.ahead},
		exempt:  b.exempt[:0], candidates: b.candidates[:0],
		Sighting: series.Sighting{
			Limits: b.Limits[:0], Places: b.Places[:0], Values: b.Values[:0], Collapsed: b.Collapsed[:0], Parted: b.Parted,
		},
	}
}

// walk decides about all points and reports whether any resource was removed.
func (b *Batch) walk(md pmetric.Metrics) bool {
	resources, scopes := &b.resources, &b.scopes
	resources.begin()
	for i := range md.ResourceMetrics().Len() {
		rm := md.ResourceMetrics().At(i)
		resource := b.enter(rm)
		scopes.begin()
		for j := range rm.ScopeMetrics().Len() {
			sm := rm.ScopeMetrics().At(j)
			gone := b.scope(sm, b.Hash.Scope(resource, sm.Scope()))
			scopes.add(!gone && sm.Metrics().Len() > 0, gone)
		}
		if scopes.some() {
			remove(&b.lending, rm.ScopeMetrics(), pmetric.NewScopeMetricsSlice, scopes.gone)
		}
		gone := scopes.all()
		resources.add(!gone && rm.ScopeMetrics().Len() > 0, gone)
	}
	if resources.lost { // even if no other is left: the batch itself stays
		remove(&b.lending, md.ResourceMetrics(), pmetric.NewResourceMetricsSlice, resources.gone)
	}
	return resources.lost
}

// enter begins a resource, and returns its hash.
func (b *Batch) enter(rm pmetric.ResourceMetrics) (resource uint64) {
	b.Owner.Resource = rm.Resource().Attributes()
	b.at = location{rm: rm, tenant: b.g.tenants.of(b.client, b.Owner.Resource)}
	b.at.tenant.Metadata, b.at.tenant.Road = b.metadata, b.road
	b.Owner.Tenant, b.Owner.Account = b.at.tenant.Name, 0
	if b.Owner.Tenant != "" {
		b.Owner.Account = b.Hash.Text(b.Owner.Tenant)
	}
	resource = b.Hash.Attributes(b.Owner.Resource)
	if b.at.seed = b.Hash.Tenant(&b.at.tenant); b.at.seed != 0 {
		resource = ident.Mix(resource, b.at.seed)
	}
	return resource
}

// scope reports whether a scope lost its last metric.
func (b *Batch) scope(sm pmetric.ScopeMetrics, scope uint64) (gone bool) {
	b.at.sm, b.at.scope, b.Owner.Scope = sm, scope, sm.Scope().Name()
	b.entered++
	if b.isFamiliar(sm.Metrics(), scope) { // fast path: nothing to do but let it pass, or to remove the same as last time
		return b.passExceptRejected(sm.Metrics())
	}
	b.Settle()
	for _, m := range sm.Metrics().All() {
		b.came += int64(amount.PointCount(m))
	}
	metrics := &b.metrics
	metrics.begin()
	for i := range sm.Metrics().Len() {
		m := sm.Metrics().At(i)
		if i == b.ahead.end || i == 0 {
			b.lookAhead(sm.Metrics(), i, scope)
		}
		rejected := b.ahead.rejected(i)
		if rejected != nil && !b.stillHold() {
			b.lookAgain(sm.Metrics(), i, scope)
			rejected = nil
		}
		if b.ahead.isPlain(i) {
			n := amount.PointCount(m)
			b.weigh(m, n)
			b.page.plain = append(b.page.plain, rejected == nil)
			if rejected != nil {
				b.rejectAgain(m, rejected)
			} else {
				metrics.add(n > 0, false)
			}
			continue
		}
		if !b.metric(m, i) || b.g.DryRun {
			metrics.add(amount.PointCount(m) > 0, false)
			continue
		}
		left := b.removePoints(m, b.drop) > 0
		metrics.add(left, !left)
	}
	b.learnPage()
	return b.removeMetrics(sm.Metrics())
}

// removeMetrics removes the current scope's metrics that have nothing left, unless that is all of them.
func (b *Batch) removeMetrics(from pmetric.MetricSlice) (all bool) {
	if b.metrics.some() {
		remove(&b.lending, from, pmetric.NewMetricSlice, b.metrics.gone)
	}
	return b.metrics.all()
}

// metric decides about the points of one metric, and reports whether any of them must be dropped.
func (b *Batch) metric(m pmetric.Metric, i int) bool {
	b.Owner.Metric = m.Name()
	if b.passes() {
		return false
	}
	b.Limits = b.Limits[:0]
	b.Moment = b.g.Limiter.Now()
	b.at.m = m
	b.at.metric, b.fps, b.marks = b.ahead.metric(i)
	b.g.Overflow.Unhold(&b.staged)
	b.weigh(m, len(b.fps))
	if b.Chosen = 0; b.g.Book != nil {
		b.Chosen = b.g.Book.Chosen(b.Owner.Metric)
	}
	plain := len(b.marks) == 0 && b.Chosen <= max(b.Moment, 1) // otherwise some series must be reported again from that moment on
	dropped := len(b.aggregations) > 0 && !b.made && b.gather()
	b.taking = false
	if dropped && !b.g.DryRun {
		n := 0
		for _, drop := range b.drop {
			if drop {
				n++
			}
		}
		b.taken += int64(n)
		b.taking = n == len(b.fps)
	}
	lines := b.ahead.linesOf(i)
	for i, fp := range b.fps {
		if i%warmed == 0 && len(b.fps) > warmed {
			lines = b.ahead.warm(b.g.Limiter.Series, i)
		}
		if dropped && b.drop[i] { // it was gathered
			continue
		}
		if len(b.exempt) > 0 && b.passesPoint(amount.AttributesAt(m, i)) {
			continue
		}
		line := int32(series.Nowhere)
		if i < len(lines) {
			line = lines[i]
		}
		s := b.g.Limiter.KnownAt(fp, line, &b.Sighting)
		if s != nil && s.Plain { // fast path: nothing to do but let it pass
			plain = plain && s.Rests()
			continue
		}
		b.rests = false
		passes := b.decide(i, s)
		if plain = plain && b.rests; passes {
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
	if len(b.gathered.Leaving) > 0 {
		b.leave(dropped)
	}
	lost := b.drop
	if !dropped {
		lost = nil
	}
	refused := b.page.endMetric(len(b.page.plain), plain, lost)
	b.page.plain = append(b.page.plain, plain && !refused)
	return dropped
}

// weigh reports the number of a metric's points to statistics.
func (b *Batch) weigh(m pmetric.Metric, points int) {
	if b.weighed {
		b.g.Book.Passed(m.Name(), points*WeighedOneIn)
	}
}

// decide is the slow path of one point. It reports whether the point passes. s is nil if the series is not known.
func (b *Batch) decide(i int, s *series.Set) bool {
	b.index, b.Attributes, b.AtOnce = i, amount.AttributesAt(b.at.m, i), false
	var v ruling
	if s == nil {
		b.match()
		b.Class, b.NoValue = amount.ClassOf(b.at.m), amount.WhenAt(b.at.m, i).NoValue
		held, asks, owns, anew := b.heldBack(i)
		if held.Limit == nil || asks {
			b.Promoted = asks || anew
			s, v.Verdict = b.g.Limiter.See(b.fps[i], &b.Sighting)
			b.Promoted = false
			b.AtOnce = b.AtOnce && !asks && !anew
		}
		switch {
		case s != nil:
			b.welcome(i, asks, anew)
		case owns:
			return b.demote(i, v)
		case held.Limit != nil:
			if asks { // this limit rejects it now
				held.Limit, held.Reason = v.Limit, v.Reason
			} else {
				b.Witness()
			}
			b.LastWord(b.fps[i], held.id, &held.Verdict)
			return b.exceed(i, held)
		}
	}
	switch {
	case s == nil:
		return b.exceed(i, v)
	case s.Output:
		return b.join(i)
	case s.Promoted:
		return b.own(i, s)
	default:
		b.rests = s.Rests() && s.Generation == b.Policy.Generation
		return b.payPointLimits(i, s)
	}
}

// welcome handles a point whose series has a place, which it may just have got. The series may remain a member, or may
// have restarted since it was one.
func (b *Batch) welcome(i int, member, anew bool) {
	switch {
	case member:
		b.g.Overflow.Grant(b.fps[i])
	case anew: // the batch may be refused and repeated with earlier values
	case b.Fresh && (b.Class == amount.ClassCumulative || b.Class == amount.ClassUpDown):
		b.release(i)
	}
	if b.Due {
		b.observe(i)
	}
}

// release ends the membership of the point's series.
func (b *Batch) release(i int) {
	b.g.Overflow.Unhold(&b.staged) // the series may come again with the next point
	b.g.Overflow.Release(b.fps[i])
}

// payPointLimits counts a point towards points limits, and reports whether it passes.
func (b *Batch) payPointLimits(i int, s *series.Set) bool {
	if len(s.Tolls) == 0 || s.Generation != b.Policy.Generation {
		return true
	}
	v := s.Pay(b.Now)
	if v.Limit != nil {
		return b.exceed(i, ruling{Verdict: v})
	}
	b.pays(s)
	return true
}

// match finds the limits that apply to the metric, once for each metric: the total always applies.
func (b *Batch) match() {
	if len(b.Limits) > 0 {
		return
	}
	for _, l := range b.Policy.Limits {
		if l.Match.MatchMetric(&b.Owner) {
			b.Limits = append(b.Limits, l)
		}
	}
}

// passes reports whether a whole metric is exempt. If not, it collects the matchers that depend on its points.
func (b *Batch) passes() bool {
	b.exempt = b.exempt[:0]
	for i := range b.Policy.Exempt {
		e := &b.Policy.Exempt[i]
		if !e.MatchMetric(&b.Owner) {
			continue
		}
		if len(e.Attributes) == 0 {
			return true
		}
		b.exempt = append(b.exempt, e)
	}
	return false
}

func (b *Batch) passesPoint(attributes pcommon.Map) bool {
	for _, e := range b.exempt {
		if e.MatchPoint(&b.Owner, attributes) {
			return true
		}
	}
	return false
}
