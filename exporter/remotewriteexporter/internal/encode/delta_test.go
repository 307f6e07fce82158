// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package encode

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/godwit-otel/godwit/internal/promwrite"

	"github.com/godwit-otel/godwit/exporter/remotewriteexporter/internal/encode/cache"
	"github.com/godwit-otel/godwit/exporter/remotewriteexporter/internal/encode/loss"
)

func second(n int) pcommon.Timestamp {
	return pcommon.NewTimestampFromTime(epoch.Add(time.Duration(n) * time.Second))
}

// deltaOf returns one delta metric, filled by fill.
func deltaOf(instance string, fill func(pmetric.Metric)) pmetric.Metrics {
	md := pmetric.NewMetrics()
	rm := md.ResourceMetrics().AppendEmpty()
	rm.Resource().Attributes().PutStr("service.instance.id", instance)
	m := rm.ScopeMetrics().AppendEmpty().Metrics().AppendEmpty()
	m.SetName("d")
	fill(m)
	switch m.Type() {
	case pmetric.MetricTypeSum:
		m.Sum().SetAggregationTemporality(pmetric.AggregationTemporalityDelta)
	case pmetric.MetricTypeHistogram:
		m.Histogram().SetAggregationTemporality(pmetric.AggregationTemporalityDelta)
	default:
		m.ExponentialHistogram().SetAggregationTemporality(pmetric.AggregationTemporalityDelta)
	}
	return md
}

func deltaSumPoint(instance string, at int, value float64, attrs ...string) pmetric.Metrics {
	return deltaOf(instance, func(m pmetric.Metric) {
		m.SetEmptySum().SetIsMonotonic(true)
		dp := addPoint(m.Sum().DataPoints(), value, epoch.Add(time.Duration(at)*time.Second), attrs...)
		dp.SetStartTimestamp(second(at - 1))
	})
}

func cumulative(c *Config) { c.Cache.Delta = cache.DeltaCumulative }

func TestDeltaIsDroppedAndNamedOnce(t *testing.T) {
	e, d := newEncoder(t, nil)
	for i := range 3 {
		require.NoError(t, e.Add(deltaSumPoint("a", i, 1), ""))
	}
	assert.Empty(t, flushAll(e, v2Zstd))
	assert.Equal(t, map[loss.Reason]int{loss.Temporality: 3}, d.counts)
	assert.Equal(t, map[loss.Reason]string{loss.Temporality: "d"}, d.firsts)
}

func TestUnspecifiedTemporalityIsDropped(t *testing.T) {
	md := deltaSumPoint("a", 1, 1)
	md.ResourceMetrics().At(0).ScopeMetrics().At(0).Metrics().At(0).Sum().
		SetAggregationTemporality(pmetric.AggregationTemporalityUnspecified)
	series, d := sent(t, v2Zstd, cumulative, md)
	assert.Empty(t, series)
	assert.Equal(t, map[loss.Reason]int{loss.Temporality: 1}, d.counts)
}

func TestDeltaSumsAddUp(t *testing.T) {
	e, d := newEncoder(t, cumulative)
	for i, v := range []float64{1, 2.5, 4} {
		require.NoError(t, e.Add(deltaSumPoint("a", i, v, "k", "v", "l", "w"), ""))
		require.NoError(t, e.Add(deltaSumPoint("b", i, 10*v, "k", "v", "l", "w"), ""))
	}
	require.NoError(t, e.Add(deltaSumPoint("a", 3, 1, "l", "w", "k", "v"), "")) // the same series in another order
	require.NoError(t, e.Add(deltaSumPoint("a", 2, 100, "k", "v", "l", "w"), ""))
	series, _ := decode(t, flushAll(e, v2Zstd))
	require.Len(t, series, 2)
	start := epoch.Add(-time.Second).UnixMilli()
	at := func(n int) int64 { return epoch.UnixMilli() + int64(n)*1000 }
	assert.Equal(t, []promwrite.Sample{
		{Value: 1, Timestamp: at(0), StartTimestamp: start},
		{Value: 3.5, Timestamp: at(1), StartTimestamp: start},
		{Value: 7.5, Timestamp: at(2), StartTimestamp: start},
		{Value: 8.5, Timestamp: at(3), StartTimestamp: start},
	}, series[0].Samples)
	assert.InDelta(t, 75, series[1].Samples[2].Value, 0)
	assert.Equal(t, map[loss.Reason]int{loss.DeltaOrder: 1}, d.counts)
	assert.Equal(t, 2, e.Stats().Deltas)
}

