// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package page

import (
	"math"

	"github.com/prometheus/prometheus/model/histogram"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"
)

// exponential fills the point of a native histogram.
func (c *cursor) exponential(i int32, dp pmetric.ExponentialHistogramDataPoint) {
	p := c.point(i)
	dp.SetTimestamp(c.time(p.at))
	n, ok := c.natives[p.at]
	switch {
	case !ok || n.stale():
		dp.SetFlags(noValue)
	case n.h != nil:
		h := n.h
		dp.SetScale(h.Schema)
		dp.SetCount(h.Count)
		dp.SetSum(h.Sum)
		dp.SetZeroThreshold(h.ZeroThreshold)
		dp.SetZeroCount(h.ZeroCount)
		spread(h.PositiveSpans, dp.Positive(), deltas(h.PositiveBuckets))
		spread(h.NegativeSpans, dp.Negative(), deltas(h.NegativeBuckets))
	default:
		h := n.fh
		dp.SetScale(h.Schema)
		dp.SetCount(uint64(h.Count))
		dp.SetSum(h.Sum)
		dp.SetZeroThreshold(h.ZeroThreshold)
		dp.SetZeroCount(uint64(h.ZeroCount))
		spread(h.PositiveSpans, dp.Positive(), absolutes(h.PositiveBuckets))
		spread(h.NegativeSpans, dp.Negative(), absolutes(h.NegativeBuckets))
	}
	c.hang(i, dp.Exemplars())
}

// deltas yields the counts of buckets of which each says how much more than the last it holds.
func deltas(buckets []int64) func() uint64 {
	i, sum := 0, int64(0)
	return func() uint64 {
		if i < len(buckets) {
			sum += buckets[i]
			i++
		}
		return uint64(sum)
	}
}

func absolutes(buckets []float64) func() uint64 {
	i := 0
	return func() uint64 {
		if i++; i > len(buckets) {
			return 0
		}
		return uint64(buckets[i-1])
	}
}

// spread lays the buckets of spans side by side, with zeros between the spans. OTLP names a bucket by its lower bound,
// Prometheus by its upper one.
func spread(spans []histogram.Span, out pmetric.ExponentialHistogramDataPointBuckets, next func() uint64) {
	if len(spans) == 0 {
		return
	}
	out.SetOffset(spans[0].Offset - 1)
	counts := out.BucketCounts()
	counts.EnsureCapacity(width(spans))
	for i, s := range spans {
		if i > 0 {
			for range s.Offset {
				counts.Append(0)
			}
		}
		for range s.Length {
			counts.Append(next())
		}
	}
}

// width is how many buckets there are, those between spans included.
func width(spans []histogram.Span) (n int) {
	for i, s := range spans {
		if n += int(s.Length); i > 0 {
			n += int(max(s.Offset, 0))
		}
	}
	return n
}

// custom fills the point of a native histogram with bounds of its own.
func (c *cursor) custom(p placedPoint, dp pmetric.HistogramDataPoint) {
	dp.SetTimestamp(c.time(p.at))
	n, ok := c.natives[p.at]
	if !ok || n.stale() {
		dp.SetFlags(noValue)
		dp.SetCount(0)
		dp.RemoveSum()
		dp.ExplicitBounds().FromRaw(nil)
		dp.BucketCounts().FromRaw([]uint64{0})
		return
	}
	count, sum := n.totals()
	dp.SetFlags(noFlags)
	dp.SetCount(uint64(count))
	dp.SetSum(sum)
	if n.h != nil {
		dp.ExplicitBounds().FromRaw(n.h.CustomValues)
		customCounts(dp.BucketCounts(), len(n.h.CustomValues)+1, n.h.PositiveSpans, deltas(n.h.PositiveBuckets))
	} else {
		dp.ExplicitBounds().FromRaw(n.fh.CustomValues)
		customCounts(dp.BucketCounts(), len(n.fh.CustomValues)+1, n.fh.PositiveSpans, absolutes(n.fh.PositiveBuckets))
	}
}

func customCounts(out pcommon.UInt64Slice, n int, spans []histogram.Span, next func() uint64) {
	counts := make([]uint64, n)
	i := 0
	for _, s := range spans {
		i += int(s.Offset)
		for range s.Length {
			if v := next(); i >= 0 && i < n {
				counts[i] = v
			}
			i++
		}
	}
	out.FromRaw(counts)
}

func (v nativeValue) totals() (count, sum float64) {
	if v.h != nil {
		return float64(v.h.Count), v.h.Sum
	}
	return v.fh.Count, v.fh.Sum
}

func (v nativeValue) stale() bool {
	_, sum := v.totals()
	return isStale(sum)
}

// coarsest returns the largest schema whose buckets grow by at least a factor.
func coarsest(factor float64) int32 {
	if factor <= 1 {
		return histogram.ExponentialSchemaMax
	}
	schema := math.Floor(-math.Log2(math.Log2(factor)))
	return int32(min(max(schema, float64(histogram.ExponentialSchemaMin)), float64(histogram.ExponentialSchemaMax)))
}

// limit merges buckets until there are at most as many as native_histogram_bucket_limit says and none is narrower than
// native_histogram_min_bucket_factor allows.
func (v nativeValue) limit(most int, schema int32) error {
	if schema < histogram.ExponentialSchemaMax {
		if v.h != nil && histogram.IsExponentialSchemaReserved(v.h.Schema) && v.h.Schema > schema {
			if err := v.h.ReduceResolution(schema); err != nil {
				return err
			}
		}
		if v.fh != nil && histogram.IsExponentialSchemaReserved(v.fh.Schema) && v.fh.Schema > schema {
			if err := v.fh.ReduceResolution(schema); err != nil {
				return err
			}
		}
	}
	for most > 0 && v.buckets() > most {
		var err error
		switch s := v.schema(); {
		case !histogram.IsExponentialSchema(s), s <= histogram.ExponentialSchemaMin:
			return errBucketLimit
		case v.h != nil:
			err = v.h.ReduceResolution(s - 1)
		default:
			err = v.fh.ReduceResolution(s - 1)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (v nativeValue) schema() int32 {
	if v.h != nil {
		return v.h.Schema
	}
	return v.fh.Schema
}

func (v nativeValue) buckets() int {
	if v.h != nil {
		return len(v.h.PositiveBuckets) + len(v.h.NegativeBuckets)
	}
	return len(v.fh.PositiveBuckets) + len(v.fh.NegativeBuckets)
}
