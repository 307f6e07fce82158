// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package tree

import (
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/godwit-otel/godwit/receiver/fastprometheusreceiver/internal/page/plan"
)

// buckets is next for histograms, and quantiles for summaries.
func (c *cursor) buckets(dps pmetric.HistogramDataPointSlice, p plan.PlacedPoint, i, kept int, isCustom bool) pmetric.HistogramDataPoint {
	if i >= kept && c.slabs != nil && !isCustom {
		return c.slabs.AppendBuckets(dps, c.group(p.At).Bounds)
	}
	return next(dps, i, kept)
}

func (c *cursor) quantiles(dps pmetric.SummaryDataPointSlice, p plan.PlacedPoint, i, kept int) pmetric.SummaryDataPoint {
	if i >= kept && c.slabs != nil {
		return c.slabs.AppendQuantiles(dps, len(c.group(p.At).Parts))
	}
	return next(dps, i, kept)
}

// histogram fills the point of a consistent histogram.
func (c *cursor) histogram(i int32, isCustom bool, dp pmetric.HistogramDataPoint, hangs bool) {
	p := c.point(i)
	if isCustom {
		c.custom(p, dp)
		c.setExemplars(i, dp.Exemplars())
		return
	}
	g := c.group(p.At)
	counts, n := dp.BucketCounts(), len(g.Parts)
	if counts.Len() != n+1 || !sameBounds(dp.ExplicitBounds(), g.Bounds) {
		dp.ExplicitBounds().FromRaw(g.Bounds)
		counts.FromRaw(nil)
		counts.EnsureCapacity(n + 1)
		for range n + 1 {
			counts.Append(0)
		}
	}
	if c.isStaleGroup(g) {
		dp.SetFlags(noValue)
		dp.SetCount(0)
		dp.RemoveSum()
		for j := range n + 1 {
			counts.SetAt(j, 0)
		}
	} else {
		dp.SetFlags(noFlags)
		last := 0.0
		for j, part := range g.Parts {
			v := c.Values[part]
			counts.SetAt(j, uint64(v-last))
			last = v
		}
		count := c.Values[g.Count]
		counts.SetAt(n, uint64(count-last))
		dp.SetCount(uint64(count))
		if g.Sum >= 0 {
			dp.SetSum(c.Values[g.Sum])
		} else {
			dp.RemoveSum()
		}
	}
	dp.SetStartTimestamp(c.started(p.Created))
	dp.SetTimestamp(c.time(g.Count))
	if hangs {
		c.setExemplars(i, dp.Exemplars())
	}
}

func (c *cursor) summary(p plan.PlacedPoint, dp pmetric.SummaryDataPoint) {
	g := c.group(p.At)
	stale := c.isStaleGroup(g)
	qs := dp.QuantileValues()
	if qs.Len() != len(g.Parts) {
		qs.RemoveIf(func(pmetric.SummaryDataPointValueAtQuantile) bool { return true })
		qs.EnsureCapacity(len(g.Parts))
		for range g.Parts {
			qs.AppendEmpty()
		}
	}
	for j, part := range g.Parts {
		v := 0.0
		if !stale {
			v = c.Values[part]
		}
		qs.At(j).SetQuantile(g.Bounds[j])
		qs.At(j).SetValue(v)
	}
	if stale {
		dp.SetFlags(noValue)
		dp.SetSum(0)
		dp.SetCount(0)
	} else {
		dp.SetFlags(noFlags)
		dp.SetCount(uint64(c.Values[g.Count]))
		sum := 0.0
		if g.Sum >= 0 {
			sum = c.Values[g.Sum]
		}
		dp.SetSum(sum)
	}
	dp.SetTimestamp(c.time(g.Count))
	dp.SetStartTimestamp(c.started(p.Created))
}

func (v *View) isStaleGroup(g *plan.Group) bool {
	return plan.IsStale(v.value(g.Count)) || plan.IsStale(v.value(g.Sum))
}

func sameBounds(s pcommon.Float64Slice, bounds []float64) bool {
	if s.Len() != len(bounds) {
		return false
	}
	for i, b := range bounds {
		if s.At(i) != b {
			return false
		}
	}
	return true
}
