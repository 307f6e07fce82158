// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package reuse

import (
	"cmp"
	"context"
	"slices"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/godwit-otel/godwit/internal/handback"
	"github.com/godwit-otel/godwit/internal/slab"
)

// Metrics is memory for metrics. It must not be used if [slab.Places] is false, and only by one goroutine at a time.
type Metrics struct {
	metrics   pmetric.Metrics
	resources list[pmetric.ResourceMetrics]
	scopes    list[pmetric.ScopeMetrics]
	gauges    list[Numbers]
	sums      list[Numbers]
	doubles   points
	integers  points
	loan      handback.Loan
	shared    []Attributes // attributes of resources, which others share
	turn      int          // the points whose attributes are compared next
	changed   bool         // shared attributes were changed
	weight    int          // of this request, if Weighs was called
	most      int          // the most that any request weighed
	usual     int          // what the last requests weighed
	parts     []*Part
	lent      []*handback.Part // scratch
}

// Numbers is a metric and its points.
type Numbers struct {
	Metric pmetric.Metric
	Points pmetric.NumberDataPointSlice
}

// list has elements, the first of which are in use.
type list[T any] struct {
	all  []T
	used int
}

// next takes the next element, if there is one.
func (l *list[T]) next() (e T, ok bool) {
	if l.used == len(l.all) {
		return e, false
	}
	l.used++
	return l.all[l.used-1], true
}

func (l *list[T]) add(e T) T {
	l.all = append(l.all, e)
	l.used++
	return e
}

// last replaces the element that was taken last.
func (l *list[T]) last(e T) { l.all[l.used-1] = e }

// points are the points of one type of value.
type points struct {
	list[pmetric.NumberDataPoint]

	room  pmetric.NumberDataPointSlice // a slice with all of them
	seals []seal                       // of the shared attributes of those in use
}

// New makes metrics without anything in them.
func New() *Metrics {
	m := &Metrics{metrics: pmetric.NewMetrics()}
	m.doubles.room, m.integers.room = pmetric.NewNumberDataPointSlice(), pmetric.NewNumberDataPointSlice()
	return m
}

// Metrics returns the metrics to hand on.
func (m *Metrics) Metrics() pmetric.Metrics { return m.metrics }

// Resource adds a resource.
func (m *Metrics) Resource() pmetric.ResourceMetrics {
	rm, ok := m.resources.next()
	if !ok {
		rm = m.resources.add(pmetric.NewResourceMetrics())
	}
	slab.Empty(rm.ScopeMetrics())
	slab.Share(rm.Resource().Attributes(), None.list)
	rm.Resource().SetDroppedAttributesCount(0)
	rm.SetSchemaUrl("")
	slab.Place(m.metrics.ResourceMetrics(), rm)
	return rm
}

// Scope adds a scope.
func (m *Metrics) Scope(to pmetric.ScopeMetricsSlice) pmetric.ScopeMetrics {
	sm, ok := m.scopes.next()
	if !ok {
		sm = m.scopes.add(pmetric.NewScopeMetrics())
	}
	slab.Empty(sm.Metrics())
	scope := sm.Scope()
	slab.Share(scope.Attributes(), None.list)
	scope.SetName("")
	scope.SetVersion("")
	scope.SetDroppedAttributesCount(0)
	sm.SetSchemaUrl("")
	slab.Place(to, sm)
	return sm
}

// Gauge adds a gauge.
func (m *Metrics) Gauge(to pmetric.MetricSlice) Numbers {
	n, ok := m.gauges.next()
	if !ok {
		n = m.gauges.add(Numbers{Metric: pmetric.NewMetric()})
	}
	if n.Metric.Type() != pmetric.MetricTypeGauge { // it is new, or was emptied
		n.Points = n.Metric.SetEmptyGauge().DataPoints()
		m.gauges.last(n)
	}
	n.begin(to)
	return n
}

// Sum adds a sum, without a temporality.
func (m *Metrics) Sum(to pmetric.MetricSlice) Numbers {
	n, ok := m.sums.next()
	if !ok {
		n = m.sums.add(Numbers{Metric: pmetric.NewMetric()})
	}
	if n.Metric.Type() != pmetric.MetricTypeSum { // it is new, or was emptied
		n.Points = n.Metric.SetEmptySum().DataPoints()
		m.sums.last(n)
	}
	sum := n.Metric.Sum()
	sum.SetIsMonotonic(false)
	sum.SetAggregationTemporality(pmetric.AggregationTemporalityUnspecified)
	n.begin(to)
	return n
}

func (n *Numbers) begin(to pmetric.MetricSlice) {
	n.Metric.SetName("")
	n.Metric.SetUnit("")
	n.Metric.SetDescription("")
	slab.Share(n.Metric.Metadata(), None.list)
	slab.Empty(n.Points)
	slab.Place(to, n.Metric)
}

// Describe sets a metric's metadata, which others share. Its owner must check whether it stays intact.
func (m *Metrics) Describe(n Numbers, metadata Attributes) {
	slab.Share(n.Metric.Metadata(), metadata.list)
}

// Share sets the attributes of a resource, which others share.
func (m *Metrics) Share(into pcommon.Map, from Attributes) {
	slab.Share(into, from.list)
	m.shared = append(m.shared, from)
}

// Double adds a point with a value, with attributes that others share, or None to add to.
func (m *Metrics) Double(to pmetric.NumberDataPointSlice, attributes Attributes, value float64, with *slab.Slabs) pmetric.NumberDataPoint {
	p, ok := m.doubles.next()
	if !ok {
		p = m.doubles.add(with.AppendNumber(m.doubles.room))
		with.SetDouble(p, value)
	} else {
		slab.ChangeDouble(p, value)
	}
	m.begin(&m.doubles, p, to, attributes)
	return p
}

