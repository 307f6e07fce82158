// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package cardinalityprocessor

import (
	"context"
	"fmt"
	rand "math/rand/v2"
	"runtime"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/godwit-otel/godwit/internal/alloctest"
	"github.com/godwit-otel/godwit/internal/handback"
	"github.com/godwit-otel/godwit/internal/racetest"
	"github.com/godwit-otel/godwit/processor/cardinalityprocessor/internal/aggregate"
	"github.com/godwit-otel/godwit/processor/cardinalityprocessor/internal/amount"
	"github.com/godwit-otel/godwit/processor/cardinalityprocessor/internal/ident"
	"github.com/godwit-otel/godwit/processor/cardinalityprocessor/internal/policy"
)

// clients has a rule that sums the points of all clients: 50 series out of any number. A dry run does everything except
// removing the points, so the same ones can be sent again.
func clients(c *Config) {
	c.Mode = policy.ModeDryRun
	aggregating(AggregateConfig{Without: []string{"client.id"}})(c)
	c.Statistics.Enabled = false
	c.Memory.AggregateStateMiB = 1024
}

// later gives the points of counters the timestamps of the next batch. Their values stay the same: setting them would
// allocate.
func later(md pmetric.Metrics, begin time.Time, round int) {
	moveOn(md.ResourceMetrics().At(0), begin, round)
}

func moveOn(rm pmetric.ResourceMetrics, begin time.Time, round int) {
	start, at := pcommon.NewTimestampFromTime(begin), pcommon.NewTimestampFromTime(begin.Add(time.Duration(round)*time.Second))
	for _, m := range rm.ScopeMetrics().At(0).Metrics().All() {
		points := m.Sum().DataPoints()
		for i := range points.Len() {
			dp := points.At(i)
			dp.SetStartTimestamp(start)
			dp.SetTimestamp(at)
		}
	}
}

// TestKnownSeriesAreAggregatedWithoutAllocation, except for one per batch and rule, which counts the points of the
// rule.
func TestKnownSeriesAreAggregatedWithoutAllocation(t *testing.T) {
	r := newRig(t, clients)
	md, round := workload(1000), 0
	next := func() {
		round++
		later(md, r.clock, round)
		_, _ = r.process(t.Context(), md)
	}
	next()
	next()
	require.LessOrEqual(t, alloctest.PerRun(next), 1.0)
	require.Equal(t, int64(1000), r.Aggregator.States[0].Feeders.Load())
}

// BenchmarkAggregate measures a counter's point that is added to another series, from fingerprint to sum, with few
// other series in the table and with a million.
func BenchmarkAggregate(b *testing.B) {
	for _, background := range []int{0, 1_000_000} {
		b.Run(fmt.Sprintf("background=%d", background), func(b *testing.B) {
			r := newRig(b, clients)
			feedMany(r.Aggregator, background)
			md, round := workload(10_000), 0
			b.ReportAllocs()
			for b.Loop() {
				round++
				later(md, r.clock, round)
				_, _ = r.process(b.Context(), md)
			}
			require.Zero(b, r.Limiter.Admitted.Load())
			require.Equal(b, int64(10_000+background), r.Aggregator.States[0].Feeders.Load())
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/10_000, "ns/point")
		})
	}
}

// BenchmarkAggregateParallel measures how that scales, with the same outputs for all goroutines: run it with -cpu 1,2.
func BenchmarkAggregateParallel(b *testing.B) {
	r := newRig(b, clients)
	b.RunParallel(func(pb *testing.PB) {
		md, round := workload(10_000), 0
		md.ResourceMetrics().At(0).Resource().Attributes().PutInt("client.id", rand.Int64()) // each goroutine has its own clients
		for pb.Next() {
			round++
			later(md, r.clock, round)
			_, _ = r.process(b.Context(), md)
		}
	})
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/10_000, "ns/point")
}

// relay generates a sender's requests: the counters of some node exporters, 143 each in 60 metrics, in memory that the
// receiver reuses.
type relay struct {
	md        pmetric.Metrics
	loan      handback.Loan
	instances []pcommon.Value // of the resources
	names     []string        // of all targets
	round     int
}

func newRelay(targets int) *relay {
	const perRequest = 4
	r := &relay{md: pmetric.NewMetrics()}
	for range perRequest {
		rm := r.md.ResourceMetrics().AppendEmpty()
		rm.Resource().Attributes().PutStr("service.name", "node")
		r.instances = append(r.instances, rm.Resource().Attributes().PutEmpty("service.instance.id"))
		metrics := rm.ScopeMetrics().AppendEmpty().Metrics()
		for i := range 60 {
			m := metrics.AppendEmpty()
			m.SetName("node_" + strconv.Itoa(i) + "_total")
			sum := m.SetEmptySum()
			sum.SetIsMonotonic(true)
			sum.SetAggregationTemporality(pmetric.AggregationTemporalityCumulative)
			for j := range pointsOf(i) {
				dp := sum.DataPoints().AppendEmpty()
				dp.SetDoubleValue(1)
				dp.Attributes().PutStr("device", "eth"+strconv.Itoa(j))
			}
		}
	}
	for i := range targets {
		r.names = append(r.names, "10.0."+strconv.Itoa(i)+":9100")
	}
	return r
}

