// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package stencil

import (
	"encoding/binary"
	"math"

	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/godwit-otel/godwit/internal/slab"
)

// filling writes the numbers of metrics into a copy of a text, and compares everything else with the text.
type filling struct {
	text, out []byte // of the same size; they may be the same slice
	at        int
	// mask is what numbers are ANDed with: 0 makes a stencil of encoded metrics.
	mask  uint64
	aside tail // for values that are too long to be compared in place
}

// scopes returns false if the text is not that of the resource's metrics.
func (f *filling) scopes(rm pmetric.ResourceMetrics) bool {
	if !f.same(3, rm.SchemaUrl()) {
		return false
	}
	all := rm.ScopeMetrics()
	for i := range all.Len() {
		end, ok := f.begin(2)
		if !ok || !f.scope(all.At(i)) || f.at != end {
			return false
		}
	}
	return f.at == len(f.text)
}

func (f *filling) scope(sm pmetric.ScopeMetrics) bool {
	if !f.same(3, sm.SchemaUrl()) {
		return false
	}
	all := sm.Metrics()
	for i := range all.Len() {
		end, ok := f.begin(2)
		if !ok || !f.metric(all.At(i)) || f.at != end {
			return false
		}
	}
	scope := sm.Scope()
	end, ok := f.begin(1)
	return ok && f.count(4, uint64(scope.DroppedAttributesCount())) && f.attributes(3, slab.Attributes(scope.Attributes())) &&
		f.same(2, scope.Version()) && f.same(1, scope.Name()) && f.at == end
}

// Fields of opentelemetry.proto.metrics.v1.Metric that have points.
const (
	gaugeField     = 5
	sumField       = 7
	histogramField = 9
	summaryField   = 11
)

// metric returns false also for metrics that are not supported: those whose numbers do not have eight bytes, and those
// with more contents than numbers.
func (f *filling) metric(m pmetric.Metric) bool {
	if m.Metadata().Len() > 0 {
		return false
	}
	switch m.Type() {
	case pmetric.MetricTypeGauge:
		end, ok := f.begin(gaugeField)
		if !ok || !f.numbers(slab.Numbers(m.Gauge().DataPoints())) || f.at != end {
			return false
		}
	case pmetric.MetricTypeSum:
		sum := m.Sum()
		end, ok := f.begin(sumField)
		if !ok || sum.IsMonotonic() && !f.count(3, 1) || !f.count(2, uint64(sum.AggregationTemporality())) ||
			!f.numbers(slab.Numbers(sum.DataPoints())) || f.at != end {
			return false
		}
	case pmetric.MetricTypeHistogram:
		histogram := m.Histogram()
		end, ok := f.begin(histogramField)
		if !ok || !f.count(2, uint64(histogram.AggregationTemporality())) ||
			!filled(f, histogram.DataPoints(), (*filling).histogram) || f.at != end {
			return false
		}
	case pmetric.MetricTypeSummary:
		end, ok := f.begin(summaryField)
		if !ok || !filled(f, m.Summary().DataPoints(), (*filling).summary) || f.at != end {
			return false
		}
	default:
		return false
	}
	return f.same(3, m.Unit()) && f.same(2, m.Description()) && f.same(1, m.Name())
}

func filled[P any, S list[P]](f *filling, all S, fill func(*filling, P) bool) bool {
	for i := range all.Len() {
		end, ok := f.begin(1)
		if !ok || !fill(f, all.At(i)) || f.at != end {
			return false
		}
	}
	return true
}

// list is one of pdata's slices.
type list[P any] interface {
	Len() int
	At(i int) P
}

// numbers handles points of gauges and sums. Most points are such, so it is written out.
func (f *filling) numbers(all []*slab.Number) bool {
	for _, p := range all {
		end, ok := f.begin(1)
		if !ok || p.Exemplars() > 0 || !f.count(8, uint64(p.Flags())) {
			return false
		}
		bits, kind, ok := p.Value()
		at, start := p.Times()
		tag := byte(4<<3 | typeFixed64)
		if kind == slab.Int {
			tag = 6<<3 | typeFixed64
		}
		b := f.text[f.at:]
		if ok && kind != slab.NoScalar && at != 0 && start != 0 && len(b) >= 27 {
			if b[0] != tag || b[9] != 3<<3|typeFixed64 || b[18] != 2<<3|typeFixed64 {
				return false
			}
			out := f.out[f.at : f.at+27]
			binary.LittleEndian.PutUint64(out[1:], bits&f.mask)
			binary.LittleEndian.PutUint64(out[10:], at&f.mask)
			binary.LittleEndian.PutUint64(out[19:], start&f.mask)
			f.at += 27
		} else if !ok || kind != slab.NoScalar && !f.number(tag, bits) || !f.nonzero(3<<3|typeFixed64, at) || !f.nonzero(2<<3|typeFixed64, start) {
			return false
		}
		if !f.attributes(7, p.Attributes()) || f.at != end {
			return false
		}
	}
	return true
}

func (f *filling) histogram(p pmetric.HistogramDataPoint) bool {
	if p.HasMax() && !f.number(12<<3|typeFixed64, math.Float64bits(p.Max())) ||
		p.HasMin() && !f.number(11<<3|typeFixed64, math.Float64bits(p.Min())) ||
		!f.count(10, uint64(p.Flags())) || p.Exemplars().Len() > 0 {
		return false
	}
	bounds, counts := p.ExplicitBounds(), p.BucketCounts()
	if bounds.Len() > 0 {
		end, ok := f.begin(7)
		if !ok || end-f.at != 8*bounds.Len() {
			return false
		}
		for i := range bounds.Len() {
			if binary.LittleEndian.Uint64(f.text[f.at:]) != math.Float64bits(bounds.At(i)) {
				return false
			}
			f.at += 8
		}
	}
	if counts.Len() > 0 {
		end, ok := f.begin(6)
		if !ok || end-f.at != 8*counts.Len() {
			return false
		}
		for i := range counts.Len() {
			binary.LittleEndian.PutUint64(f.out[f.at:], counts.At(i)&f.mask)
			f.at += 8
		}
	}
	return (!p.HasSum() || f.number(5<<3|typeFixed64, math.Float64bits(p.Sum()))) &&
		f.nonzero(4<<3|typeFixed64, p.Count()) &&
		f.nonzero(3<<3|typeFixed64, uint64(p.Timestamp())) &&
		f.nonzero(2<<3|typeFixed64, uint64(p.StartTimestamp())) &&
		f.attributes(9, slab.Attributes(p.Attributes()))
}

func (f *filling) summary(p pmetric.SummaryDataPoint) bool {
	if !f.count(8, uint64(p.Flags())) {
		return false
	}
	all := p.QuantileValues()
	for i := range all.Len() {
		q := all.At(i)
		end, ok := f.begin(6)
		if !ok || !f.nonzero(2<<3|typeFixed64, math.Float64bits(q.Value())) || !f.constant(1<<3|typeFixed64, math.Float64bits(q.Quantile())) || f.at != end {
			return false
		}
	}
	return f.nonzero(5<<3|typeFixed64, math.Float64bits(p.Sum())) &&
		f.nonzero(4<<3|typeFixed64, p.Count()) &&
		f.nonzero(3<<3|typeFixed64, uint64(p.Timestamp())) &&
		f.nonzero(2<<3|typeFixed64, uint64(p.StartTimestamp())) &&
		f.attributes(7, slab.Attributes(p.Attributes()))
}
