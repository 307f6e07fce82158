// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package tree

import (
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/godwit-otel/godwit/internal/slab"
	"github.com/godwit-otel/godwit/receiver/fastprometheusreceiver/internal/page/plan"
)

// A record describes a tree as it was handed out. Consumers promise to leave it as it was, but may break that promise:
// a tree that differs from its record is not filled again. For points, the record has only their identity and number of
// attributes: their values are overwritten anyway, and comparing all attributes would cost as much as building them.
type record struct {
	resources []string // the attributes of each resource, and their values

	numbers      []pmetric.NumberDataPoint
	histograms   []pmetric.HistogramDataPoint
	summaries    []pmetric.SummaryDataPoint
	exponentials []pmetric.ExponentialHistogramDataPoint
	attributes   []uint8 // number of attributes of each point, modulo 256, by kind, metric by metric

	lists slab.Lists // of attributes of points, if those are restored

	elements     slab.Elements // if those are restored that were removed
	hasExemplars bool          // these may have exemplars
}

// record describes the tree as it is.
func (t *Tree) record() {
	r := &t.handed
	r.numbers, r.histograms, r.summaries, r.exponentials = r.numbers[:0], r.histograms[:0], r.summaries[:0], r.exponentials[:0]
	r.attributes = r.attributes[:0]
	w := walk{Tree: t}
	for i := range t.Layout.Metrics {
		out := w.metric(&t.Layout.Metrics[i])
		switch out.Type() {
		case pmetric.MetricTypeGauge:
			r.numbers = note(r, r.numbers, out.Gauge().DataPoints())
		case pmetric.MetricTypeSum:
			r.numbers = note(r, r.numbers, out.Sum().DataPoints())
		case pmetric.MetricTypeHistogram:
			r.histograms = note(r, r.histograms, out.Histogram().DataPoints())
		case pmetric.MetricTypeSummary:
			r.summaries = note(r, r.summaries, out.Summary().DataPoints())
		case pmetric.MetricTypeExponentialHistogram:
			r.exponentials = note(r, r.exponentials, out.ExponentialHistogram().DataPoints())
		default:
		}
	}
	t.recordResources()
	if t.changes.Points {
		t.recordLists()
	}
	if t.changes.Removes {
		t.recordElements()
	}
}

// recordElements records what may be removed. Where metrics return from batches, resources and scopes are elsewhere by
// then.
func (t *Tree) recordElements() {
	e := &t.handed.elements
	e.Forget()
	t.handed.hasExemplars = t.hasExemplars
	rms := t.metrics.ResourceMetrics()
	if !t.later {
		slab.KeepElements(e, rms)
	}
	for _, rm := range rms.All() {
		if !t.later {
			slab.KeepElements(e, rm.ScopeMetrics())
		}
		for _, sm := range rm.ScopeMetrics().All() {
			slab.KeepElements(e, sm.Metrics())
			for _, m := range sm.Metrics().All() {
				keepPoints(e, m)
			}
		}
	}
}

func keepPoints(e *slab.Elements, m pmetric.Metric) {
	switch m.Type() {
	case pmetric.MetricTypeGauge:
		slab.KeepElements(e, m.Gauge().DataPoints())
	case pmetric.MetricTypeSum:
		slab.KeepElements(e, m.Sum().DataPoints())
	case pmetric.MetricTypeHistogram:
		slab.KeepElements(e, m.Histogram().DataPoints())
	case pmetric.MetricTypeSummary:
		slab.KeepElements(e, m.Summary().DataPoints())
	case pmetric.MetricTypeExponentialHistogram:
		slab.KeepElements(e, m.ExponentialHistogram().DataPoints())
	default:
	}
}

// PutBack restores what consumers have removed, once they are done.
func (t *Tree) PutBack() {
	if !t.changes.Removes {
		return
	}
	removed, whole := t.handed.elements.PutBack()
	t.torn = !whole
	t.hasExemplars = t.hasExemplars || removed > 0 && t.handed.hasExemplars
}

// recordLists records the attributes of points, where these come back changed.
func (t *Tree) recordLists() {
	r := &t.handed
	r.lists.Forget()
	keep(r, r.numbers)
	keep(r, r.histograms)
	keep(r, r.summaries)
	keep(r, r.exponentials)
}

func keep[P attributed](r *record, points []P) {
	for _, dp := range points {
		r.lists.Keep(dp.Attributes())
	}
}

