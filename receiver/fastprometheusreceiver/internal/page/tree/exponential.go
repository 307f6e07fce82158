// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package tree

import (
	"github.com/prometheus/prometheus/model/histogram"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/godwit-otel/godwit/receiver/fastprometheusreceiver/internal/page/plan"
)

// exponential fills the point of a native histogram.
func (c *cursor) exponential(i int32, dp pmetric.ExponentialHistogramDataPoint) {
	p := c.point(i)
	dp.SetTimestamp(c.time(p.At))
	n, ok := c.Natives[p.At]
	switch {
	case !ok || n.Stale():
		dp.SetFlags(noValue)
	case n.Integers != nil:
		h := n.Integers
		dp.SetScale(h.Schema)
		dp.SetCount(h.Count)
		dp.SetSum(h.Sum)
		dp.SetZeroThreshold(h.ZeroThreshold)
		dp.SetZeroCount(h.ZeroCount)
		spread(h.PositiveSpans, dp.Positive(), deltas(h.PositiveBuckets))
		spread(h.NegativeSpans, dp.Negative(), deltas(h.NegativeBuckets))
	default:
		h := n.Floats
		dp.SetScale(h.Schema)
		dp.SetCount(uint64(h.Count))
		dp.SetSum(h.Sum)
		dp.SetZeroThreshold(h.ZeroThreshold)
		dp.SetZeroCount(uint64(h.ZeroCount))
		spread(h.PositiveSpans, dp.Positive(), absolutes(h.PositiveBuckets))
		spread(h.NegativeSpans, dp.Negative(), absolutes(h.NegativeBuckets))
	}
	c.setExemplars(i, dp.Exemplars())
}

// deltas yields the counts of buckets that are each given as the difference from the one before.
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
	counts.EnsureCapacity(plan.Width(spans))
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

// custom fills the point of a native histogram with custom bounds.
func (c *cursor) custom(p plan.PlacedPoint, dp pmetric.HistogramDataPoint) {
	dp.SetTimestamp(c.time(p.At))
	n, ok := c.Natives[p.At]
	if !ok || n.Stale() {
		dp.SetFlags(noValue)
		dp.SetCount(0)
		dp.RemoveSum()
		dp.ExplicitBounds().FromRaw(nil)
		dp.BucketCounts().FromRaw([]uint64{0})
		return
	}
	count, sum := n.Totals()
	dp.SetFlags(noFlags)
	dp.SetCount(uint64(count))
	dp.SetSum(sum)
	if n.Integers != nil {
		dp.ExplicitBounds().FromRaw(n.Integers.CustomValues)
		customCounts(dp.BucketCounts(), len(n.Integers.CustomValues)+1, n.Integers.PositiveSpans, deltas(n.Integers.PositiveBuckets))
	} else {
		dp.ExplicitBounds().FromRaw(n.Floats.CustomValues)
		customCounts(dp.BucketCounts(), len(n.Floats.CustomValues)+1, n.Floats.PositiveSpans, absolutes(n.Floats.PositiveBuckets))
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
