// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package encode

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/godwit-otel/godwit/internal/alloctest"
	"github.com/godwit-otel/godwit/internal/promwrite"
	"github.com/godwit-otel/godwit/internal/racetest"

	"github.com/godwit-otel/godwit/exporter/remotewriteexporter/internal/block"
	"github.com/godwit-otel/godwit/exporter/remotewriteexporter/internal/encode/cache"
	"github.com/godwit-otel/godwit/exporter/remotewriteexporter/internal/encode/loss"
)

func TestKnownSamplesAllocateNothing(t *testing.T) {
	racetest.Sequential(t)
	for _, f := range formats {
		pages, samples := labPages(t, 20)
		e, _ := newEncoder(t, func(c *Config) { c.Shards, c.Cache.TargetInfo = 2, true })
		var blocks []block.Block
		allocs := alloctest.PerRun(func() {
			for _, md := range pages {
				require.NoError(t, e.Add(md, ""))
			}
			blocks = e.Flush(1, "", f, e.Flush(0, "", f, blocks[:0]))
		})
		require.Len(t, blocks, 2)
		assert.Equal(t, samples, blocks[0].Samples+blocks[1].Samples)
		// The body of each block, and nothing that grows with the samples.
		assert.LessOrEqual(t, allocs, 4.0, "%d samples", samples)
	}
}

func TestKnownPointsOfEveryKindAllocateNothing(t *testing.T) {
	racetest.Sequential(t)
	g := generator{r: rand.New(rand.NewPCG(3, 3)), version: promwrite.V2}
	md := pmetric.NewMetrics()
	for i := range 40 {
		// Attributes of types that have to be formatted, and exemplars, are not part of the hot path.
		m := md.ResourceMetrics().AppendEmpty().ScopeMetrics().AppendEmpty().Metrics().AppendEmpty()
		g.metric(fmt.Sprint(i))(m, &g, 1_700_000_000_000_000_000)
		clean(m)
	}
	for _, custom := range []bool{false, true} {
		e, _ := newEncoder(t, func(c *Config) { c.Cache.CustomBuckets = custom })
		var blocks []block.Block
		allocs := alloctest.PerRun(func() {
			require.NoError(t, e.Add(md, ""))
			blocks = e.Flush(0, "", v2Zstd, blocks[:0])
		})
		assert.LessOrEqual(t, allocs, 3.0)
	}
}

// TestOwnPointsAreExpectedBehindTheMetricBefore: if targets share families but no points, the first point of a family
// was that of another target the last time. The last point of the previous metric tells which one is expected.
func TestOwnPointsAreExpectedBehindTheMetricBefore(t *testing.T) {
	const targets = 8
	md, samples := kubelets(targets, 5, 6)
	e, _ := newEncoder(t, nil)
	require.NoError(t, e.Add(md, ""))
	require.NoError(t, e.Add(md, ""))
	before := e.Stats()
	require.NoError(t, e.Add(md, ""))
	after := e.Stats()
	assert.Equal(t, uint64(samples), after.Hits-before.Hits)
	assert.LessOrEqual(t, after.Moves-before.Moves, uint64(targets), "the first points of pages")
}

// TestLastPointsThatArePassedOn: a shared point is the last of its metric on one target, but not on the other. Neither
// target loses more by what the other records there than the other's own points cost.
func TestLastPointsThatArePassedOn(t *testing.T) {
	target := func(own string, shared ...string) pmetric.Metrics {
		md := page(0, 0, epoch)
		md.ResourceMetrics().At(0).Resource().Attributes().PutStr("service.instance.id", own)
		add := func(name string, devices ...string) {
			m := md.ResourceMetrics().At(0).ScopeMetrics().At(0).Metrics().AppendEmpty()
			m.SetName(name)
			points := m.SetEmptyGauge().DataPoints()
			for _, device := range devices {
				p := points.AppendEmpty()
				p.SetTimestamp(pcommon.NewTimestampFromTime(epoch))
				p.SetDoubleValue(float64(len(own)))
				p.Attributes().PutStr("device", device)
			}
		}
		add("shared", shared...)
		add("own", own)
		return md
	}
	pages := []pmetric.Metrics{target("one", "a", "b", "c"), target("other", "a", "b")}
	e, _ := newEncoder(t, nil)
	var before Stats
	const rounds = 5
	for i := range rounds {
		if i == 2 {
			before = e.Stats()
		}
		for _, md := range pages {
			require.NoError(t, e.Add(md, ""))
		}
	}
	after := e.Stats()
	assert.Equal(t, uint64(3*7), after.Hits-before.Hits)
	assert.LessOrEqual(t, after.Moves-before.Moves, uint64(3*2))
	series, _ := decode(t, flushAll(e, v2Zstd))
	owners := map[string]int{}
	for _, s := range series {
		for _, sample := range s.Samples {
			owners[labelsOf(s)]++
			assert.Equal(t, strings.Contains(labelsOf(s), `instance="one"`), sample.Value == 3, labelsOf(s)) // the length of its name
		}
	}
	require.Len(t, owners, 7)
	for labels, n := range owners {
		assert.Equal(t, 1, n, "%s: the same moment in each round", labels)
	}
}