// recordResources records the attributes of resources, which another target may have changed.
func (t *Tree) recordResources() {
	said := t.handed.resources[:0]
	for _, rm := range t.metrics.ResourceMetrics().All() {
		for k, v := range rm.Resource().Attributes().All() {
			said = append(said, k, v.Str())
		}
	}
	t.handed.resources = said
}

type attributed interface {
	comparable
	Attributes() pcommon.Map
}

type pointSlice[P any] interface {
	At(i int) P
	Len() int
}

func note[P attributed, S pointSlice[P]](r *record, to []P, dps S) []P {
	for i := range dps.Len() {
		dp := dps.At(i)
		to = append(to, dp)
		r.attributes = append(r.attributes, uint8(dp.Attributes().Len()))
	}
	return to
}

// A check compares a tree with its record, in the same order.
type check struct {
	*Tree

	numbers, histograms, summaries, exponentials, attributes int
}

// isIntact reports whether the tree is as it was handed out, as far as a cheap comparison shows.
func (t *Tree) isIntact() bool {
	if t.torn || !t.isFramed() {
		return false
	}
	w, c := walk{Tree: t}, check{Tree: t}
	for i := range t.Layout.Metrics {
		m := &t.Layout.Metrics[i]
		if !c.metric(m, w.metric(m)) {
			return false
		}
	}
	return c.numbers == len(t.handed.numbers) && c.histograms == len(t.handed.histograms) &&
		c.summaries == len(t.handed.summaries) && c.exponentials == len(t.handed.exponentials)
}

// isFramed reports whether the tree has the same resources and scopes, and each scope as many metrics as before.
func (t *Tree) isFramed() bool {
	l, rms := t.Layout, t.metrics.ResourceMetrics()
	if !t.hasResources() {
		return false
	}
	if len(l.Scopes) == 1 {
		if rms.Len() != 1 || rms.At(0).ScopeMetrics().Len() != 1 {
			return false
		}
		return t.hasScope(rms.At(0).ScopeMetrics().At(0), 0, len(l.Metrics))
	}
	scopes, metrics := make([]int32, len(l.Resources)), make([]int, len(l.Scopes))
	resources := 0
	for i := range l.Metrics {
		scope := l.Metrics[i].Scope
		if metrics[scope]++; metrics[scope] > 1 {
			continue
		}
		r := l.Scopes[scope].Resource
		if scopes[r]++; scopes[r] == 1 {
			resources++
		}
	}
	if rms.Len() != resources {
		return false
	}
	if !t.hasScopes(scopes) {
		return false
	}
	fits := true
	t.each(func(scope int32, sm pmetric.ScopeMetrics, _ pmetric.ResourceMetrics) {
		fits = fits && t.hasScope(sm, scope, metrics[scope])
	})
	return fits
}

// hasResources reports whether the resources have the attributes that they had, unless these are written anew.
func (t *Tree) hasResources() bool {
	if t.Poisoned || t.changes.Resources || t.changes.Removes {
		return true
	}
	said := t.handed.resources
	for _, rm := range t.metrics.ResourceMetrics().All() {
		for k, v := range rm.Resource().Attributes().All() {
			if len(said) < 2 || k != said[0] || v.Str() != said[1] {
				return false
			}
			said = said[2:]
		}
	}
	return len(said) == 0
}

func (t *Tree) hasScope(sm pmetric.ScopeMetrics, scope int32, metrics int) bool {
	return sm.Metrics().Len() == metrics && (t.Poisoned || sm.Scope().Name() == t.Layout.Scopes[scope].Scope.Name)
}

// hasScopes reports whether the resources, in the order of their first metrics, have the given numbers of scopes.
func (t *Tree) hasScopes(of []int32) bool {
	l, rms := t.Layout, t.metrics.ResourceMetrics()
	seen := make([]bool, len(l.Resources))
	next := 0
	for i := range l.Metrics {
		r := l.Scopes[l.Metrics[i].Scope].Resource
		if seen[r] {
			continue
		}
		seen[r] = true
		if rms.At(next).ScopeMetrics().Len() != int(of[r]) {
			return false
		}
		next++
	}
	return true
}

