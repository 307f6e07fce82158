// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package amount

import (
	"math"
	rand "math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pmetric"
)

func exponentialOf(scale, offset int32, counts ...uint64) Value {
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
	return ValueAt(m, 0)
}

// naiveDownscale follows the definition: a bucket's index is divided by two for each step, and rounded down.
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
	for i, n := range b.Counts {
		if n > 0 {
			out[b.offset+int64(i)] = n
		}
	}
	return out
}

func TestExponentialHistogramsAddUp(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 5))
	for range 2000 {
		var total Value
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
			total.Add(exponentialOf(p.scale, p.offset, p.counts...))
		}
		require.LessOrEqual(t, len(total.exponential.positive.Counts), MaxBuckets)
		require.LessOrEqual(t, len(total.exponential.negative.Counts), MaxBuckets)
		want := map[int64]uint64{}
		count := uint64(0)
		for _, p := range parts {
			for at, n := range naiveDownscale(p.scale, p.offset, p.counts, total.exponential.scale) {
				want[at] += n
				count += 2 * n
			}
		}
		require.Equal(t, want, total.exponential.positive.asMap())
		require.Equal(t, count+uint64(len(parts)), total.Count)
		require.Equal(t, uint64(len(parts)), total.exponential.zero)
	}
}

func TestGrowthOfExponentialHistograms(t *testing.T) {
	before := exponentialOf(3, 10, 1, 2, 3)
	after := exponentialOf(2, 5, 4, 5) // 10, 11 and 12 of scale 3 are 5, 5 and 6 of scale 2; 5, 6 and 7 are 2, 3 and 3
	after.exponential.negative = buckets{offset: 2, Counts: []uint64{2, 6}}
	grown, ok := after.Minus(before)
	require.True(t, ok)
	require.Equal(t, int32(2), grown.exponential.scale)
	require.Equal(t, map[int64]uint64{5: 1, 6: 2}, grown.exponential.positive.asMap())
	require.Equal(t, map[int64]uint64{2: 1, 3: 1}, grown.exponential.negative.asMap())
	_, ok = before.Minus(after)
	require.False(t, ok)
	same, ok := before.Minus(before)
	require.True(t, ok)
	require.Empty(t, same.exponential.positive.asMap())
	require.Zero(t, same.Count)
	require.Equal(t, map[int64]uint64{10: 1, 11: 2, 12: 3}, before.exponential.positive.asMap(), "the arguments stay as they are")
}

func TestNumbersStayIntegers(t *testing.T) {
	a := Value{Numeric: Numeric{Integer: 1 << 60}}
	a.Add(Value{Numeric: Numeric{Integer: 1}})
	require.Equal(t, Value{Numeric: Numeric{Integer: 1<<60 + 1}}, a)
	a = Value{Numeric: Numeric{Integer: 3}}
	a.Add(Value{Numeric: Numeric{Float: 0.5, IsFloat: true}})
	require.Equal(t, Value{Numeric: Numeric{Integer: 3, Float: 3.5, IsFloat: true}}, a)
	grown, ok := a.Minus(Value{Numeric: Numeric{Integer: 1}})
	require.True(t, ok)
	require.InDelta(t, 2.5, grown.Number(), 0)
	_, ok = new(Value).Minus(a)
	require.False(t, ok)
}

// FuzzExponential: no input causes a panic, takes much memory, or loses a count.
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
		_, _ = total.Minus(other)
		total.Add(other)
		require.LessOrEqual(t, len(total.exponential.positive.Counts), MaxBuckets)
		got := uint64(0)
		for _, n := range total.exponential.positive.Counts {
			got += n
		}
		require.Equal(t, 2*sum, got)
		total.WriteTo(emptyExponential(), 0)
	})
}

func emptyExponential() pmetric.Metric {
	m := pmetric.NewMetric()
	m.SetEmptyExponentialHistogram().DataPoints().AppendEmpty()
	return m
}

// anyValue returns a value of any shape that follows from the bytes.
func anyValue(of byte, raw []byte) Value { return ValueAt(anyPoint(of, raw), 0) }