// clean removes what may allocate.
func clean(m pmetric.Metric) {
	switch m.Type() {
	case pmetric.MetricTypeHistogram:
		for i := range m.Histogram().DataPoints().Len() {
			dp := m.Histogram().DataPoints().At(i)
			dp.Attributes().Clear()
			dp.Attributes().PutInt("i", int64(i))
			dp.Exemplars().RemoveIf(func(pmetric.Exemplar) bool { return true })
		}
	case pmetric.MetricTypeExponentialHistogram:
		for i := range m.ExponentialHistogram().DataPoints().Len() {
			dp := m.ExponentialHistogram().DataPoints().At(i)
			dp.Attributes().Clear()
			dp.Attributes().PutBool("b", i%2 == 0)
			dp.Attributes().PutInt("i", int64(i))
			dp.Exemplars().RemoveIf(func(pmetric.Exemplar) bool { return true })
		}
	case pmetric.MetricTypeSummary:
		for i := range m.Summary().DataPoints().Len() {
			m.Summary().DataPoints().At(i).Attributes().Clear()
			m.Summary().DataPoints().At(i).Attributes().PutInt("i", int64(i))
		}
	case pmetric.MetricTypeGauge:
		m.SetEmptyGauge()
	default:
		m.SetEmptySum()
	}
}

func TestCollisionsDoNotMixSeries(t *testing.T) {
	e, d := newEncoder(t, func(c *Config) { c.Cache.ScopeLabels, c.Cache.TargetInfo = cache.ScopeLabelsOn, true })
	e.cache.HashMask = 0
	for target := range 5 {
		require.NoError(t, e.Add(page(target, 40, epoch), ""))
	}
	series, _ := decode(t, flushAll(e, v2Zstd))
	seen := map[string]bool{}
	for _, s := range series {
		seen[labelsOf(s)] = true
	}
	assert.Len(t, seen, 205)
	assert.Zero(t, d.total())
	s := e.Stats()
	assert.Equal(t, 40, s.Series)
	assert.Equal(t, 5, s.Resources)
	e.Expire()
	assert.Equal(t, 40, e.Stats().Series)
}

func TestPagesThatDifferStillShare(t *testing.T) {
	e, _ := newEncoder(t, nil)
	a, b := page(0, 40, epoch), page(1, 40, epoch)
	metrics := b.ResourceMetrics().At(0).ScopeMetrics().At(0).Metrics()
	metrics.At(3).SetName("another") // in the middle
	require.NoError(t, e.Add(a, ""))
	require.NoError(t, e.Add(b, ""))
	known := e.Stats().Series
	assert.LessOrEqual(t, known, 44)
	before := e.Stats()
	require.NoError(t, e.Add(a, ""))
	require.NoError(t, e.Add(b, ""))
	after := e.Stats()
	assert.Equal(t, before.Misses, after.Misses)
	assert.LessOrEqual(t, after.Moves-before.Moves, uint64(8), "only around the difference")
	assert.Equal(t, known, after.Series)
}

func TestIdleEntriesAreForgotten(t *testing.T) {
	e, _ := newEncoder(t, func(c *Config) { c.Cache.IdleGenerations, c.Cache.TargetInfo = 3, true })
	require.NoError(t, e.Add(page(0, 30, epoch), "gone"))
	require.NoError(t, e.Add(page(0, 10, epoch), "here"))
	flushAll(e, v2Zstd)
	full := e.Stats()
	assert.Equal(t, 40, full.Series)
	assert.Equal(t, 2, full.Resources)
	for i := range 6 {
		require.NoError(t, e.Add(page(0, 10, epoch.Add(time.Duration(i+1)*time.Second)), "here"))
		e.Expire()
	}
	left := e.Stats()
	assert.Equal(t, 10, left.Series)
	assert.Equal(t, 1, left.Resources)
	assert.Equal(t, 1, left.Tenants)
	assert.EqualValues(t, 30, left.Evictions)
	assert.Less(t, left.Symbols, full.Symbols)
	assert.Contains(t, e.tenants, "here")

	// The rest is complete, and freed symbols are reused.
	require.NoError(t, e.Add(page(7, 30, epoch.Add(time.Hour)), "here"))
	series, _ := decode(t, flushAll(e, v2Zstd))
	names := map[string]int{}
	for _, s := range series {
		names[labelsOf(s)]++
	}
	assert.Len(t, names, 10+30+1)
	for range 8 { // everything expires
		e.Expire()
	}
	assert.Equal(t, 1, e.Stats().Symbols)
	assert.Zero(t, e.Stats().Tenants)
}