func (c *check) metric(m *plan.PlacedMetric, out pmetric.Metric) bool {
	b := m.Family.Base
	if !c.Poisoned && (out.Name() != b.Out || out.Description() != b.Help || out.Unit() != b.OutUnit) ||
		out.Metadata().Len() != 1 || out.Type() != b.TypeOfPoints() {
		return false
	}
	h := &c.handed
	switch b.Kind {
	case pmetric.MetricTypeSum:
		s := out.Sum()
		return s.AggregationTemporality() == cumulative && s.IsMonotonic() == b.Monotonic && c.areNumbers(s.DataPoints())
	case pmetric.MetricTypeHistogram:
		return out.Histogram().AggregationTemporality() == cumulative &&
			match(c, h.histograms, &c.histograms, out.Histogram().DataPoints(), c.isPlainHistogram)
	case pmetric.MetricTypeSummary:
		return match(c, h.summaries, &c.summaries, out.Summary().DataPoints(), func(pmetric.SummaryDataPoint) bool { return true })
	case pmetric.MetricTypeExponentialHistogram:
		return out.ExponentialHistogram().AggregationTemporality() == cumulative &&
			match(c, h.exponentials, &c.exponentials, out.ExponentialHistogram().DataPoints(),
				func(pmetric.ExponentialHistogramDataPoint) bool { return true }) // is rebuilt as a whole
	default:
		return c.areNumbers(out.Gauge().DataPoints())
	}
}

func (c *check) areNumbers(dps pmetric.NumberDataPointSlice) bool {
	h := &c.handed
	for i := range dps.Len() {
		at := c.numbers
		if at >= len(h.numbers) {
			return false
		}
		dp := dps.At(i)
		if dp != h.numbers[at] || !c.hasAttributes(dp.Attributes()) ||
			!isPlain(dp) || !c.hasExemplars && dp.Exemplars().Len() > 0 {
			return false
		}
		c.numbers++
		c.attributes++
	}
	return true
}

func (c *check) isPlainHistogram(dp pmetric.HistogramDataPoint) bool {
	return (c.hasExemplars || dp.Exemplars().Len() == 0) && !dp.HasMin() && !dp.HasMax()
}

// hasAttributes reports whether the next point has as many attributes as before. It need not, if attributes are
// restored.
func (c *check) hasAttributes(m pcommon.Map) bool {
	return c.changes.Points || uint8(m.Len()) == c.handed.attributes[c.attributes]
}

// isPlain reports whether filling a number again restores everything about it.
func isPlain(dp pmetric.NumberDataPoint) bool {
	return dp.Flags() == noFlags || dp.ValueType() == pmetric.NumberDataPointValueTypeEmpty
}

func match[P attributed, S pointSlice[P]](c *check, handed []P, next *int, dps S, fits func(P) bool) bool {
	for i := range dps.Len() {
		if *next >= len(handed) {
			return false
		}
		dp := dps.At(i)
		if dp != handed[*next] || !c.hasAttributes(dp.Attributes()) || !fits(dp) {
			return false
		}
		*next++
		c.attributes++
	}
	return true
}

// restore restores what poison has overwritten and filling does not, for target o: the last one may be reading its next
// page. The attributes of points may be left to Settle.
func (t *Tree) restore(o *Owner, points bool) {
	t.Poisoned, t.owner, t.attributesPoisoned = false, o.Identity, true
	t.version = o.Version
	l := t.Layout
	t.each(func(scope int32, sm pmetric.ScopeMetrics, _ pmetric.ResourceMetrics) {
		fillScope(l.Scopes[scope].Scope, sm)
	})
	t.ownResources(o)
	w := walk{Tree: t}
	for i := range l.Metrics {
		m := &l.Metrics[i]
		out := w.metric(m)
		out.SetName(m.Family.Base.Out)
		out.SetDescription(m.Family.Base.Help)
		out.SetUnit(m.Family.Base.OutUnit)
	}
	if points {
		t.restorePoints(o)
	}
}

// restorePoints restores what poison has overwritten in the attributes of points.
func (t *Tree) restorePoints(o *Owner) {
	t.attributesPoisoned, t.debt = false, nil
	l, w := t.Layout, walk{Tree: t}
	for i := range l.Metrics {
		m := &l.Metrics[i]
		out := w.metric(m)
		k := t.chosen(i)
		for j := range k.count {
			if at := int(k.at(j)); at >= 0 && at < len(l.Points) { // the others are renewed or dropped
				refillPoint(attributesOf(out, j), l.Points[at], o)
			}
		}
	}
}
