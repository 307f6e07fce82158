// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package histogram

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/godwit-otel/godwit/internal/promwrite"
)

// random returns some buckets, sorted, none of them empty.
func random(r *rand.Rand, n, gap int) (list []Bucket) {
	at := int64(r.IntN(200) - 100)
	for range n {
		at += 1 + int64(r.IntN(gap))
		list = append(list, Bucket{at, 1 + r.Uint64N(1000)})
	}
	return list
}

// coarse merges 2^shift buckets into one, in a slow and obvious way.
func coarse(of map[int64]uint64, list []Bucket, shift int32) map[int64]uint64 {
	width := int64(1) << shift
	for _, b := range list {
		of[int64(math.Floor(float64(b.Index)/float64(width)))] += b.Count
	}
	return of
}

func TestSumHasTheBucketsOfBothAtOneScale(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 9))
	for range 200 {
		x := Exponential{Scale: int32(r.IntN(13)) - 4, Positive: random(r, r.IntN(900), 1+r.IntN(20)), Negative: random(r, r.IntN(5), 3), Count: 7, Sum: 1, ZeroCount: 2}
		y := Exponential{Scale: int32(r.IntN(13)) - 4, Positive: random(r, r.IntN(900), 1+r.IntN(20)), Negative: random(r, r.IntN(5), 3), Count: 8, Sum: 2, ZeroCount: 3}
		var before, other Exponential
		before.CopyOf(&x)
		other.CopyOf(&y)
		x.Add(&y)
		require.LessOrEqual(t, x.Scale, min(before.Scale, other.Scale))
		if x.Scale > MinScale {
			require.LessOrEqual(t, len(x.Positive)+len(x.Negative), maxBuckets)
		}
		for _, side := range [][3][]Bucket{{x.Positive, before.Positive, other.Positive}, {x.Negative, before.Negative, other.Negative}} {
			want := coarse(coarse(map[int64]uint64{}, side[1], before.Scale-x.Scale), side[2], other.Scale-x.Scale)
			got := map[int64]uint64{}
			for i, b := range side[0] {
				require.True(t, i == 0 || side[0][i-1].Index < b.Index, "sorted")
				got[b.Index] = b.Count
			}
			require.Equal(t, want, got)
		}
		require.Equal(t, Exponential{Scale: x.Scale, Positive: x.Positive, Negative: x.Negative, Count: 15, Sum: 3, ZeroCount: 5}, x)
	}
}

// expand decodes the sparse form of buckets like Prometheus.
func expand(t *testing.T, spans []promwrite.Span, deltas []int64) map[int64]uint64 {
	t.Helper()
	all := map[int64]uint64{}
	at, count := int64(0), int64(0)
	for _, s := range spans {
		at += int64(s.Offset)
		for range s.Length {
			count += deltas[0]
			deltas = deltas[1:]
			require.GreaterOrEqual(t, count, int64(0))
			if count > 0 {
				all[at] = uint64(count)
			}
			at++
		}
	}
	require.Empty(t, deltas)
	return all
}

func TestNativeHistogramHasTheBucketsItIsFilledFrom(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 10))
	var n promwrite.Histogram
	for range 200 {
		x := Exponential{Scale: 3, ZeroCount: 4, Count: 4, Sum: 5, Positive: random(r, r.IntN(60), 6), Negative: random(r, r.IntN(60), 6)}
		want := [2]map[int64]uint64{{}, {}}
		for i, list := range [...][]Bucket{x.Positive, x.Negative} {
			for _, b := range list {
				x.Count += b.Count
				want[i][b.Index+1] = b.Count // Prometheus' index is that of the upper bound
			}
		}
		n = promwrite.Histogram{
			PositiveSpans: n.PositiveSpans[:0], PositiveDeltas: n.PositiveDeltas[:0],
			NegativeSpans: n.NegativeSpans[:0], NegativeDeltas: n.NegativeDeltas[:0],
		}
		require.True(t, x.Fill(&n))
		require.Equal(t, want[0], expand(t, n.PositiveSpans, n.PositiveDeltas))
		require.Equal(t, want[1], expand(t, n.NegativeSpans, n.NegativeDeltas))
		require.Equal(t, x.Count, n.Count.Int)
		require.InDelta(t, leastZero, n.ZeroThreshold, 0)
		x.Count--
		require.False(t, x.Fill(&promwrite.Histogram{}), "buckets hold more than there is")
		x.Count += 2
		require.False(t, x.Fill(&promwrite.Histogram{}), "buckets hold less")
		x.Sum = math.NaN()
		require.True(t, x.Fill(&promwrite.Histogram{}), "what is no number is in none")
	}
}

func TestCustomBucketsAreThoseOfTheBounds(t *testing.T) {
	f := func(h Explicit, bounds []float64, want map[int64]uint64, count uint64) {
		t.Helper()
		var n promwrite.Histogram
		require.True(t, h.FillCustom(&n))
		require.Equal(t, bounds, n.CustomValues)
		require.Equal(t, want, expand(t, n.PositiveSpans, n.PositiveDeltas))
		require.Equal(t, count, n.Count.Int)
		require.EqualValues(t, promwrite.CustomBucketsSchema, n.Schema)
	}
	f(Explicit{Bounds: []float64{1, 2}, Counts: []uint64{3, 0, 4}, Count: 7}, []float64{1, 2}, map[int64]uint64{0: 3, 2: 4}, 7)
	f(Explicit{Bounds: []float64{1, 1, 2}, Counts: []uint64{3, 2, 1}, Count: 6}, []float64{1, 2}, map[int64]uint64{0: 3, 1: 3}, 6)
	f(Explicit{Bounds: []float64{1}, Counts: []uint64{1}, Count: 5}, []float64{1}, map[int64]uint64{0: 1, 1: 4}, 5)
	f(Explicit{Bounds: []float64{1}, Counts: []uint64{1, 5}, Count: 2}, []float64{1}, map[int64]uint64{0: 1, 1: 5}, 6)
	for _, h := range []Explicit{
		{Bounds: []float64{2, 1}, Counts: []uint64{1, 1, 1}, Count: 3},
		{Bounds: []float64{math.NaN()}, Counts: []uint64{1, 1}, Count: 2},
		{Bounds: []float64{1}, Counts: []uint64{1 << 63, 1}, Count: 1<<63 + 1},
	} {
		require.False(t, h.FillCustom(&promwrite.Histogram{}))
	}
}
