// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

//go:build !purego

//nolint:gosec // look makes sure of what is assumed here
package slab

import (
	"unsafe"

	"go.opentelemetry.io/collector/pdata/pmetric"
)

// A metric is three allocations in pdata, and a list of pointers: here the three are one.
type (
	gaugePiece struct {
		metric metric
		box    metricGauge
		gauge  gauge
	}
	sumPiece struct {
		metric metric
		box    metricSum
		sum    sum
	}
)

// AppendGauge appends a gauge without a name, with room for n points, and AppendSum a sum.
func (s *Slabs) AppendGauge(to pmetric.MetricSlice, n int) (pmetric.Metric, pmetric.NumberDataPointSlice) {
	if !known {
		return appendGauge(to, n)
	}
	p := s.gauges.piece()
	p.gauge.dataPoints = s.lists.list(n)
	p.box.gauge = &p.gauge
	p.metric.data = box(kinds.gauge, unsafe.Pointer(&p.box))
	m := appendMetric(to, &p.metric)
	return m, m.Gauge().DataPoints()
}

// AppendSum is described at AppendGauge.
func (s *Slabs) AppendSum(to pmetric.MetricSlice, n int) (pmetric.Metric, pmetric.NumberDataPointSlice) {
	if !known {
		return appendSum(to, n)
	}
	p := s.sums.piece()
	p.sum.dataPoints = s.lists.list(n)
	p.box.sum = &p.sum
	p.metric.data = box(kinds.sum, unsafe.Pointer(&p.box))
	m := appendMetric(to, &p.metric)
	return m, m.Sum().DataPoints()
}

func appendMetric(to pmetric.MetricSlice, m *metric) pmetric.Metric {
	all := (*metricSlice)(unsafe.Pointer(&to)).orig
	*all = append(*all, m)
	return to.At(to.Len() - 1)
}