// anyPoint returns a metric with one point.
func anyPoint(of byte, raw []byte) pmetric.Metric {
	random := rand.New(rand.NewPCG(uint64(len(raw)), uint64(of)))
	float := func(bits uint64) float64 { // others are excluded before
		if f := math.Float64frombits(bits); Finite(f) {
			return f
		}
		return math.MaxFloat64
	}
	next := func() uint64 {
		if len(raw) == 0 {
			return uint64(random.IntN(5))
		}
		n := uint64(raw[0])
		raw = raw[1:]
		if n > 250 { // extreme values
			return []uint64{1 << 62, 1 << 63, math.MaxUint64, 1<<63 - 1, 1 << 53}[n-251]
		}
		return n
	}
	m := pmetric.NewMetric()
	switch of % 5 {
	case 0:
		m.SetEmptyGauge().DataPoints().AppendEmpty().SetIntValue(int64(next()))
	case 1:
		m.SetEmptySum().DataPoints().AppendEmpty().SetDoubleValue(float(next() << (next() % 64)))
	case 2:
		dp := m.SetEmptyHistogram().DataPoints().AppendEmpty()
		for range next() % 6 {
			n := next()
			dp.BucketCounts().Append(n)
			dp.SetCount(dp.Count() + n)
		}
		if next()%2 == 0 {
			dp.SetSum(float64(next()))
		}
	case 3:
		dp := m.SetEmptyExponentialHistogram().DataPoints().AppendEmpty()
		dp.SetScale(int32(next()%40) - 20)
		dp.SetZeroThreshold(float64(next()) / 16)
		dp.SetZeroCount(next())
		dp.SetCount(dp.ZeroCount())
		for _, side := range []pmetric.ExponentialHistogramDataPointBuckets{dp.Positive(), dp.Negative()} {
			side.SetOffset(int32(next()) - 128)
			for range next() % 7 {
				n := next()
				side.BucketCounts().Append(n)
				dp.SetCount(dp.Count() + n)
			}
		}
		if next()%2 == 0 {
			dp.SetSum(float(next() << (next() % 64)))
		}
	default:
		dp := m.SetEmptySummary().DataPoints().AppendEmpty()
		dp.SetCount(next())
		dp.SetSum(float64(next()))
	}
	return m
}

// counted returns the sum of a histogram's buckets, and its count.
func (v *Value) counted() (in, all uint64) {
	in = v.buckets().zero
	for _, counts := range [][]uint64{v.Cells, v.buckets().positive.Counts, v.buckets().negative.Counts} {
		for _, n := range counts {
			in += n
		}
	}
	return in, v.Count
}

// FuzzValues: values of all shapes and sizes are added and compared without a panic. Those that cannot be added change
// nothing, and no count of the others is lost.
func FuzzValues(f *testing.F) {
	for a := range byte(5) {
		for b := range byte(5) {
			f.Add(a, b, []byte{3, 7, 0, 1, 5, 2, 8, 1, 1, 4}, []byte{5, 253, 9, 2, 8, 4, 4, 200, 3, 3, 3, 1})
			f.Add(a, b, []byte{}, []byte{4, 16, 1, 255, 1, 6, 1, 2, 3, 4, 5, 6, 9, 6, 1, 2, 3})
		}
	}
	f.Fuzz(func(t *testing.T, a, b byte, rawA, rawB []byte) {
		x, y := anyValue(a, rawA), anyValue(b, rawB)
		inX, allX := x.counted()
		inY, allY := y.counted()
		grown, ok := x.Minus(y)
		if inGrown, allGrown := grown.counted(); x.joins(&y) && ok {
			require.Equal(t, allX-allY, allGrown)
			require.Equal(t, inX-inY, inGrown, "%+v less %+v", x, y)
		} else if !x.joins(&y) && !y.Nothing() {
			require.False(t, ok, "it has begun anew")
			require.Equal(t, x, grown)
		}
		in, all := x.counted()
		require.Equal(t, []uint64{inX, allX}, []uint64{in, all}, "the arguments stay as they are")
		neutral := x.Nothing() || y.Nothing()
		fits, before := neutral || x.joins(&y), x.Clone()
		whole := x.Add(y.Clone())
		in, all = x.counted()
		if !fits {
			require.False(t, whole)
			require.Equal(t, before, x)
			return
		}
		require.Equal(t, []uint64{inX + inY, allX + allY}, []uint64{in, all})
		if x.Shape == ShapeNumber && Finite(before.Number()) && Finite(y.Number()) {
			require.True(t, Finite(x.Number()))
			if whole && !math.Signbit(y.Number()) {
				require.GreaterOrEqual(t, x.Number(), before.Number())
			}
		}
		require.LessOrEqual(t, len(x.buckets().positive.Counts), MaxBuckets)
		requireNothingBelow(t, &x)
	})
}

