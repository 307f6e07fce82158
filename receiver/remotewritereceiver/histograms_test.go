// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package remotewritereceiver

import (
	"math"
	"math/rand/v2"
	"testing"

	writev2 "github.com/prometheus/prometheus/prompb/io/prometheus/write/v2"
	"github.com/stretchr/testify/require"

	"github.com/godwit-otel/godwit/internal/promwrite"
)

func native(h writev2.Histogram) writev2.TimeSeries {
	h.Timestamp = 2000
	return writev2.TimeSeries{Histograms: []writev2.Histogram{h}}
}

func TestNativeHistograms(t *testing.T) {
	f := func(h writev2.Histogram, want string) {
		t.Helper()
		got, lines := translated(t, newV2().series(native(h), histogram, "", "", "__name__", "x", "a", "b"))
		require.Equal(t, 204, got.code, got.body)
		require.Equal(t, promwrite.Written{Histograms: 1}, got.written)
		require.Equal(t, []string{`{} x{a=b} = ` + want + ` (histogram, "", "")`}, lines)
	}
	// The index of the bucket (1, 2] of schema 0 is 1 in Prometheus and 0 in OTLP.
	f(writev2.Histogram{
		Count: &writev2.Histogram_CountInt{CountInt: 12}, Sum: 30, Schema: 0, StartTimestamp: 1000,
		ZeroThreshold: 0.001, ZeroCount: &writev2.Histogram_ZeroCountInt{ZeroCountInt: 2},
		PositiveSpans: []writev2.BucketSpan{{Offset: 1, Length: 2}, {Offset: 1, Length: 1}}, PositiveDeltas: []int64{1, 2, -1},
		NegativeSpans: []writev2.BucketSpan{{Offset: -1, Length: 1}}, NegativeDeltas: []int64{4},
	}, "exponential(Cumulative) count=12 sum=30 scale=0 zero=2@0.001 +0[1 3 0 2] --2[4] @1000..2000")
	f(writev2.Histogram{
		Count: &writev2.Histogram_CountFloat{CountFloat: 4.2}, Sum: 1, Schema: 3, ZeroCount: &writev2.Histogram_ZeroCountFloat{ZeroCountFloat: 0.4},
		PositiveSpans: []writev2.BucketSpan{{Offset: 0, Length: 2}}, PositiveCounts: []float64{1.5, 2.6},
	}, "exponential(Cumulative) count=5 sum=1 scale=3 zero=0@0 +-1[2 3] -0[] @0..2000")
	f(writev2.Histogram{
		Count: &writev2.Histogram_CountInt{CountInt: 6}, Sum: 30, Schema: -53, CustomValues: []float64{-1, 0.5, 10},
		PositiveSpans: []writev2.BucketSpan{{Offset: 1, Length: 1}, {Offset: 1, Length: 1}}, PositiveDeltas: []int64{2, 2},
	}, "histogram(Cumulative) count=6 sum=30 bounds=[-1 0.5 10] counts=[0 2 0 4] @0..2000")
	f(writev2.Histogram{ // nothing observed yet
		Count: &writev2.Histogram_CountInt{}, Schema: -53, CustomValues: []float64{1},
	}, "histogram(Cumulative) count=0 sum=0 bounds=[1] counts=[0 0] @0..2000")
	f(writev2.Histogram{
		Count: &writev2.Histogram_CountInt{}, Schema: 8,
	}, "exponential(Cumulative) count=0 sum=0 scale=8 zero=0@0 +0[] -0[] @0..2000")
	f(writev2.Histogram{ // a reserved resolution: Prometheus reduces it to schema 8
		Count: &writev2.Histogram_CountInt{CountInt: 10}, Sum: 30, Schema: 10,
		PositiveSpans: []writev2.BucketSpan{{Offset: 4, Length: 4}}, PositiveDeltas: []int64{1, 1, 1, 1},
	}, "exponential(Cumulative) count=10 sum=30 scale=8 zero=0@0 +0[1 9] -0[] @0..2000")
	f(writev2.Histogram{ // everything below the first bound
		Count: &writev2.Histogram_CountInt{CountInt: 3}, Sum: 1, Schema: -53, CustomValues: []float64{math.Inf(-1), 1},
		PositiveSpans: []writev2.BucketSpan{{Offset: 0, Length: 2}}, PositiveDeltas: []int64{1, 1},
	}, "histogram(Cumulative) count=3 sum=1 bounds=[-Inf 1] counts=[1 2 0] @0..2000")
	f(writev2.Histogram{ // an observation of NaN is counted, but in no bucket
		Count: &writev2.Histogram_CountInt{CountInt: 2}, Sum: math.NaN(),
		PositiveSpans: []writev2.BucketSpan{{Offset: 1, Length: 1}}, PositiveDeltas: []int64{1},
	}, "exponential(Cumulative) count=2 sum=NaN scale=0 zero=0@0 +0[1] -0[] @0..2000")
	f(writev2.Histogram{ // stale
		Count: &writev2.Histogram_CountInt{}, Sum: math.Float64frombits(promwrite.StaleNaN),
	}, "exponential(Cumulative) count=0 sum=0 scale=0 zero=0@0 +0[] -0[] @0..2000 stale")
	f(writev2.Histogram{
		Count: &writev2.Histogram_CountInt{}, Sum: math.Float64frombits(promwrite.StaleNaN), Schema: -53, CustomValues: []float64{1},
	}, "histogram(Cumulative) count=0 sum=0 bounds=[] counts=[] @0..2000 stale")
}