func TestPendingSamplesSurviveExpiry(t *testing.T) {
	for _, f := range formats {
		e, d := newEncoder(t, func(c *Config) { c.Cache.IdleGenerations, c.Shards = 1, 3 })
		require.NoError(t, e.Add(page(0, 30, epoch), ""))
		want := map[string]bool{}
		for i := range 5 {
			e.Expire()
			require.NoError(t, e.Add(page(i+1, 3, epoch), "other")) // would use freed symbols
		}
		for s := range 3 {
			series, _ := decode(t, e.Flush(s, "", f, nil))
			for _, s := range series {
				want[labelsOf(s)] = true
			}
		}
		assert.Len(t, want, 30)
		for l := range want {
			assert.Contains(t, l, `instance="127.0.0.0:9100",job="node"`)
		}
		assert.Zero(t, d.total())
	}
}

func TestCacheIsBoundedAndLosesNothing(t *testing.T) {
	e, d := newEncoder(t, func(c *Config) { c.Cache.MaxSeries, c.Cache.TargetInfo = 25, true })
	sent := 0
	for round := range 20 {
		for target := range 4 {
			md := page(target, 40, epoch.Add(time.Duration(round)*time.Second))
			// New series each time, which fill the cache and do not occur again.
			m := md.ResourceMetrics().At(0).ScopeMetrics().At(0).Metrics().At(0)
			m.SetName(fmt.Sprintf("churn_%d_%d", round, target))
			require.NoError(t, e.Add(md, ""))
		}
		series, _ := decode(t, flushAll(e, v2Zstd))
		for _, s := range series {
			if s.Labels[0].Value != "target_info" {
				sent += len(s.Samples)
			}
		}
		s := e.Stats()
		assert.LessOrEqual(t, s.Series, 25)
		assert.LessOrEqual(t, s.Symbols, 400)
		if round%5 == 0 {
			e.Expire()
		}
	}
	assert.Equal(t, 20*4*40, sent)
	assert.Zero(t, d.total())
	assert.NotZero(t, e.Stats().Evictions)
}

func TestTenantsAreApartAndBounded(t *testing.T) {
	e, d := newEncoder(t, func(c *Config) { c.MaxTenants = 2 })
	require.NoError(t, e.Add(gauge("g", 1, epoch), "a"))
	require.NoError(t, e.Add(gauge("g", 2, epoch), "b"))
	require.ErrorContains(t, e.Add(gauge("g", 3, epoch), "c"), `tenant "c"`)
	assert.Equal(t, map[loss.Reason]int{loss.Tenants: 1}, d.counts)
	for i, tenant := range []string{"a", "b"} {
		blocks := e.Flush(0, tenant, v2Zstd, nil)
		require.Len(t, blocks, 1)
		assert.Equal(t, tenant, blocks[0].Tenant)
		series, _ := decode(t, blocks)
		assert.InDelta(t, i+1, series[0].Samples[0].Value, 0)
	}
	assert.Empty(t, e.Flush(0, "c", v2Zstd, nil))
	n, _ := e.Pending(0, "c")
	assert.Zero(t, n)
}

func TestSeriesStaysInItsShard(t *testing.T) {
	of := func() map[string]int {
		e, _ := newEncoder(t, func(c *Config) { c.Shards = 4 })
		shards := map[string]int{}
		for target := range 3 {
			require.NoError(t, e.Add(page(target, 60, epoch), ""))
		}
		for _, b := range flushAll(e, v2Zstd) {
			series, _ := decode(t, []block.Block{b})
			for _, s := range series {
				shards[labelsOf(s)] = b.Shard
			}
		}
		return shards
	}
	first := of()
	assert.Len(t, first, 180)
	assert.Equal(t, first, of(), "also after a restart")
	used := map[int]bool{}
	for _, s := range first {
		used[s] = true
	}
	assert.Len(t, used, 4)
}