// Integer is Double for integers.
func (m *Metrics) Integer(to pmetric.NumberDataPointSlice, attributes Attributes, value int64, with *slab.Slabs) pmetric.NumberDataPoint {
	p, ok := m.integers.next()
	if !ok {
		p = m.integers.add(with.AppendNumber(m.integers.room))
		with.SetInt(p, value)
	} else {
		slab.ChangeInt(p, value)
	}
	m.begin(&m.integers, p, to, attributes)
	return p
}

func (m *Metrics) begin(of *points, p pmetric.NumberDataPoint, to pmetric.NumberDataPointSlice, attributes Attributes) {
	p.SetTimestamp(0)
	p.SetStartTimestamp(0)
	p.SetFlags(pmetric.DefaultDataPointFlags)
	slab.Share(p.Attributes(), attributes.list)
	of.seals = append(of.seals, attributes.seal)
	if p.Exemplars().Len() > 0 {
		p.Exemplars().RemoveIf(func(pmetric.Exemplar) bool { return true })
	}
	slab.Place(to, p)
}

// PlacePart adds the metrics of a part to those of a scope, given with its number.
func (m *Metrics) PlacePart(to pmetric.MetricSlice, scope int, p *Part) {
	p.at.Place(to)
	p.scope = scope
	m.parts = append(m.parts, p)
}

// Lend returns the context for handing the metrics on: a consumer that removes parts may put them back.
func (m *Metrics) Lend(ctx context.Context) context.Context {
	m.loan.Forget() // only the points of parts are the same as before
	m.lent = m.lent[:0]
	slices.SortStableFunc(m.parts, func(a, b *Part) int { return cmp.Compare(a.scope, b.scope) })
	for _, p := range m.parts {
		m.lent = append(m.lent, &p.lent)
	}
	m.loan.Bring(m.lent)
	return handback.Lend(ctx, &m.loan, m.metrics)
}

// LendDeferred is Lend for metrics whose parts lack the values of the given number of points, to consumers that fill them
// in before they read any: see [handback.Unread].
func (m *Metrics) LendDeferred(ctx context.Context, points int) context.Context {
	ctx = m.Lend(ctx)
	m.loan.Defer(points)
	return ctx
}

// MayDefer reports, after metrics were lent, whether they reached a consumer that fills in values, so that values may be
// left out next time.
func (m *Metrics) MayDefer() bool { return m.loan.Asked() }

// TakeBack makes the memory available for the next request. It returns false if it must not be used again, or is much
// larger than needed lately.
func (m *Metrics) TakeBack() bool {
	if m.metrics.IsReadOnly() || !m.intact() {
		return false
	}
	if handback.Poisons() {
		if m.shares() {
			return false
		}
		handback.Overwrite(m.metrics)
	}
	weight := max(m.weight, pointWeight*(m.doubles.used+m.integers.used))
	m.weight, m.most = 0, max(m.most, weight)
	if m.usual = max(weight, m.usual-m.usual/16); m.most > 4*m.usual+spare {
		return false
	}
	slab.Empty(m.metrics.ResourceMetrics())
	clear(m.parts)
	clear(m.lent)
	m.parts, m.lent = m.parts[:0], m.lent[:0]
	clear(m.shared)
	m.shared = m.shared[:0]
	m.resources.used, m.scopes.used, m.gauges.used, m.sums.used = 0, 0, 0, 0
	m.doubles.takeBack()
	m.integers.takeBack()
	return true
}

// Weighs records how many bytes the metrics take, including memory that is not from here: slices hold it for a while.
// Without it, points are counted.
func (m *Metrics) Weighs(bytes int) { m.weight = bytes }

const (
	// pointWeight is about what a point takes.
	pointWeight = 112
	// spare is how much may be kept beyond what the last requests needed.
	spare = 2 << 20
)

// Changed reports, after TakeBack returned false, that shared attributes were changed in place: they must not be shared
// any more.
func (m *Metrics) Changed() bool { return m.changed }

// intact reports whether shared attributes are unchanged.
func (m *Metrics) intact() bool {
	m.turn++
	for _, a := range m.shared {
		if m.changed = m.changed || !a.Intact(); m.changed {
			return false
		}
	}
	for _, p := range m.parts {
		if m.changed = !p.takeBack(); m.changed {
			return false
		}
	}
	for _, l := range [...]*points{&m.doubles, &m.integers} {
		for i, s := range l.seals {
			p := l.all[i]
			if s.length == unshared || p.Attributes().Len() == 0 && p.ValueType() == pmetric.NumberDataPointValueTypeEmpty {
				continue // pdata empties points that are removed
			}
			if !m.look(p.Attributes(), s, (i+m.turn)%lookEvery == 0) {
				return false
			}
		}
	}
	return true
}

// look reports whether a map has as many attributes as it was given, and, if closely, whether they are equal. Adding
// one gives the map a list of its own, but removing one moves others in the shared list.
func (m *Metrics) look(of pcommon.Map, s seal, closely bool) bool {
	n := of.Len()
	m.changed = m.changed || n < int(s.length) || n == int(s.length) && closely && sumOf(of) != s.sum
	return !m.changed && n == int(s.length)
}

// shares reports whether any attributes are shared.
func (m *Metrics) shares() bool {
	return len(m.shared)+len(m.parts) > 0 || m.doubles.share() || m.integers.share()
}

func (l *points) share() bool {
	return slices.ContainsFunc(l.seals, func(s seal) bool { return s.length != unshared })
}

func (l *points) takeBack() { l.seals, l.used = l.seals[:0], 0 }
