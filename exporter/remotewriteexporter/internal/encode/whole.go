// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package encode

import (
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/godwit-otel/godwit/internal/handback"
	pdataslab "github.com/godwit-otel/godwit/internal/slab"
)

// whole is what the points of a part of a loan were recognised as, all of them: metrics that a receiver places together again and again,
// between others each time. It is left with the part.
//
// As a recollection it does not depend on the receiver's word alone: the part is taken as a whole if the same metrics come with the same
// points, of as many attributes, and the metrics say of themselves what they did. A point that has become anything but a float is taken
// by itself.
type whole struct {
	of       *tenant
	removals uint64 // from the cache, until then
	schema   *schema
	scope    *scope
	scraped  bool
	metrics  []wholeMetric
	points   []wholePoint
}

// wholeMetric is a metric that says this of itself, and where its points end.
type wholeMetric struct {
	name, unit, help string
	family           *family
	monotonic        bool
	temporality      int32
	end              int
}

type wholePoint struct {
	point  *point
	series *series
	length int // of its attributes
}

// takePart takes a part of the loan, if one begins with a metric. It returns how many metrics it has; 0 if these have to be taken one by one.
func (w *walk) takePart(all pmetric.MetricSlice, from int) int {
	part := w.parts[0]
	at, ok := part.Memory.(*pdataslab.Stretch)
	metrics := pdataslab.Metrics(all)[from:]
	if !ok || metrics[0] != at.Metrics[0] {
		return 0
	}
	w.parts = w.parts[1:]
	if !part.Lasts() || !at.Begins(metrics) {
		return 0
	}
	n := w.wholeOf(part, at, all, from)
	if n == nil {
		return 0
	}
	first := 0
	for i := range n.metrics {
		m := &n.metrics[i]
		w.family = m.family
		w.wholeMetric(m, n.points[first:m.end], at.Points[first:m.end], all, from+i)
		first = m.end
	}
	w.before = n.points[first-1].point
	return len(n.metrics)
}

// wholeOf returns what is known of a part, or what its points are recognised as now; nil if it has to be taken one by one.
func (w *walk) wholeOf(part *handback.Part, at *pdataslab.Stretch, all pmetric.MetricSlice, from int) *whole {
	n, _ := part.Note(w.e).(*whole)
	if n != nil && n.of == w.t && n.removals == w.e.removals && n.schema == w.schema && n.scope == w.scope && n.scraped == w.scraped && n.says(at) {
		if len(n.metrics) == 0 { // it was looked at, and will be again when the cache has changed
			return nil
		}
		return n
	}
	n = &whole{of: w.t, removals: w.e.removals, schema: w.schema, scope: w.scope, scraped: w.scraped}
	if !w.recognise(n, at, all, from) {
		n.metrics, n.points = nil, nil
	}
	part.Leave(w.e, n)
	if len(n.metrics) == 0 {
		return nil
	}
	return n
}

// says tells whether metrics say of themselves what they did, and points have as many attributes.
func (n *whole) says(at *pdataslab.Stretch) bool {
	for i := range n.metrics {
		m := &n.metrics[i]
		name, unit, help := at.Metrics[i].Texts()
		monotonic, temporality := at.Metrics[i].Sums()
		if m.name != name || m.unit != unit || m.help != help || m.monotonic != monotonic || m.temporality != temporality || m.family.dead {
			return false
		}
	}
	return true
}

// recognise finds the points of a part. It is false if one has to be looked at each time.
func (w *walk) recognise(n *whole, at *pdataslab.Stretch, all pmetric.MetricSlice, from int) bool {
	family, before, last := w.family, w.before, w.last
	defer func() { w.family, w.before, w.last = family, before, last }()
	n.metrics, n.points = make([]wholeMetric, 0, len(at.Metrics)), make([]wholePoint, 0, len(at.Points))
	for i := range at.Metrics {
		m := all.At(from + i)
		f := w.findFamily(m, shapeOf(m))
		if w.before != nil {
			w.last = w.before
		}
		w.family, w.before = f, nil
		if f.reason != "" || f.dead || f.temporality != pmetric.AggregationTemporalityCumulative {
			return false
		}
		points := numbersOf(m)
		for j := range points.Len() {
			attributes := points.At(j).Attributes()
			p, number := w.findPoint(attributes, nil)
			if number == 0 || p.one == 0 {
				return false
			}
			w.before = p
			n.points = append(n.points, wholePoint{p, w.e.series.one(p.one), attributes.Len()})
		}
		known := wholeMetric{name: m.Name(), unit: m.Unit(), help: m.Description(), family: f, end: len(n.points)}
		known.monotonic, known.temporality = at.Metrics[i].Sums()
		n.metrics = append(n.metrics, known)
	}
	return true
}

func numbersOf(m pmetric.Metric) pmetric.NumberDataPointSlice {
	if m.Type() == pmetric.MetricTypeSum {
		return m.Sum().DataPoints()
	}
	return m.Gauge().DataPoints()
}

// wholeMetric takes the points of a metric, of which what each is has been recognised.
func (w *walk) wholeMetric(m *wholeMetric, known []wholePoint, points []*pdataslab.Number, all pmetric.MetricSlice, at int) {
	generation := w.e.generation.Load()
	time, millisOf := uint64(0), int64(0)
	for i, q := range points {
		k := &known[i]
		bits, t, start, ok := q.Float()
		if !ok || t < 1e6 || len(q.Attributes()) != k.length {
			w.numbers(numbersOf(all.At(at)), i, i+1)
			continue
		}
		if t != time {
			time, millisOf = t, int64(t/1e6)
			w.latest = max(w.latest, millisOf)
		}
		if k.point.seen.Load() != generation {
			k.point.seen.Store(generation)
		}
		w.hits++
		began := int64(0)
		if m.monotonic && start != 0 {
			began = w.start(pcommon.Timestamp(start))
		}
		w.s.add(k.series, millisOf, bits, began)
	}
}
