// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package encode

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/godwit-otel/godwit/internal/racetest"
)

// herd returns pages of targets of several kinds, which lack some series that others of their kind have.
func herd(r *rand.Rand, targets int) pmetric.Metrics {
	md := pmetric.NewMetrics()
	series, kinds := 1+r.IntN(60), 1+r.IntN(3)
	starts := r.IntN(3) == 0
	for target := range targets {
		rm := md.ResourceMetrics().AppendEmpty()
		rm.Resource().Attributes().PutStr("service.name", "job")
		rm.Resource().Attributes().PutStr("service.instance.id", fmt.Sprint("10.0.0.", target, ":9100"))
		metrics := rm.ScopeMetrics().AppendEmpty().Metrics()
		at := epoch.Add(time.Duration(target/7) * time.Millisecond)
		for i := range series {
			if r.IntN(100) == 0 {
				continue
			}
			m := metrics.AppendEmpty()
			m.SetName(fmt.Sprint("kind_", target%kinds, "_metric_", i))
			m.SetDescription(strings.Repeat("what it is ", i%5))
			var points pmetric.NumberDataPointSlice
			if i%3 == 0 {
				m.SetEmptySum().SetIsMonotonic(true)
				m.Sum().SetAggregationTemporality(pmetric.AggregationTemporalityCumulative)
				points = m.Sum().DataPoints()
			} else {
				points = m.SetEmptyGauge().DataPoints()
			}
			for point := range 1 + i%4 {
				dp := points.AppendEmpty()
				dp.SetTimestamp(pcommon.NewTimestampFromTime(at))
				dp.Attributes().PutInt([]string{"a", "point"}[i%2], int64(point)) // before and after the labels of the resource
				if starts && i%3 == 0 {
					dp.SetStartTimestamp(dp.Timestamp() - 1e12)
				}
				dp.SetDoubleValue(float64(i))
				if i%2 == 0 {
					dp.SetDoubleValue(r.Float64() * 1e6)
				}
				switch r.IntN(2000) {
				case 0:
					dp.SetTimestamp(dp.Timestamp() + 5e6)
				case 1:
					dp.SetTimestamp(1e9)
				case 2:
					x := dp.Exemplars().AppendEmpty()
					x.SetTimestamp(dp.Timestamp())
					x.SetDoubleValue(1)
				}
			}
		}
	}
	return md
}

// TestGridsHoldTheSame: in any order, requests for snappy contain the same series, samples and metadata as those for
// zstd.
func TestGridsHoldTheSame(t *testing.T) {
	racetest.Sequential(t)
	echoes := 0
	for seed := range uint64(60) {
		r := rand.New(rand.NewPCG(seed, 9))
		samples, size := 1<<(4+r.IntN(12)), 1<<(11+r.IntN(12))
		change := func(c *Config) {
			c.MaxSamples, c.MaxRawBytes, c.StartTimestamps, c.Cache.Metadata = samples, size, true, true
		}
		zstd, dz := newEncoder(t, change)
		snappy, ds := newEncoder(t, change)
		for range 2 {
			md := herd(r, 1+r.IntN(200))
			require.NoError(t, zstd.Add(md, ""))
			require.NoError(t, snappy.Add(md, ""))
			want, got := flushAll(zstd, v2Zstd), flushAll(snappy, v2Snappy)
			require.Equal(t, canonical(decodePrometheus(t, want)), canonical(decodePrometheus(t, got)), "seed %d", seed)
			least, most := int64(1<<62), int64(0)
			n := 0
			for _, b := range got {
				require.LessOrEqual(t, b.Samples+b.Histograms, samples)
				require.LessOrEqual(t, b.RawSize, max(size, 1024))
				least, most, n = min(least, b.MinTime), max(most, b.MaxTime), n+b.Samples
			}
			for _, b := range want {
				n -= b.Samples
				require.GreaterOrEqual(t, b.MinTime, least)
				require.LessOrEqual(t, b.MaxTime, most)
			}
			require.Zero(t, n)
			echoes += len(snappy.writer().Hints.Known.Echoes)
		}
		require.Equal(t, dz.counts, ds.counts)
	}
	assert.Greater(t, echoes, 1000, "there were no grids: this was no test")
}

// TestSeriesOfManyTargetsTakeOneCopy: snappy needs at least three bytes per message, and with grids not much more for a
// number that all targets share.
func TestSeriesOfManyTargetsTakeOneCopy(t *testing.T) {
	const series, targets = 300, 101
	e, _ := newEncoder(t, func(c *Config) { c.Cache.Metadata = true })
	md := pmetric.NewMetrics()
	for target := range targets {
		rm := md.ResourceMetrics().AppendEmpty()
		rm.Resource().Attributes().PutStr("service.name", "job")
		rm.Resource().Attributes().PutStr("service.instance.id", fmt.Sprint("10.0.0.", target, ":9100"))
		metrics := rm.ScopeMetrics().AppendEmpty().Metrics()
		for i := range series {
			m := metrics.AppendEmpty()
			m.SetName(fmt.Sprint("metric_", i))
			addPoint(m.SetEmptyGauge().DataPoints(), float64(i), epoch.Add(time.Duration(target)*time.Millisecond))
		}
	}
	require.NoError(t, e.Add(md, ""))
	size := 0
	for _, b := range flushAll(e, v2Snappy) {
		size += len(b.Body())
	}
	perSample := float64(size) / (series * targets)
	t.Logf("%.2f bytes a sample", perSample)
	assert.Less(t, perSample, 3.8)
}
