// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"bytes"
	"encoding/binary"
	"math"
	"testing"

	"github.com/prometheus/prometheus/prompb"
	writev2 "github.com/prometheus/prometheus/prompb/io/prometheus/write/v2"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/godwit-otel/godwit/internal/promwrite"
)

func TestSizeIsThatOfAppend(t *testing.T) {
	for shift := range 64 {
		for _, v := range []uint64{1 << shift, 1<<shift - 1} {
			assert.Equal(t, len(binary.AppendUvarint(nil, v)), Size(v))
		}
	}
	assert.Equal(t, 10, Size(math.MaxUint64))
}

func TestFieldsOfEveryLength(t *testing.T) {
	for _, n := range []int{0, 1, 127, 128, 129, 16383, 16384, 70000} {
		want := bytes.Repeat([]byte{7, 8, 9}, n)[:n]
		field, content := Begin([]byte("before"), RefsV2)
		field = End(append(field, want...), content)
		assert.Equal(t, AppendBytes([]byte("before"), RefsV2, want), field)
	}
}

// The largest values show that lengths fit into one byte.
func TestSampleOfLargestNumbers(t *testing.T) {
	data := AppendSample(nil, promwrite.StaleNaN, -1, -1)
	var ts writev2.TimeSeries
	require.NoError(t, ts.Unmarshal(data))
	require.Len(t, ts.Samples, 1)
	assert.Equal(t, promwrite.StaleNaN, math.Float64bits(ts.Samples[0].Value))
	assert.EqualValues(t, -1, ts.Samples[0].Timestamp)
	assert.EqualValues(t, -1, ts.Samples[0].StartTimestamp)
}

func TestNegativeZeroIsKept(t *testing.T) {
	data := AppendSample(nil, math.Float64bits(math.Copysign(0, -1)), 1, 0)
	var ts prompb.TimeSeries
	require.NoError(t, ts.Unmarshal(data))
	assert.True(t, math.Signbit(ts.Samples[0].Value))
}

func TestLabelsAndMetadata(t *testing.T) {
	var ts prompb.TimeSeries
	require.NoError(t, ts.Unmarshal(AppendLabel(AppendLabel(nil, "a", "1"), "b", "")))
	assert.Equal(t, []prompb.Label{{Name: "a", Value: "1"}, {Name: "b"}}, ts.Labels)

	var r prompb.WriteRequest
	require.NoError(t, r.Unmarshal(AppendMetaV1(AppendMetaV1(nil, promwrite.Metadata{
		Type: promwrite.Stateset, Family: "f", Help: "h", Unit: "u",
	}), promwrite.Metadata{})))
	assert.Equal(t, []prompb.MetricMetadata{
		{Type: prompb.MetricMetadata_STATESET, MetricFamilyName: "f", Help: "h", Unit: "u"}, {},
	}, r.Metadata)

	var s writev2.TimeSeries
	require.NoError(t, s.Unmarshal(AppendMetaV2(nil, promwrite.Gauge, math.MaxUint32, 1)))
	assert.Equal(t, writev2.Metadata{Type: writev2.Metadata_METRIC_TYPE_GAUGE, HelpRef: math.MaxUint32, UnitRef: 1}, s.Metadata)
}

func TestHistogramOfEveryField(t *testing.T) {
	h := promwrite.Histogram{
		Timestamp: 12, Count: promwrite.Number{Int: 7}, ZeroCount: promwrite.Number{Int: 3}, Sum: -1, ZeroThreshold: 1e-128,
		Schema: -4, ResetHint: promwrite.ResetGauge,
		PositiveSpans: []promwrite.Span{{Offset: math.MinInt32, Length: math.MaxUint32}}, PositiveDeltas: []int64{math.MinInt64, 5},
		NegativeSpans: []promwrite.Span{{}}, NegativeDeltas: []int64{-1}, CustomValues: []float64{1, math.Inf(1)},
	}
	var got writev2.Histogram
	require.NoError(t, got.Unmarshal(AppendHistogramStart(AppendHistogram(nil, &h), 9)))
	assert.Equal(t, writev2.Histogram{
		Timestamp: 12, StartTimestamp: 9, Count: &writev2.Histogram_CountInt{CountInt: 7}, ZeroCount: &writev2.Histogram_ZeroCountInt{ZeroCountInt: 3},
		Sum: -1, ZeroThreshold: 1e-128, Schema: -4, ResetHint: writev2.Histogram_RESET_HINT_GAUGE,
		PositiveSpans: []writev2.BucketSpan{{Offset: math.MinInt32, Length: math.MaxUint32}}, PositiveDeltas: []int64{math.MinInt64, 5},
		NegativeSpans: []writev2.BucketSpan{{}}, NegativeDeltas: []int64{-1}, CustomValues: []float64{1, math.Inf(1)},
	}, got)

	h = promwrite.Histogram{
		Count: promwrite.Number{IsFloat: true}, ZeroCount: promwrite.Number{IsFloat: true, Float: 0.5},
		PositiveCounts: []float64{1.5}, NegativeCounts: []float64{2.5},
	}
	got = writev2.Histogram{}
	require.NoError(t, got.Unmarshal(AppendHistogramStart(AppendHistogram(nil, &h), 0)))
	assert.Equal(t, writev2.Histogram{
		Count: &writev2.Histogram_CountFloat{}, ZeroCount: &writev2.Histogram_ZeroCountFloat{ZeroCountFloat: 0.5},
		PositiveCounts: []float64{1.5}, NegativeCounts: []float64{2.5},
	}, got)
}
