// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package delta

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"

	"github.com/godwit-otel/godwit/exporter/remotewriteexporter/internal/encode/histogram"
	"github.com/godwit-otel/godwit/exporter/remotewriteexporter/internal/encode/loss"
)

func seconds(n int) pcommon.Timestamp { return pcommon.Timestamp(n) * 1e9 }

func TestSumBeginsWithItsFirstPointAndGoesForward(t *testing.T) {
	d := New[string](2)
	f := func(key string, value float64, start, at int, total float64, began int64, reason loss.Reason) {
		t.Helper()
		gotTotal, gotBegan, gotReason := d.Number(key, value, seconds(start), seconds(at))
		require.Equal(t, reason, gotReason)
		require.InDelta(t, total, gotTotal, 0)
		require.Equal(t, began, gotBegan)
	}
	f("a", 1, 5, 10, 1, 5000, "")
	f("a", 2, 10, 20, 3, 5000, "")
	f("a", 4, 20, 20, 0, 0, loss.DeltaOrder)
	f("a", 4, 10, 15, 0, 0, loss.DeltaOrder)
	f("b", 1, 0, 10, 1, 10_000, "") // without a start time
	f("c", 1, 5, 10, 0, 0, loss.DeltaLimit)
	f("a", 8, 20, 30, 11, 5000, "")
	require.Equal(t, 2, d.Len())
}

func TestIdleSumsMakeRoom(t *testing.T) {
	d := New[string](2)
	number := func(key string, at int) loss.Reason {
		_, _, reason := d.Number(key, 1, 0, seconds(at))
		return reason
	}
	require.Empty(t, number("a", 1))
	require.Empty(t, number("b", 1))
	kept := func(ends bool) (keys []string) {
		d.Expire(1, ends, func(k string) { keys = append(keys, k) })
		return keys
	}
	require.Len(t, kept(true), 2)
	require.Len(t, kept(false), 2, "no generation has ended")
	require.Empty(t, number("b", 2))
	require.Equal(t, []string{"b"}, kept(true))
	require.Empty(t, number("c", 3))
	require.Equal(t, loss.DeltaLimit, number("a", 3))
}

// A histogram with another layout cannot be added: its sum restarts at the previous point.
func TestSumOfAnotherShapeBeginsWhereTheLastOneEnds(t *testing.T) {
	d := New[string](10)
	explicit := func(at int, bounds []float64, counts ...uint64) (histogram.Explicit, int64) {
		h := histogram.Explicit{Bounds: bounds, Counts: counts, Count: 1, HasSum: true, Sum: 1}
		began, reason := d.Explicit("explicit", &h, seconds(at-10), seconds(at))
		require.Empty(t, reason)
		return h, began
	}
	h, began := explicit(20, []float64{1}, 1, 0)
	require.EqualValues(t, 10_000, began)
	require.Equal(t, []uint64{1, 0}, h.Counts)
	h, began = explicit(30, []float64{1}, 1, 2)
	require.EqualValues(t, 10_000, began)
	require.Equal(t, histogram.Explicit{Bounds: []float64{1}, Counts: []uint64{2, 2}, Count: 2, Sum: 2, HasSum: true}, h)
	h, began = explicit(40, []float64{2}, 1, 2)
	require.EqualValues(t, 30_000, began)
	require.Equal(t, []uint64{1, 2}, h.Counts)

	exponential := func(at int, threshold float64) (histogram.Exponential, int64) {
		x := histogram.Exponential{Threshold: threshold, Count: 1, Positive: []histogram.Bucket{{Index: 1, Count: 1}}}
		began, reason := d.Exponential("exponential", &x, seconds(at-10), seconds(at))
		require.Empty(t, reason)
		return x, began
	}
	x, began := exponential(20, 0)
	require.EqualValues(t, 10_000, began)
	require.EqualValues(t, 1, x.Count)
	x, began = exponential(30, 0)
	require.EqualValues(t, 10_000, began)
	require.Equal(t, []histogram.Bucket{{Index: 1, Count: 2}}, x.Positive)
	x.Positive[0].Count = 99 // a copy belongs to the caller
	x, began = exponential(40, 0)
	require.EqualValues(t, 10_000, began)
	require.Equal(t, []histogram.Bucket{{Index: 1, Count: 3}}, x.Positive)
	x, began = exponential(50, 1)
	require.EqualValues(t, 40_000, began)
	require.EqualValues(t, 1, x.Count)
}

// Buckets beyond the range of numbers are refused: at no scale would there be few of them.
func TestSumsOfHistogramsHaveABound(t *testing.T) {
	d := New[string](10)
	add := func(at int, scale int32, buckets ...histogram.Bucket) (histogram.Exponential, loss.Reason) {
		x := histogram.Exponential{Scale: scale, Count: uint64(len(buckets)), Positive: buckets}
		_, reason := d.Exponential("x", &x, 0, seconds(at))
		return x, reason
	}
	for _, scale := range []int32{histogram.MinScale, 0, histogram.MaxScale} {
		for i := range 50 {
			var far []histogram.Bucket
			for j := range 100 {
				far = append(far, histogram.Bucket{Index: 1<<19 + int64(100*i+j), Count: 1})
			}
			x, reason := add(1+i, scale, far...)
			require.Equal(t, loss.Buckets, reason)
			require.Len(t, x.Positive, 100)
		}
	}
	require.Zero(t, d.Len())
	for at, v := range []float64{math.SmallestNonzeroFloat64, 1, math.MaxFloat64} {
		for _, scale := range []int32{histogram.MinScale, histogram.MaxScale} {
			exponent := math.Log2(v) * math.Pow(2, float64(scale)) // a bucket does not include its lower bound
			_, reason := add(100+2*at+int(scale)/histogram.MaxScale, scale, histogram.Bucket{Index: int64(math.Ceil(exponent)) - 1, Count: 1})
			require.Empty(t, reason, "%v at scale %d", v, scale)
		}
	}
}