func TestDeltaSumsAreBoundedAndExpire(t *testing.T) {
	e, d := newEncoder(t, func(c *Config) { c.Cache.Delta, c.MaxDelta, c.Cache.IdleGenerations = cache.DeltaCumulative, 1, 2 })
	require.NoError(t, e.Add(deltaSumPoint("a", 0, 1), ""))
	require.NoError(t, e.Add(deltaSumPoint("b", 0, 1), ""))
	assert.Equal(t, map[loss.Reason]int{loss.DeltaLimit: 1}, d.counts)
	assert.Equal(t, 1, e.Stats().Deltas)
	flushAll(e, v2Zstd)
	for range 3 {
		e.Expire()
	}
	assert.Zero(t, e.Stats().Deltas)
	require.NoError(t, e.Add(deltaSumPoint("b", 1, 1), ""))
	assert.Equal(t, 1, d.counts[loss.DeltaLimit])

	// A series without a place in the cache has no sum either.
	e, d = newEncoder(t, func(c *Config) { c.Cache.Delta, c.Cache.MaxSeries = cache.DeltaCumulative, 1 })
	require.NoError(t, e.Add(gauge("g", 1, epoch), ""))
	require.NoError(t, e.Add(deltaSumPoint("b", 0, 1), ""))
	assert.Equal(t, map[loss.Reason]int{loss.DeltaLimit: 1}, d.counts)
}

func TestDeltaHistogramsAddUp(t *testing.T) {
	point := func(at int, bounds []float64, counts ...uint64) pmetric.Metrics {
		return deltaOf("a", func(m pmetric.Metric) {
			dp := m.SetEmptyHistogram().DataPoints().AppendEmpty()
			dp.SetTimestamp(second(at))
			dp.SetStartTimestamp(second(at - 1))
			dp.ExplicitBounds().FromRaw(bounds)
			dp.BucketCounts().FromRaw(counts)
			total := uint64(0)
			for _, n := range counts {
				total += n
			}
			dp.SetCount(total)
			dp.SetSum(float64(total))
		})
	}
	e, d := newEncoder(t, cumulative)
	require.NoError(t, e.Add(point(0, []float64{1, 2}, 1, 0, 2), ""))
	require.NoError(t, e.Add(point(1, []float64{1, 2}, 0, 5, 1), ""))
	require.NoError(t, e.Add(point(2, []float64{1, 3}, 1, 1, 1), "")) // other buckets: a new sum
	got := map[string][]promwrite.Sample{}
	series, _ := decode(t, flushAll(e, v2Zstd))
	for _, s := range series {
		got[labelsOf(s)] = s.Samples
	}
	at := func(n int) int64 { return epoch.UnixMilli() + int64(n)*1000 }
	assert.Equal(t, []promwrite.Sample{
		{Value: 3, Timestamp: at(0), StartTimestamp: at(-1)},
		{Value: 9, Timestamp: at(1), StartTimestamp: at(-1)},
		{Value: 3, Timestamp: at(2), StartTimestamp: at(1)},
	}, got[`__name__="d_count",instance="a",`])
	assert.Equal(t, []promwrite.Sample{
		{Value: 1, Timestamp: at(0), StartTimestamp: at(-1)}, {Value: 6, Timestamp: at(1), StartTimestamp: at(-1)},
	}, got[`__name__="d_bucket",instance="a",le="2",`])
	assert.InDelta(t, 9, got[`__name__="d_sum",instance="a",`][1].Value, 0)
	assert.Zero(t, d.total())
}

func TestDeltaExponentialsAddUp(t *testing.T) {
	point := func(at int, scale, offset int32, counts ...uint64) pmetric.Metrics {
		return deltaOf("a", func(m pmetric.Metric) {
			dp := m.SetEmptyExponentialHistogram().DataPoints().AppendEmpty()
			dp.SetTimestamp(second(at))
			dp.SetScale(scale)
			dp.Positive().SetOffset(offset)
			dp.Positive().BucketCounts().FromRaw(counts)
			dp.Negative().BucketCounts().FromRaw([]uint64{1})
			dp.SetZeroCount(1)
			total := uint64(2)
			for _, n := range counts {
				total += n
			}
			dp.SetCount(total)
			dp.SetSum(1)
		})
	}
	e, d := newEncoder(t, cumulative)
	require.NoError(t, e.Add(point(0, 3, 0, 1, 0, 2), ""))
	require.NoError(t, e.Add(point(1, 3, 1, 4, 5), ""))
	require.NoError(t, e.Add(point(2, 2, 0, 1, 1), "")) // coarser: so is the sum from now on
	require.NoError(t, e.Add(point(3, 3, 0, 1, 1, 1), ""))
	series, _ := decode(t, flushAll(e, v2Zstd))
	require.Len(t, series, 1)
	var got []string
	for _, h := range series[0].Histograms {
		h.StartTimestamp, h.Timestamp = 0, 0
		got = append(got, canonicalHistogram(h))
	}
	const tail = "] custom=[] hint=0"
	assert.Equal(t, []string{
		"@0 from 0 schema=3 count={5 0 false} zero={1 0 false}/1e-128 sum=3ff0000000000000 +[1:1 3:2 ] -[1:1 " + tail,
		"@0 from 0 schema=3 count={16 0 false} zero={2 0 false}/1e-128 sum=4000000000000000 +[1:1 2:4 3:7 ] -[1:2 " + tail,
		"@0 from 0 schema=2 count={20 0 false} zero={3 0 false}/1e-128 sum=4008000000000000 +[1:6 2:8 ] -[1:3 " + tail,
		"@0 from 0 schema=2 count={25 0 false} zero={4 0 false}/1e-128 sum=4010000000000000 +[1:8 2:9 ] -[1:4 " + tail,
	}, got)
	assert.Zero(t, d.total())
}