// TestConcurrentUse adds from several goroutines, each with its own targets, while others cut, flush and expire. Each
// series must be complete and in order.
func TestConcurrentUse(t *testing.T) {
	const adders, rounds, width, shards = 4, 30, 40, 3
	e, d := newEncoder(t, func(c *Config) {
		c.Shards, c.MaxSamples, c.Cache.IdleGenerations, c.Cache.MaxSeries = shards, 500, 1, 100
		c.Cache.TargetInfo = true
	})
	var wg, flushers sync.WaitGroup
	for a := range adders {
		wg.Go(func() {
			for r := range rounds {
				assert.NoError(t, e.Add(page(a, width, epoch.Add(time.Duration(r)*time.Minute)), ""))
			}
		})
	}
	done := make(chan struct{})
	blocks := make([][]block.Block, shards)
	for s := range shards {
		flushers.Go(func() {
			for {
				select {
				case <-done:
					for range 2 { // the part that was cut, and the part added since
						blocks[s] = e.Flush(s, "", v2Zstd, blocks[s])
					}
					return
				default:
					blocks[s] = e.Flush(s, "", formats[len(blocks[s])%2], blocks[s])
				}
			}
		})
	}
	flushers.Go(func() {
		for {
			select {
			case <-done:
				return
			default:
				e.Expire()
				e.Cut(nil)
				e.Stats()
				e.Pending(0, "")
			}
		}
	})
	wg.Wait()
	close(done)
	flushers.Wait()
	last := map[string]int64{}
	n := 0
	for _, of := range blocks {
		series, _ := decode(t, of)
		for _, s := range series {
			l := labelsOf(s)
			for _, p := range s.Samples {
				require.Greater(t, p.Timestamp, last[l])
				last[l] = p.Timestamp
			}
			if s.Labels[0].Value != "target_info" {
				n += len(s.Samples)
			}
		}
	}
	assert.Equal(t, adders*rounds*width, n)
	assert.Len(t, last, adders*(width+1))
	assert.Zero(t, d.total())
}

func TestFlushTakesWhatWasCut(t *testing.T) {
	e, _ := newEncoder(t, func(c *Config) { c.Cache.IdleGenerations = 1 })
	values := func(blocks []block.Block) (of []float64) {
		series, _ := decode(t, blocks)
		for _, s := range series {
			for _, p := range s.Samples {
				of = append(of, p.Value)
			}
		}
		return of
	}
	require.NoError(t, e.Add(gauge("g", 1, epoch), "a"))
	require.NoError(t, e.Add(gauge("g", 1, epoch), "empty"))
	flushAll(e, v2Zstd)
	require.NoError(t, e.Add(gauge("g", 2, epoch.Add(time.Second)), "a"))
	require.ElementsMatch(t, []string{"a", "empty"}, e.Cut(nil))
	require.NoError(t, e.Add(gauge("g", 3, epoch.Add(2*time.Second)), "a"))
	require.NoError(t, e.Add(gauge("g", 3, epoch.Add(2*time.Second)), "empty"))
	for range 3 { // the part that was cut is in use, even if its series are idle
		e.Expire()
	}
	assert.Equal(t, []float64{2}, values(e.Flush(0, "a", v2Zstd, nil)))
	assert.Empty(t, e.Flush(0, "empty", v2Zstd, nil))
	assert.Equal(t, []float64{3}, values(e.Flush(0, "a", v2Zstd, nil)))
	assert.Equal(t, []float64{3}, values(e.Flush(0, "empty", v2Zstd, nil)))
	assert.Empty(t, e.Flush(0, "a", v2Zstd, nil))
}

func TestShardsChangeAndSeriesStayKnown(t *testing.T) {
	e, _ := newEncoder(t, nil)
	md := page(1, 200, epoch)
	require.NoError(t, e.Add(md, ""))
	flushAll(e, block.Format{Version: 2})
	for _, shards := range []int{2, 7, 256, 3, 1} {
		e.SetShards(shards)
		require.NoError(t, e.Add(md, ""))
		blocks := flushAll(e, block.Format{Version: 2})
		used := map[int]bool{}
		for _, b := range blocks {
			used[b.Shard] = true
		}
		require.Greater(t, len(used), min(shards, 100)/2, "series are spread over %d shards", shards)
		series, _ := decode(t, blocks)
		require.Len(t, series, 200)
	}
	s := e.Stats()
	require.EqualValues(t, 200, s.Misses, "each was translated once")
	require.EqualValues(t, 1000, s.Hits)
}
