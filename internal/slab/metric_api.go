// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package slab

import "go.opentelemetry.io/collector/pdata/pmetric"

func appendGauge(to pmetric.MetricSlice, n int) (pmetric.Metric, pmetric.NumberDataPointSlice) {
	m := to.AppendEmpty()
	points := m.SetEmptyGauge().DataPoints()
	points.EnsureCapacity(n)
	return m, points
}

func appendSum(to pmetric.MetricSlice, n int) (pmetric.Metric, pmetric.NumberDataPointSlice) {
	m := to.AppendEmpty()
	points := m.SetEmptySum().DataPoints()
	points.EnsureCapacity(n)
	return m, points
}

func appendHistogram(to pmetric.MetricSlice, n int) (pmetric.Metric, pmetric.HistogramDataPointSlice) {
	m := to.AppendEmpty()
	points := m.SetEmptyHistogram().DataPoints()
	points.EnsureCapacity(n)
	return m, points
}

func appendSummary(to pmetric.MetricSlice, n int) (pmetric.Metric, pmetric.SummaryDataPointSlice) {
	m := to.AppendEmpty()
	points := m.SetEmptySummary().DataPoints()
	points.EnsureCapacity(n)
	return m, points
}

func appendBuckets(to pmetric.HistogramDataPointSlice, bounds []float64) pmetric.HistogramDataPoint {
	p := to.AppendEmpty()
	p.ExplicitBounds().FromRaw(bounds)
	p.BucketCounts().FromRaw(make([]uint64, len(bounds)+1))
	return p
}

func appendQuantiles(to pmetric.SummaryDataPointSlice, n int) pmetric.SummaryDataPoint {
	p := to.AppendEmpty()
	p.QuantileValues().EnsureCapacity(n)
	for range n {
		p.QuantileValues().AppendEmpty()
	}
	return p
}
