// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package ident

import (
	"slices"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/godwit-otel/godwit/internal/slab"
	"github.com/godwit-otel/godwit/processor/cardinalityprocessor/internal/amount"
)

// A Shape is what the fingerprints of a scope's series are made of, except the scope: the hashes of metrics and of the
// attributes of their points, in order. Similar targets have the same shape. It never changes.
type Shape struct {
	Sum     uint64 // identifies the shape
	metrics []shapedMetric
	points  []uint64
}

type shapedMetric struct {
	name, rest uint64
	points     int
}

// shapeAt is a shape and the place of its hints.
type shapeAt struct {
	Place

	shape *Shape
}

// Metrics is the number of metrics.
func (s *Shape) Metrics() int { return len(s.metrics) }

// Points is how many points these have, and PointsOf how many one of them has.
func (s *Shape) Points() int { return len(s.points) }

// PointsOf is described at Points.
func (s *Shape) PointsOf(metric int) int { return s.metrics[metric].points }

// Each calls f with the fingerprints that the series of a scope have, for the wanted metrics.
func (s *Shape) Each(scope uint64, wanted func(metric int) bool, f func(fp uint64)) {
	points := s.points
	for i, m := range s.metrics {
		of := points[:m.points]
		points = points[m.points:]
		if !wanted(i) {
			continue
		}
		metric := Mix(Mix(scope, m.name), m.rest)
		for _, attributes := range of {
			f(Settled(Mix(metric, attributes)))
		}
	}
}

// Here returns the place of the next metric; Return goes back to it.
func (x *Hinted) Here() Place { return x.Place }

// Return is described at Here.
func (x *Hinted) Return(to Place) { x.Place = to }

// After returns the place of a metric with hints, counted from a place.
func (x *Hints) After(from Place, metrics int) Place {
	at := from.metric + metrics
	return Place{at, int(x.metrics[at].first)}
}

// Shape returns the shape of the metrics from a place on, if one was made of the current hints.
func (x *Hints) Shape(from Place) *Shape {
	for _, s := range x.shapes {
		if s.Place == from {
			return s.shape
		}
	}
	return nil
}

// maxShapes limits the scopes of a page with shapes.
const maxShapes = 64

// MakeShape makes a shape of the metrics from a place to here. It returns nil if hints of some are missing, and the
// shape that it is given for an equal one.
func (x *Hinted) MakeShape(from Place, share func(*Shape) *Shape) *Shape {
	if len(x.shapes) == maxShapes {
		return nil
	}
	s := &Shape{}
	next := from.point
	for i := from.metric; i < x.metric; i++ {
		k := &x.metrics[i]
		last := next + int(k.points)
		if int(k.first) != next || last > len(x.Points) {
			return nil
		}
		s.metrics = append(s.metrics, shapedMetric{name: k.ofName, rest: Mix(k.ofUnit, k.kind), points: int(k.points)})
		s.Sum = Mix(Mix(s.Sum, k.hash(0)), uint64(k.points))
		for _, p := range x.Points[next:last] {
			if p.length == unknowable {
				return nil
			}
			s.points = append(s.points, p.Hash)
			s.Sum = Mix(s.Sum, p.Hash)
		}
		next = last
	}
	if next != x.point || len(s.metrics) == 0 {
		return nil
	}
	s = share(s)
	x.shapes = append(x.shapes, shapeAt{from, s})
	return s
}

// Skip skips the hints of a metric.
func (x *Hinted) Skip() {
	if x.Hints == nil {
		return
	}
	x.point += int(x.metrics[x.metric].points)
	x.metric++
}

// Pass passes over the hints that a shape was made of.
func (x *Hinted) Pass(s *Shape) {
	x.metric += len(s.metrics)
	x.point += len(s.points)
}

// Is compares a metric with its hints and skips these. It reports whether they match, and none of its series ends.
func (x *Hinted) Is(m pmetric.Metric) bool {
	if x.metric == len(x.metrics) {
		return false
	}
	k := &x.metrics[x.metric]
	if k.name != m.Name() || k.unit != m.Unit() || k.kind != amount.KindOf(m) || int(k.points) != amount.PointCount(m) ||
		int(k.first) != x.point || x.point+int(k.points) > len(x.Points) {
		return false
	}
	x.metric++
	switch m.Type() {
	case pmetric.MetricTypeGauge:
		return x.areNumbers(m.Gauge().DataPoints())
	case pmetric.MetricTypeSum:
		return x.areNumbers(m.Sum().DataPoints())
	case pmetric.MetricTypeHistogram:
		return are(x, m.Histogram().DataPoints())
	case pmetric.MetricTypeExponentialHistogram:
		return are(x, m.ExponentialHistogram().DataPoints())
	case pmetric.MetricTypeSummary:
		return are(x, m.Summary().DataPoints())
	default:
		return true
	}
}

func (x *Hinted) areNumbers(points pmetric.NumberDataPointSlice) bool {
	if slab.Readable() {
		return x.areRaw(slab.Numbers(points))
	}
	for i := range points.Len() {
		dp := points.At(i)
		if amount.Ends(dp) || !x.isOf(&x.Points[x.point], dp.Attributes()) {
			return false
		}
		x.point++
	}
	return true
}

// areRaw is areNumbers for points whose memory can be read directly.
func (x *Hinted) areRaw(points []*slab.Number) bool {
	for _, dp := range points {
		p, attributes := &x.Points[x.point], dp.Attributes()
		if endsRaw(dp) || int(p.length) != len(attributes) || !areOf(x.texts[p.first:p.first+p.length], attributes) {
			return false
		}
		x.point++
	}
	return true
}

// Lasting returns how many points a metric has, and whether none of their series ends.
func Lasting(m pmetric.Metric) (points int, ok bool) {
	switch m.Type() {
	case pmetric.MetricTypeGauge:
		return numbersLast(m.Gauge().DataPoints())
	case pmetric.MetricTypeSum:
		return numbersLast(m.Sum().DataPoints())
	case pmetric.MetricTypeHistogram:
		return last(m.Histogram().DataPoints())
	case pmetric.MetricTypeExponentialHistogram:
		return last(m.ExponentialHistogram().DataPoints())
	case pmetric.MetricTypeSummary:
		return last(m.Summary().DataPoints())
	default:
		return 0, true
	}
}

func numbersLast(points pmetric.NumberDataPointSlice) (n int, ok bool) {
	if !slab.Readable() {
		for i := range points.Len() {
			if amount.Ends(points.At(i)) {
				return 0, false
			}
		}
		return points.Len(), true
	}
	all := slab.Numbers(points)
	return len(all), !slices.ContainsFunc(all, endsRaw)
}

func last[P flagged, S interface {
	Len() int
	At(i int) P
}](points S) (n int, ok bool) {
	n = points.Len()
	for i := range n {
		if points.At(i).Flags().NoRecordedValue() {
			return 0, false
		}
	}
	return n, true
}

// endsRaw is amount.Ends.
func endsRaw(dp *slab.Number) bool {
	if pmetric.DataPointFlags(dp.Flags()).NoRecordedValue() {
		return true
	}
	bits, ok := dp.Double()
	return ok && bits == amount.StaleBits
}

type flagged interface {
	Attributes() pcommon.Map
	Flags() pmetric.DataPointFlags
}

func are[P flagged, S interface {
	Len() int
	At(i int) P
}](x *Hinted, points S) bool {
	for i := range points.Len() {
		dp := points.At(i)
		if dp.Flags().NoRecordedValue() || !x.isOf(&x.Points[x.point], dp.Attributes()) {
			return false
		}
		x.point++
	}
	return true
}