// requireNothingBelow: no bucket with a count lies within the zero bucket.
func requireNothingBelow(t *testing.T, v *Value) {
	if v.Shape != shapeExponential || v.buckets().zeroThreshold == 0 {
		return
	}
	for _, side := range []*buckets{&v.exponential.positive, &v.exponential.negative} {
		for at, n := range side.asMap() {
			if n > 0 && v.exponential.scale > -10 && v.exponential.scale < 20 {
				require.GreaterOrEqual(t, lowerBound(at, v.exponential.scale)*(1+1e-6), v.exponential.zeroThreshold, "bucket %d of scale %d", at, v.exponential.scale)
			}
		}
	}
}

// The zero bucket of a sum is as wide as the widest one, and includes the counts of other buckets within it.
func TestZeroBucketsAreBroughtToOneWidth(t *testing.T) {
	exponential := func(threshold float64, zero uint64, scale, offset int32, counts ...uint64) Value {
		m := emptyExponential()
		dp := m.ExponentialHistogram().DataPoints().At(0)
		dp.SetZeroThreshold(threshold)
		dp.SetZeroCount(zero)
		dp.SetScale(scale)
		dp.Positive().SetOffset(offset)
		dp.Positive().BucketCounts().FromRaw(counts)
		dp.SetCount(zero)
		for _, n := range counts {
			dp.SetCount(dp.Count() + n)
		}
		return ValueAt(m, 0)
	}
	f := func(a, b Value, threshold float64, zero uint64, counts map[int64]uint64) {
		t.Helper()
		for range 2 {
			sum := a.Clone()
			require.True(t, sum.Add(b.Clone()))
			require.InDelta(t, threshold, sum.exponential.zeroThreshold, 1e-12)
			require.Equal(t, zero, sum.exponential.zero)
			require.Equal(t, counts, sum.exponential.positive.asMap())
			grown, ok := sum.Minus(a)
			require.True(t, ok)
			in, all := grown.counted()
			require.Equal(t, b.Count, in)
			require.Equal(t, b.Count, all)
			a, b = b, a
		}
	}
	wide := exponential(1, 3, 0, 0, 1)                                                                       // (1, 2]
	f(wide, exponential(0, 0, 0, -4, 7, 7, 7, 7, 7), 1, 3+4*7, map[int64]uint64{0: 1 + 7})                   // including part of (1, 2]
	f(wide, exponential(0, 2, 0, 1, 5), 1, 5, map[int64]uint64{0: 1, 1: 5})                                  // none are below
	f(exponential(3, 1, 0, 3, 1), exponential(0, 0, 0, 0, 1, 2, 4, 8), 4, 1+3, map[int64]uint64{2: 4, 3: 9}) // (2, 4] lies across 3
	f(exponential(3, 1, 0, 3, 1), exponential(0, 0, 0, 2, 4), 3, 1, map[int64]uint64{2: 4, 3: 1})
	f(exponential(3, 1, 2, 8, 1), exponential(0, 0, 0, 1, 2), 4, 1+2, map[int64]uint64{2: 1})
}

// TestCountsHaveRoom: a value that would exceed 2^63 is excluded as a whole, and nothing changes.
func TestCountsHaveRoom(t *testing.T) {
	const much = 1 << 62
	for _, v := range []Value{
		{Shape: ShapeHistogram, Count: much, HasSum: true, Sum: 1},
		{Shape: ShapeHistogram, Count: 5, Cells: []uint64{1, much, 2}},
		{Shape: shapeExponential, Count: 5, exponential: &exponential{positive: buckets{Counts: []uint64{1, much}}}},
		{Shape: shapeExponential, Count: 5, exponential: &exponential{negative: buckets{Counts: []uint64{much}}}},
		{Shape: shapeExponential, Count: 5, exponential: &exponential{zero: much}},
		{Shape: ShapeSummary, Count: much, HasSum: true},
	} {
		total := v.Clone()
		before := total.saved()
		require.False(t, total.Add(v.Clone()), v)
		require.Equal(t, before, total.saved())
		require.False(t, total.Holds(&v))
		few := v.Clone()
		few.Count = 1
		if few.exponential != nil {
			few.exponential.zero = 0
		}
		for _, counts := range [][]uint64{few.Cells, few.buckets().positive.Counts, few.buckets().negative.Counts} {
			clear(counts)
		}
		require.True(t, total.Holds(&few))
		require.True(t, total.Add(few))
		require.Equal(t, v.Count+1, total.Count)
	}
}