func TestMalformedHistogramsAreRefused(t *testing.T) {
	ten := &writev2.Histogram_CountInt{CountInt: 10}
	f := func(h writev2.Histogram, want error) {
		t.Helper()
		got, lines := translated(t, newV2().series(native(h), histogram, "", "", "__name__", "x"))
		require.Equal(t, 400, got.code)
		require.Equal(t, `cannot take 1 items, first: series 0 ("x"): `+want.Error(), got.body)
		require.Zero(t, got.written)
		require.Empty(t, lines)
	}
	one := func(offset int32) []writev2.BucketSpan { return []writev2.BucketSpan{{Offset: offset, Length: 1}} }
	f(writev2.Histogram{Count: ten, Sum: math.NaN(), ZeroCount: &writev2.Histogram_ZeroCountInt{ZeroCountInt: math.MaxUint64}}, errTotal)
	f(writev2.Histogram{Count: ten, PositiveSpans: one(0)}, errBuckets)
	f(writev2.Histogram{Count: ten, PositiveDeltas: []int64{1}}, errBuckets)
	f(writev2.Histogram{Count: ten, PositiveSpans: []writev2.BucketSpan{{Length: math.MaxUint32}}, PositiveDeltas: []int64{1}}, errBuckets)
	f(writev2.Histogram{Count: ten, NegativeSpans: one(0), PositiveDeltas: []int64{1}}, errBuckets)
	f(writev2.Histogram{Count: ten, PositiveSpans: append(one(0), one(-1)...), PositiveDeltas: []int64{1, 1}}, errSpan)
	f(writev2.Histogram{Count: ten, PositiveSpans: one(0), PositiveDeltas: []int64{-1}}, errCount)
	f(writev2.Histogram{Count: ten, PositiveSpans: append(one(0), one(0)...), PositiveDeltas: []int64{math.MaxInt64, 1}}, errCount)
	f(writev2.Histogram{Count: ten, PositiveSpans: one(0), PositiveDeltas: []int64{11}}, errTotal)
	f(writev2.Histogram{Count: ten, PositiveSpans: one(0), PositiveDeltas: []int64{9}}, errTotal)
	f(writev2.Histogram{Count: ten}, errTotal)
	f(writev2.Histogram{Count: ten, PositiveSpans: one(0), PositiveDeltas: []int64{11}, Sum: math.NaN()}, errTotal)
	f(writev2.Histogram{Count: &writev2.Histogram_CountFloat{CountFloat: 10}, PositiveSpans: one(0), PositiveCounts: []float64{4}}, errTotal)
	f(writev2.Histogram{Count: ten, Schema: -53, CustomValues: []float64{1}, PositiveSpans: one(0), PositiveDeltas: []int64{9}}, errTotal)
	f(writev2.Histogram{Count: &writev2.Histogram_CountFloat{CountFloat: math.Inf(1)}}, errCount)
	f(writev2.Histogram{Count: &writev2.Histogram_CountFloat{CountFloat: -1}}, errCount)
	f(writev2.Histogram{Count: &writev2.Histogram_CountFloat{CountFloat: 1}, PositiveSpans: one(0), PositiveCounts: []float64{math.NaN()}}, errCount)
	f(writev2.Histogram{Count: ten, PositiveSpans: append(one(math.MinInt32), one(math.MaxInt32)...), PositiveDeltas: []int64{1, 1}}, errBucketRange)
	f(writev2.Histogram{Count: ten, PositiveSpans: append(one(-100000), one(200000)...), PositiveDeltas: []int64{1, 1}}, errBucketRange)
	f(writev2.Histogram{Count: ten, Schema: -53, CustomValues: []float64{1}, PositiveSpans: one(2), PositiveDeltas: []int64{1}}, errBuckets)
	f(writev2.Histogram{Count: ten, Schema: -53, CustomValues: []float64{1}, PositiveSpans: one(-1), PositiveDeltas: []int64{1}}, errBuckets)
	f(writev2.Histogram{Count: ten, Schema: -53, CustomValues: []float64{1, 1}}, errBounds)
	f(writev2.Histogram{Count: ten, Schema: -53, CustomValues: []float64{math.Inf(1)}}, errBounds)
	f(writev2.Histogram{Count: ten, Schema: -53, CustomValues: []float64{1}, NegativeSpans: one(0), NegativeDeltas: []int64{1}}, errBuckets)
}

