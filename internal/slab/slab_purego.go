// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

//go:build purego

package slab

import (
	"iter"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"
)

// Slabs are used by one goroutine at a time.
type Slabs struct{}

// Kept returns slabs, whose memory is not reused here.
func Kept() *Slabs { return new(Slabs) }

// Again declares that nothing made of kept slabs is used any more.
func (*Slabs) Again() {}

// Reserve makes room for n attributes in a map that is empty.
func (*Slabs) Reserve(into pcommon.Map, n int) { into.EnsureCapacity(n) }

// PutStr puts a string under a key that is not in the map. PutInt does the same for a number.
func (*Slabs) PutStr(into pcommon.Map, key, value string) { into.PutStr(key, value) }

// Text is a string that is the value of many attributes.
type Text struct{ text string }

// NewText returns a text.
func NewText(s string) *Text { return &Text{s} }

// String returns the string.
func (t *Text) String() string { return t.text }

// PutText is PutStr.
func (*Slabs) PutText(into pcommon.Map, key string, value *Text) { into.PutStr(key, value.text) }

// PutAll puts many strings under different keys into an empty map, in any order.
func (*Slabs) PutAll(into pcommon.Map, n int, all iter.Seq2[string, string]) { putRaw(into, n, all) }

// PutInt is described at PutStr.
func (*Slabs) PutInt(into pcommon.Map, key string, value int64) { into.PutInt(key, value) }

// AppendNumber appends an empty point.
func (*Slabs) AppendNumber(to pmetric.NumberDataPointSlice) pmetric.NumberDataPoint {
	return to.AppendEmpty()
}

// SetInt and SetDouble set the value of a point.
func (*Slabs) SetInt(of pmetric.NumberDataPoint, value int64) { of.SetIntValue(value) }

// SetDouble is described at SetInt.
func (*Slabs) SetDouble(of pmetric.NumberDataPoint, value float64) { of.SetDoubleValue(value) }

// AppendGauge appends a gauge without a name, with room for n points. AppendSum does the same for a sum.
func (*Slabs) AppendGauge(to pmetric.MetricSlice, n int) (pmetric.Metric, pmetric.NumberDataPointSlice) {
	return appendGauge(to, n)
}

// AppendSum is described at AppendGauge.
func (*Slabs) AppendSum(to pmetric.MetricSlice, n int) (pmetric.Metric, pmetric.NumberDataPointSlice) {
	return appendSum(to, n)
}

// AppendHistogram appends a histogram without a name, with room for n points.
func (*Slabs) AppendHistogram(to pmetric.MetricSlice, n int) (pmetric.Metric, pmetric.HistogramDataPointSlice) {
	return appendHistogram(to, n)
}

// AppendSummary appends a summary without a name, with room for n points.
func (*Slabs) AppendSummary(to pmetric.MetricSlice, n int) (pmetric.Metric, pmetric.SummaryDataPointSlice) {
	return appendSummary(to, n)
}

// AppendBuckets appends a point of a histogram with empty buckets.
func (*Slabs) AppendBuckets(to pmetric.HistogramDataPointSlice, bounds []float64) pmetric.HistogramDataPoint {
	return appendBuckets(to, bounds)
}

// AppendQuantiles appends a point of a summary with n empty quantiles.
func (*Slabs) AppendQuantiles(to pmetric.SummaryDataPointSlice, n int) pmetric.SummaryDataPoint {
	return appendQuantiles(to, n)
}

// ReserveExemplars makes room for n exemplars in an empty slice.
func (*Slabs) ReserveExemplars(into pmetric.ExemplarSlice, n int) { into.EnsureCapacity(n) }

// SetExemplar sets the value of an exemplar.
func (*Slabs) SetExemplar(of pmetric.Exemplar, value float64) { of.SetDoubleValue(value) }

// ChangeStr sets a string value, in its memory.
func ChangeStr(of pcommon.Value, value string) { of.SetStr(value) }

// ChangeDouble sets the float value of a point, in its memory.
func ChangeDouble(of pmetric.NumberDataPoint, value float64) { of.SetDoubleValue(value) }

// ChangeInt sets the integer value of a point, in its memory.
func ChangeInt(of pmetric.NumberDataPoint, value int64) { of.SetIntValue(value) }