// pointsOf returns the number of points of a page's metric.
func pointsOf(metric int) int {
	switch {
	case metric == 0:
		return 16
	case metric < 5:
		return 4
	case metric < 23:
		return 3
	case metric < 43:
		return 2
	default:
		return 1
	}
}

// next makes the request of the next targets, and returns the context to send it with.
func (r *relay) next(ctx context.Context, begin time.Time) context.Context {
	for i, value := range r.instances {
		value.SetStr(r.names[(r.round*len(r.instances)+i)%len(r.names)])
	}
	r.round++
	for _, rm := range r.md.ResourceMetrics().All() {
		moveOn(rm, begin, r.round)
	}
	r.loan.Forget() // the receiver cannot tell that points are the same
	return handback.Lend(ctx, &r.loan, r.md)
}

// BenchmarkAggregateRelay measures a point that arrives by remote write, as in `make bench-aggregate`: metrics with few
// points, and targets that alternate.
func BenchmarkAggregateRelay(b *testing.B) {
	for _, targets := range []int{4, 1000} {
		b.Run(fmt.Sprintf("targets=%d", targets), func(b *testing.B) {
			p := newPiped(b, func(c *Config) {
				aggregating(AggregateConfig{Without: []string{"service.instance.id"}})(c)
				c.Statistics.Enabled = false
			})
			r := newRelay(targets)
			send := func() { require.NoError(b, p.front.ConsumeMetrics(r.next(b.Context(), p.clock), r.md)) }
			for range targets {
				send()
			}
			b.ReportAllocs()
			for b.Loop() {
				send()
			}
			points := r.md.DataPointCount()
			require.Equal(b, 4*143, points)
			require.Equal(b, int64(143*targets), p.Aggregator.States[0].Feeders.Load())
			require.Empty(b, p.sink.AllMetrics())
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(points), "ns/point")
		})
	}
}

// feedMany adds n feeders that do not occur again, to 50 aggregates.
func feedMany(a *aggregate.Aggregator, n int) { feedManyFrom(a, n, 0) }

// feedManyFrom is like feedMany, with a start time.
func feedManyFrom(a *aggregate.Aggregator, n int, start pcommon.Timestamp) {
	if n == 0 {
		return
	}
	random := rand.New(rand.NewPCG(1, 2))
	s := a.States[0]
	var to []*aggregate.Aggregate
	for i := range 50 {
		md := metricsOf(point{name: "background" + strconv.Itoa(i), kind: cumulative})
		wanted := aggregate.Wanted{Identity: uint64(i) + 2, From: onlyMetricOf(md)}
		g, _, _ := a.Pin(s, wanted, 0, func() *aggregate.Aggregate {
			g := &aggregate.Aggregate{Rule: s.Rule, Data: md, Metric: onlyMetricOf(md), Class: amount.ClassCumulative, Outputs: []policy.Operation{policy.OperationSum}}
			return g
		})
		to = append(to, g)
	}
	for i := range n {
		key := ident.Settled(random.Uint64())
		shard := a.ShardOf(key)
		of := aggregate.Birth{To: to[i%50], Cost: aggregate.FeederCost + aggregate.PortionCost}
		if start != 0 {
			of.Begun = &aggregate.Begun{Start: start, Time: start}
		}
		f := aggregate.Feeding{Aggregator: a, Gathered: &aggregate.Gathered{Births: []aggregate.Birth{of}}}
		a.Used.Add(aggregate.FeederCost + aggregate.PortionCost)
		f.Bear(&a.Shards[shard], shard, &aggregate.Intake{Key: key, Birth: 1})
	}
}

// TestBytesPerFeeder measures everything on the heap, at various sizes: also right after the tables have grown, they
// take no more than the limit, nor more than is accounted for.
func TestBytesPerFeeder(t *testing.T) {
	racetest.Sequential(t)
	for name, c := range map[string]struct {
		start pcommon.Timestamp
		most  int64
	}{"nothing said of the beginning": {0, 44}, "begun": {1, 52}} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, clients)
			before, have, most := heapInUse(), 0, int64(0)
			for n := 100_000; n <= 300_000; n += n / 12 {
				feedManyFrom(r.Aggregator, n-have, c.start)
				have = n
				taken := heapInUse() - before
				require.Less(t, taken, c.most*int64(n))
				require.LessOrEqual(t, taken, r.Aggregator.Used.Load())
				most = max(most, taken/int64(n))
			}
			t.Logf("a feeder takes at most %d bytes", most)
			runtime.KeepAlive(r)
		})
	}
}

func heapInUse() int64 {
	for range 3 {
		runtime.GC()
	}
	var mem runtime.MemStats
	runtime.ReadMemStats(&mem)
	return int64(mem.HeapAlloc)
}
