// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package promwrite

// Series is one TimeSeries message of either version.
type Series struct {
	Labels []Label
	// Encoded is the encoded labels, if [Decoder.Each] has left them so. Then Labels is empty.
	Encoded string
	// Rest is the message from such a series on: see [Decoder.Skip].
	Rest       string
	Samples    []Sample
	Histograms []Histogram
	Exemplars  []Exemplar
	// Type, Help and Unit are sent with 2.0 only.
	Type MetricType
	Help string
	Unit string
}

// Metadata is one MetricMetadata message. 1.0 sends these in a list of their own, mostly without series.
type Metadata struct {
	Type   MetricType
	Family string
	Help   string
	Unit   string
}

// Label is a name and its value.
type Label struct {
	Name, Value string
}

// Sample is a value at a time. Times are milliseconds since the epoch; StartTimestamp is zero when unknown.
type Sample struct {
	Value          float64
	Timestamp      int64
	StartTimestamp int64
}

// Exemplar is an example for a series, with labels of its own.
type Exemplar struct {
	Labels    []Label
	Value     float64
	Timestamp int64
}

// Histogram is a native histogram as sent. With integer counts its buckets are in the Deltas, with float counts
// in the Counts; Count.IsFloat says which.
type Histogram struct {
	Timestamp      int64
	StartTimestamp int64
	Count          Number
	ZeroCount      Number
	Sum            float64
	ZeroThreshold  float64
	Schema         int32
	ResetHint      ResetHint

	PositiveSpans  []Span
	PositiveDeltas []int64 // each the difference to the bucket before
	PositiveCounts []float64
	NegativeSpans  []Span
	NegativeDeltas []int64
	NegativeCounts []float64
	// CustomValues are the upper bounds of the buckets when Schema is CustomBucketsSchema.
	CustomValues []float64
}

// CustomBucketsSchema is the schema of a histogram whose bucket bounds are listed.
const CustomBucketsSchema = -53

// Number is a count: an integer or, when IsFloat, a float.
type Number struct {
	Int     uint64
	Float   float64
	IsFloat bool
}

// Span is a run of Length buckets, Offset after the end of the run before it.
type Span struct {
	Offset int32
	Length uint32
}

// MetricType is a metric's type. Numbers other than those listed may arrive.
type MetricType int32

// The types; both versions number them alike.
const (
	Unknown MetricType = iota
	Counter
	Gauge
	ClassicHistogram
	GaugeHistogram
	Summary
	Info
	Stateset
)

// typeNames are the names in Prometheus.
var typeNames = [...]string{"unknown", "counter", "gauge", "histogram", "gaugehistogram", "summary", "info", "stateset"}

// String returns the type's name in Prometheus.
func (t MetricType) String() string {
	if t < 0 || int(t) >= len(typeNames) {
		return typeNames[Unknown]
	}
	return typeNames[t]
}

// ResetHint is what the sender knows about a counter reset before a histogram.
type ResetHint int32

// The hints; both versions number them alike.
const (
	ResetUnknown ResetHint = iota
	ResetYes
	ResetNo
	ResetGauge // a gauge histogram, which has no resets
)

// StaleNaN is the bit pattern of the value that ends a series.
const StaleNaN uint64 = 0x7ff0000000000002
