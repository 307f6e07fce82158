// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package cardinalityprocessor

import (
	"fmt"
	"math/rand/v2"
	"os"
	"runtime"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/godwit-otel/godwit/internal/alloctest"
)

// threeLimits are in force beside each other: of the total, per metric and per service.
func threeLimits(c *Config) {
	c.Defaults.MaxSeriesPerMetric = 500_000
	c.Rules = []RuleConfig{{Name: "service", GroupBy: []string{"service.name"}, MaxSeries: 1_000_000}}
}

// workload is n points of 50 metrics with six attributes each.
func workload(n int) pmetric.Metrics {
	md := pmetric.NewMetrics()
	rm := md.ResourceMetrics().AppendEmpty()
	rm.Resource().Attributes().PutStr("service.name", "checkout")
	rm.Resource().Attributes().PutStr("k8s.pod.name", "checkout-5d4f8c7b9-x2x7p")
	sm := rm.ScopeMetrics().AppendEmpty()
	const metrics = 50
	for i := range metrics {
		m := sm.Metrics().AppendEmpty()
		m.SetName("http.server.request.duration." + strconv.Itoa(i))
		m.SetUnit("s")
		sum := m.SetEmptySum()
		sum.SetIsMonotonic(true)
		sum.SetAggregationTemporality(pmetric.AggregationTemporalityCumulative)
		for j := range n / metrics {
			dp := sum.DataPoints().AppendEmpty()
			dp.SetIntValue(int64(j))
			a := dp.Attributes()
			a.PutStr("http.request.method", "GET")
			a.PutStr("http.route", "/api/v1/orders/{order_id}/items")
			a.PutStr("http.response.status_code", "200")
			a.PutStr("server.address", "orders.internal.example.com")
			a.PutStr("url.scheme", "https")
			a.PutStr("client.id", "c"+strconv.Itoa(j))
		}
	}
	return md
}

func TestKnownSeriesPassWithoutAllocation(t *testing.T) {
	for _, told := range []bool{false, true} {
		r := newRig(t, func(c *Config) { threeLimits(c); c.Statistics.Enabled = told })
		md := workload(1000)
		require.Equal(t, 1000, r.consume(md).DataPointCount())
		require.Zero(t, alloctest.PerRun(func() {
			if _, err := r.process(t.Context(), md); err != nil {
				t.Error(err)
			}
		}), "statistics=%t", told)
		require.Equal(t, 1000, md.DataPointCount())
	}
}

// BenchmarkKnown is the cost of the pass path; ns/point is what counts.
func BenchmarkKnown(b *testing.B) {
	for _, told := range []bool{false, true} {
		for _, background := range []int{0, 1_000_000} {
			b.Run(fmt.Sprintf("statistics=%t/background=%d", told, background), func(b *testing.B) {
				r := newRig(b, func(c *Config) { threeLimits(c); c.Statistics.Enabled = told })
				fill(r.limiter, background)
				md := workload(10_000)
				require.Equal(b, 10_000, r.consume(md).DataPointCount())
				b.ReportAllocs()
				for b.Loop() {
					_, _ = r.process(b.Context(), md)
				}
				require.Equal(b, 10_000, md.DataPointCount())
				b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/10_000, "ns/point")
			})
		}
	}
}

// BenchmarkKnownParallel shows how the pass path scales, with the same series from all sides: run it with -cpu 1,2.
func BenchmarkKnownParallel(b *testing.B) {
	r := newRig(b, threeLimits)
	b.RunParallel(func(pb *testing.PB) {
		md := workload(10_000)
		r.consume(md)
		for pb.Next() {
			_, _ = r.process(b.Context(), md)
		}
	})
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/10_000, "ns/point")
}

// BenchmarkRejected is the cost of series that find no room: always the same ones, or new ones each time.
func BenchmarkRejected(b *testing.B) {
	for _, told := range []bool{false, true} {
		for _, hostile := range []bool{false, true} {
			b.Run(fmt.Sprintf("statistics=%t/hostile=%t", told, hostile), func(b *testing.B) { benchmarkRejected(b, told, hostile) })
		}
	}
}

func benchmarkRejected(b *testing.B, told, hostile bool) {
	r := newRig(b, func(c *Config) { threeLimits(c); c.Memory.MaxSeries, c.Statistics.Enabled = 1, told })
	template, md, round := workload(10_000), pmetric.NewMetrics(), 0
	for b.Loop() {
		b.StopTimer()
		if template.CopyTo(md); hostile {
			round++
			md.ResourceMetrics().At(0).Resource().Attributes().PutInt("round", int64(round))
		}
		b.StartTimer()
		_, _ = r.process(b.Context(), md)
	}
	require.LessOrEqual(b, md.DataPointCount(), 1)
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/10_000, "ns/point")
}

// fill admits n series that nobody will ask for.
func fill(l *limiter, n int) {
	random := rand.New(rand.NewPCG(1, uint64(l.admitted.Load())))
	x := sighting{policy: newPolicy(defaultConfig(), 1, nil), epoch: l.epoch.Load()}
	x.limits = x.policy.limits
	x.attributes = attributesOf(nil)
	for range n {
		l.see(settled(random.Uint64()), &x)
	}
}

// seriesVariable asks TestBytesPerSeries for more series than a test on every change has time for.
const seriesVariable = "GODWIT_CARDINALITY_SERIES"

// TestBytesPerSeries counts everything that is on the heap, not only the slots. A million has room for statistics, too.
func TestBytesPerSeries(t *testing.T) {
	n := 150_000
	if text := os.Getenv(seriesVariable); text != "" {
		var err error
		n, err = strconv.Atoi(text)
		require.NoError(t, err)
	}
	heap := func() uint64 {
		for range 3 { // what others left in pools takes two
			runtime.GC()
		}
		var stats runtime.MemStats
		runtime.ReadMemStats(&stats)
		return stats.HeapAlloc
	}
	before := heap()
	l := newLimiter(100_000, n)
	fill(l, n)
	taken := heap() - before
	require.Equal(t, int64(n), l.admitted.Load())
	limit := 20 * uint64(n)
	if n >= 1_000_000 {
		limit -= 3 << 20
	}
	require.Less(t, taken, limit)
	t.Logf("%.2f bytes per series", float64(taken)/float64(n))
}

// TestSweepGoesShardByShard: what a sweep does at a time is a small part of all, however many expire at once.
func TestSweepGoesShardByShard(t *testing.T) {
	l := newLimiter(1000, 25_000)
	fill(l, 25_000)
	for range (idleEpochs + 2) * shardCount {
		l.sweep()
	}
	for range shardCount {
		before := l.expired.Load()
		l.sweep()
		require.Less(t, l.expired.Load()-before, int64(2*25_000/shardCount))
	}
	require.Equal(t, int64(25_000), l.expired.Load())
}
