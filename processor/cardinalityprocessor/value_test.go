// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package cardinalityprocessor

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pmetric"
)

func exponentialOf(scale, offset int32, counts ...uint64) value {
	m := pmetric.NewMetric()
	dp := m.SetEmptyExponentialHistogram().DataPoints().AppendEmpty()
	dp.SetScale(scale)
	dp.Positive().SetOffset(offset)
	dp.Positive().BucketCounts().FromRaw(counts)
	dp.Negative().SetOffset(offset / 2)
	dp.Negative().BucketCounts().FromRaw(counts)
	dp.SetZeroCount(1)
	for _, n := range counts {
		dp.SetCount(dp.Count() + 2*n)
	}
	dp.SetCount(dp.Count() + 1)
	return valueAt(m, 0)
}

// naiveDownscale is the definition: a bucket's index is divided by two for each step, and rounded down.
func naiveDownscale(scale, offset int32, counts []uint64, to int32) map[int64]uint64 {
	out := map[int64]uint64{}
	for i, n := range counts {
		if n > 0 {
			out[int64(math.Floor(float64(int64(offset)+int64(i))/math.Pow(2, float64(scale-to))))] += n
		}
	}
	return out
}

func (b *buckets) asMap() map[int64]uint64 {
	out := map[int64]uint64{}
	for i, n := range b.counts {
		if n > 0 {
			out[b.offset+int64(i)] = n
		}
	}
	return out
}

func TestExponentialHistogramsAddUp(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 5))
	for range 2000 {
		var total value
		type part struct {
			scale, offset int32
			counts        []uint64
		}
		var parts []part
		for range 1 + random.IntN(4) {
			p := part{scale: int32(random.IntN(12)) - 3, offset: int32(random.IntN(400)) - 200, counts: make([]uint64, random.IntN(200))}
			for i := range p.counts {
				p.counts[i] = uint64(random.IntN(3))
			}
			parts = append(parts, p)
			total.add(exponentialOf(p.scale, p.offset, p.counts...))
		}
		require.LessOrEqual(t, len(total.positive.counts), maxBuckets)
		require.LessOrEqual(t, len(total.negative.counts), maxBuckets)
		want := map[int64]uint64{}
		count := uint64(0)
		for _, p := range parts {
			for at, n := range naiveDownscale(p.scale, p.offset, p.counts, total.scale) {
				want[at] += n
				count += 2 * n
			}
		}
		require.Equal(t, want, total.positive.asMap())
		require.Equal(t, count+uint64(len(parts)), total.count)
		require.Equal(t, uint64(len(parts)), total.zero)
	}
}

func TestGrowthOfExponentialHistograms(t *testing.T) {
	before := exponentialOf(3, 10, 1, 2, 3)
	after := exponentialOf(2, 5, 4, 5) // 10, 11 and 12 of scale 3 are 5, 5 and 6 of scale 2; 5, 6 and 7 are 2, 3 and 3
	after.negative = buckets{offset: 2, counts: []uint64{2, 6}}
	grown, ok := after.minus(before)
	require.True(t, ok)
	require.Equal(t, int32(2), grown.scale)
	require.Equal(t, map[int64]uint64{5: 1, 6: 2}, grown.positive.asMap())
	require.Equal(t, map[int64]uint64{2: 1, 3: 1}, grown.negative.asMap())
	_, ok = before.minus(after)
	require.False(t, ok)
	same, ok := before.minus(before)
	require.True(t, ok)
	require.Empty(t, same.positive.asMap())
	require.Zero(t, same.count)
	require.Equal(t, map[int64]uint64{10: 1, 11: 2, 12: 3}, before.positive.asMap(), "the arguments stay as they are")
}

func TestNumbersStayIntegers(t *testing.T) {
	a := value{integer: 1 << 60}
	a.add(value{integer: 1})
	require.Equal(t, value{integer: 1<<60 + 1}, a)
	a = value{integer: 3}
	a.add(value{float: 0.5, isFloat: true})
	require.Equal(t, value{integer: 3, float: 3.5, isFloat: true}, a)
	grown, ok := a.minus(value{integer: 1})
	require.True(t, ok)
	require.InDelta(t, 2.5, grown.number(), 0)
	_, ok = new(value).minus(a)
	require.False(t, ok)
}

// FuzzExponential: no input makes it panic, take much memory, or lose a count.
func FuzzExponential(f *testing.F) {
	f.Add(int32(3), int32(0), int32(3), int32(5), []byte{1, 2, 3})
	f.Add(int32(math.MinInt32), int32(math.MaxInt32), int32(math.MaxInt32), int32(math.MinInt32), []byte{1})
	f.Add(int32(0), int32(-1), int32(20), int32(math.MinInt32), []byte{})
	f.Fuzz(func(t *testing.T, scaleA, offsetA, scaleB, offsetB int32, raw []byte) {
		counts := make([]uint64, len(raw))
		sum := uint64(0)
		for i, n := range raw {
			counts[i] = uint64(n)
			sum += uint64(n)
		}
		total := exponentialOf(scaleA, offsetA, counts...)
		other := exponentialOf(scaleB, offsetB, counts...)
		_, _ = total.minus(other)
		total.add(other)
		require.LessOrEqual(t, len(total.positive.counts), maxBuckets)
		got := uint64(0)
		for _, n := range total.positive.counts {
			got += n
		}
		require.Equal(t, 2*sum, got)
		total.writeTo(emptyExponential(), 0)
	})
}

func emptyExponential() pmetric.Metric {
	m := pmetric.NewMetric()
	m.SetEmptyExponentialHistogram().DataPoints().AppendEmpty()
	return m
}