func TestOnlyKnownSchemas(t *testing.T) {
	for _, schema := range []int32{-54, -5, 53} {
		h := writev2.Histogram{Count: &writev2.Histogram_CountInt{}, Schema: schema}
		got, _ := translated(t, newV2().series(native(h), histogram, "", "", "__name__", "x"))
		require.Contains(t, got.body, "is not between -4 and 52, nor -53")
	}
}

// A bucket (2^(i/2^n), 2^((i+1)/2^n)] of one scale is part of bucket i/2^k of a scale lower by k. Downscaling must move
// counts only like that.
func TestSpreadPutsEachCountWhereItBelongs(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	var scratch bucketScratch
	shifted := 0
	for range 2000 {
		h := promwrite.Histogram{Schema: int32(random.IntN(16) - 4)}
		want := map[int64]uint64{}
		next, last := int64(0), int64(0)
		for i := range random.IntN(6) {
			offset := int64(random.IntN(1 << random.IntN(12)))
			if i == 0 {
				offset -= 50
			}
			span := promwrite.Span{Offset: int32(offset), Length: uint32(random.IntN(4))}
			h.PositiveSpans = append(h.PositiveSpans, span)
			next += offset
			for range span.Length {
				n := int64(random.IntN(10))
				h.PositiveDeltas = append(h.PositiveDeltas, n-last)
				last = n
				h.Count.Int += uint64(n)
				want[next-1] += uint64(n)
				next++
			}
		}
		if err := scratch.load(&h); err != nil {
			require.ErrorIs(t, err, errBucketRange)
			continue
		}
		shift := h.Schema - scratch.scale
		require.GreaterOrEqual(t, shift, max(0, h.Schema-maxSchema))
		if shift > 0 {
			shifted++
		}
		require.LessOrEqual(t, int64(len(scratch.positive.counts)), denseLimit(len(h.PositiveDeltas)))
		for index, n := range want {
			if n > 0 {
				at := int64(math.Floor(float64(index)/math.Exp2(float64(shift)))) - scratch.positive.first
				require.GreaterOrEqual(t, scratch.positive.counts[at], n)
				scratch.positive.counts[at] -= n
			}
		}
		for _, n := range scratch.positive.counts {
			require.Zero(t, n, "a count that nobody sent")
		}
	}
	require.Positive(t, shifted)
}
