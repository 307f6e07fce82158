// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package encode

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/godwit-otel/godwit/internal/alloctest"
	"github.com/godwit-otel/godwit/internal/racetest"

	"github.com/godwit-otel/godwit/exporter/remotewriteexporter/internal/block"
)

// churn generates scrapes of series that last for one scrape: each has n new ones, and stale markers for the previous
// ones.
type churn struct {
	n, scrapes int
}

func (c *churn) next() pmetric.Metrics {
	c.scrapes++
	at := pcommon.NewTimestampFromTime(epoch.Add(time.Duration(c.scrapes) * time.Second))
	md := page(0, 0, epoch)
	m := md.ResourceMetrics().At(0).ScopeMetrics().At(0).Metrics().AppendEmpty()
	m.SetName("requests")
	points := m.SetEmptyGauge().DataPoints()
	points.EnsureCapacity(2 * c.n)
	add := func(generation, i int) pmetric.NumberDataPoint {
		dp := points.AppendEmpty()
		dp.SetTimestamp(at)
		dp.Attributes().PutStr("namespace", fmt.Sprintf("team-%d", i%20))
		dp.Attributes().PutStr("pod", fmt.Sprintf("api-%08x-%05x", generation, i))
		return dp
	}
	for i := range c.n {
		add(c.scrapes, i).SetDoubleValue(float64(i))
	}
	if c.scrapes > 1 {
		for i := range c.n {
			add(c.scrapes-1, i).SetFlags(pmetric.DefaultDataPointFlags.WithNoRecordedValue(true))
		}
	}
	return md
}

// fewEnded is a number of ended points that is too small for a cleanup.
const fewEnded = 1 << 13

func TestEndedSeriesAreForgottenSoon(t *testing.T) {
	racetest.Sequential(t)
	const n = 500
	e, d := newEncoder(t, nil)
	c := churn{n: n}
	var blocks []block.Block
	for i := range 50 {
		require.NoError(t, e.Add(c.next(), ""))
		require.LessOrEqual(t, e.Stats().Series, 3*n+2*fewEnded)
		if i%7 == 0 { // samples that were not sent yet must not be affected
			blocks = e.Flush(0, "", v2Zstd, blocks)
		}
	}
	blocks = e.Flush(0, "", v2Zstd, blocks)
	samples, seen := 0, map[string]bool{}
	series, _ := decode(t, blocks)
	for _, s := range series {
		samples += len(s.Samples)
		seen[labelsOf(s)] = true
	}
	assert.Equal(t, 99*n, samples)
	assert.Len(t, seen, 50*n)
	e.Expire()
	assert.Equal(t, n, e.Stats().Series, "those that go on")
	assert.Zero(t, d.total())
}

// There is at most one ended series per three others, plus a few.
func TestEndedSeriesAreAPartOfTheCache(t *testing.T) {
	racetest.Sequential(t)
	const pages, n = 40, 1000
	e, _ := newEncoder(t, nil)
	var churns [pages]churn
	for i := range churns {
		churns[i] = churn{n: n, scrapes: 1000 * i} // each has its own series
	}
	most := 0
	for round := range 5 {
		for i := range churns {
			require.NoError(t, e.Add(churns[i].next(), ""))
			if round > 1 {
				most = max(most, e.Stats().Series)
			}
		}
		flushAll(e, v2Zstd)
	}
	require.LessOrEqual(t, most, pages*n+pages*n/3+2*n+fewEnded)
}

func TestSeriesMayComeBack(t *testing.T) {
	e, _ := newEncoder(t, nil)
	c := churn{n: 10}
	c.next()
	last := c.next()
	require.NoError(t, e.Add(last, "")) // ten continue, ten end
	e.Expire()
	require.Equal(t, 10, e.Stats().Series)
	again := churn{n: 10}
	require.NoError(t, e.Add(again.next(), ""))
	require.Equal(t, 20, e.Stats().Series)
	e.Expire()
	require.Equal(t, 20, e.Stats().Series)
	series, _ := decode(t, flushAll(e, v2Zstd))
	require.Len(t, series, 20)
}

// TestNewSeriesAllocateLittle: new points with their series, their values, and their copies are allocated in larger
// pieces of memory. A stale marker of a known series allocates nothing.
func TestNewSeriesAllocateLittle(t *testing.T) {
	racetest.Sequential(t)
	const n = 200
	e, _ := newEncoder(t, nil)
	c := churn{n: n}
	var (
		pages  []pmetric.Metrics
		blocks []block.Block
	)
	for range 150 {
		pages = append(pages, c.next())
	}
	allocs := alloctest.PerRun(func() {
		require.NoError(t, e.Add(pages[0], ""))
		pages = pages[1:]
		blocks = e.Flush(0, "", v2Zstd, blocks[:0])
	})
	assert.Greater(t, e.Stats().Misses, uint64(50*n), "they are new")
	assert.Less(t, allocs/n, 0.2)
}

func BenchmarkChurn(b *testing.B) {
	const n = 1000
	e, _ := newEncoder(b, nil)
	c := churn{n: n}
	pages := make([]pmetric.Metrics, 20)
	var blocks []block.Block
	b.ReportAllocs()
	cpu := int64(0)
	for i := 0; b.Loop(); i++ {
		if i%len(pages) == 0 {
			b.StopTimer()
			for k := range pages {
				pages[k] = c.next()
			}
			b.StartTimer()
		}
		cpu -= cpuTime(b)
		if err := e.Add(pages[i%len(pages)], ""); err != nil {
			b.Fatal(err)
		}
		blocks = e.Flush(0, "", v2Zstd, blocks[:0])
		cpu += cpuTime(b)
	}
	b.ReportMetric(float64(cpu)/float64(b.N)/n, "cpu-ns/series")
}
