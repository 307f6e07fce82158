// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

//go:build !purego

//nolint:gosec // look makes sure of what is assumed here
package slab

import (
	"unsafe"

	"go.opentelemetry.io/collector/pdata/pmetric"
)

type (
	histogramPiece struct {
		metric    metric
		box       metricHistogram
		histogram histogram
	}
	summaryPiece struct {
		metric  metric
		box     metricSummary
		summary summary
	}

	// histogramStocks are stocks for histograms, in addition to those for all points.
	histogramStocks struct {
		metrics stock[histogramPiece]
		lists   stock[*histogramDataPoint]
		points  stock[histogramDataPoint]
		counts  stock[uint64]
		bounds  stock[float64]
	}
	summaryStocks struct {
		metrics   stock[summaryPiece]
		lists     stock[*summaryDataPoint]
		points    stock[summaryDataPoint]
		quantiles stock[summaryDataPointValueAtQuantile]
		each      stock[*summaryDataPointValueAtQuantile]
	}
)

func (s *histogramStocks) keep() {
	s.metrics.keeps, s.lists.keeps, s.points.keeps, s.counts.keeps, s.bounds.keeps = true, true, true, true, true
}

func (s *histogramStocks) again() {
	s.metrics.again()
	s.lists.again()
	s.points.again()
	s.counts.again()
	s.bounds.again()
}

func (s *summaryStocks) keep() {
	s.metrics.keeps, s.lists.keeps, s.points.keeps, s.quantiles.keeps, s.each.keeps = true, true, true, true, true
}

func (s *summaryStocks) again() {
	s.metrics.again()
	s.lists.again()
	s.points.again()
	s.quantiles.again()
	s.each.again()
}

// AppendHistogram appends a histogram without a name, with room for n points.
func (s *Slabs) AppendHistogram(to pmetric.MetricSlice, n int) (pmetric.Metric, pmetric.HistogramDataPointSlice) {
	if !known {
		return appendHistogram(to, n)
	}
	p := s.histograms.metrics.piece()
	p.histogram.dataPoints = s.histograms.lists.list(n)
	p.box.histogram = &p.histogram
	p.metric.data = box(kinds.histogram, unsafe.Pointer(&p.box))
	m := appendMetric(to, &p.metric)
	return m, m.Histogram().DataPoints()
}

// AppendSummary appends a summary without a name, with room for n points.
func (s *Slabs) AppendSummary(to pmetric.MetricSlice, n int) (pmetric.Metric, pmetric.SummaryDataPointSlice) {
	if !known {
		return appendSummary(to, n)
	}
	p := s.summaries.metrics.piece()
	p.summary.dataPoints = s.summaries.lists.list(n)
	p.box.summary = &p.summary
	p.metric.data = box(kinds.summary, unsafe.Pointer(&p.box))
	m := appendMetric(to, &p.metric)
	return m, m.Summary().DataPoints()
}

// AppendBuckets appends a point of a histogram with buckets, which are empty.
func (s *Slabs) AppendBuckets(to pmetric.HistogramDataPointSlice, bounds []float64) pmetric.HistogramDataPoint {
	if !known {
		return appendBuckets(to, bounds)
	}
	p := s.histograms.points.piece()
	n := len(bounds)
	p.bucketCounts = s.histograms.counts.list(n + 1)[:n+1]
	p.explicitBounds = append(s.histograms.bounds.list(n), bounds...)
	all := (*[]*histogramDataPoint)(unsafe.Pointer((*elements)(unsafe.Pointer(&to)).orig))
	*all = append(*all, p)
	return to.At(to.Len() - 1)
}

// AppendQuantiles appends a point of a summary with n quantiles, which are empty.
func (s *Slabs) AppendQuantiles(to pmetric.SummaryDataPointSlice, n int) pmetric.SummaryDataPoint {
	if !known {
		return appendQuantiles(to, n)
	}
	p := s.summaries.points.piece()
	p.quantileValues = s.summaries.each.list(n)
	for range n {
		p.quantileValues = append(p.quantileValues, s.summaries.quantiles.piece())
	}
	all := (*[]*summaryDataPoint)(unsafe.Pointer((*elements)(unsafe.Pointer(&to)).orig))
	*all = append(*all, p)
	return to.At(to.Len() - 1)
}
