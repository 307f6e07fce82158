// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package cardinalityprocessor

import (
	"fmt"
	"hash/maphash"
	"math"
	rand "math/rand/v2"
	"os"
	"runtime"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/godwit-otel/godwit/internal/alloctest"
	"github.com/godwit-otel/godwit/internal/racetest"
	"github.com/godwit-otel/godwit/internal/slab"
	"github.com/godwit-otel/godwit/processor/cardinalityprocessor/internal/ident"
	"github.com/godwit-otel/godwit/processor/cardinalityprocessor/internal/moment"
	"github.com/godwit-otel/godwit/processor/cardinalityprocessor/internal/policy"
	"github.com/godwit-otel/godwit/processor/cardinalityprocessor/internal/series"
	"github.com/godwit-otel/godwit/processor/cardinalityprocessor/internal/stats"
)

// threeLimits apply at the same time: in total, per metric and per service.
func threeLimits(c *Config) {
	c.Memory.MaxSeries = 2_000_000
	c.Defaults.MaxSeriesPerMetric = 500_000
	c.Rules = []RuleConfig{{Name: "service", GroupBy: []string{"service.name"}, MaxSeries: 1_000_000}}
}

// workload returns n points of 50 metrics with six attributes each.
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

// BenchmarkKnown measures the path of known series. What counts is ns/point, or least-ns/point on a busy machine. It
// also hashes the same attributes like Go's maps, in turn, to measure the machine: where that takes 80 ns, a known
// point takes about 90.
func BenchmarkKnown(b *testing.B) {
	for _, told := range []bool{false, true} {
		for _, background := range []int{0, 1_000_000} {
			b.Run(fmt.Sprintf("statistics=%t/background=%d", told, background), func(b *testing.B) {
				r := newRig(b, func(c *Config) { threeLimits(c); c.Statistics.Enabled = told })
				fill(r.Limiter, background)
				md := workload(10_000)
				require.Equal(b, 10_000, r.consume(md).DataPointCount())
				b.ReportAllocs()
				least, reference, hashed := time.Duration(math.MaxInt64), time.Duration(math.MaxInt64), uint64(0)
				for b.Loop() {
					began := time.Now()
					_, _ = r.process(b.Context(), md)
					least = min(least, time.Since(began))
					b.StopTimer()
					began = time.Now()
					hashed += hashAll(md)
					reference = min(reference, time.Since(began))
					b.StartTimer()
				}
				require.NotZero(b, hashed)
				require.Equal(b, 10_000, md.DataPointCount())
				b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/10_000, "ns/point")
				b.ReportMetric(float64(least.Nanoseconds())/10_000, "least-ns/point")
				b.ReportMetric(float64(reference.Nanoseconds())/10_000, "least-reference-ns/point")
			})
		}
	}
}

var hashSeed = maphash.MakeSeed()

// hashAll hashes all attributes of points of sums.
func hashAll(md pmetric.Metrics) (sum uint64) {
	for _, m := range md.ResourceMetrics().At(0).ScopeMetrics().At(0).Metrics().All() {
		for _, dp := range m.Sum().DataPoints().All() {
			for key, value := range dp.Attributes().All() {
				sum += maphash.String(hashSeed, key) ^ maphash.String(hashSeed, value.Str())
			}
		}
	}
	return sum
}

// BenchmarkKnownCold measures the path of known series when the caches were used by others since the last batch, as at
// low rates. The data is in the cache: it was just decoded.
func BenchmarkKnownCold(b *testing.B) {
	r := newRig(b, threeLimits)
	template, md := workload(1000), pmetric.NewMetrics()
	require.Equal(b, 1000, r.consume(template).DataPointCount())
	others := make([]byte, 64<<20)
	for b.Loop() {
		b.StopTimer()
		for i := 0; i < len(others); i += 64 {
			others[i]++
		}
		template.CopyTo(md)
		b.StartTimer()
		_, _ = r.process(b.Context(), md)
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/1000, "ns/point")
}

// podRequest returns a thousand points of 50 metrics with eight attributes each, most of which differ between points,
// like in the benchmark of limits (benchmarks/limit).
func podRequest(n int) pmetric.Metrics {
	random := rand.New(rand.NewPCG(3, uint64(n)))
	md := pmetric.NewMetrics()
	rm := md.ResourceMetrics().AppendEmpty()
	rm.Resource().Attributes().PutStr("service.name", "service-"+strconv.Itoa(n%20))
	rm.Resource().Attributes().PutStr("k8s.pod.name", fmt.Sprintf("service-%d-5d4f8c7b9-%05d", n%20, n))
	sm := rm.ScopeMetrics().AppendEmpty()
	for i := range 50 {
		m := sm.Metrics().AppendEmpty()
		m.SetName("http.server.request.count." + strconv.Itoa(i))
		m.SetUnit("1")
		sum := m.SetEmptySum()
		sum.SetIsMonotonic(true)
		sum.SetAggregationTemporality(pmetric.AggregationTemporalityDelta)
		for j := range 20 {
			dp := sum.DataPoints().AppendEmpty()
			dp.SetIntValue(int64(j))
			a := dp.Attributes()
			a.PutStr("http.request.method", []string{"GET", "POST", "PUT", "DELETE"}[j%4])
			a.PutStr("http.route", fmt.Sprintf("/api/v2/customers/{id}/orders/%02d", j))
			a.PutStr("http.response.status_code", []string{"200", "201", "404", "500"}[random.IntN(4)])
			a.PutStr("server.address", "orders.internal.example.com")
			a.PutStr("url.scheme", "https")
			a.PutStr("network.protocol.version", "1.1")
			a.PutStr("cloud.availability_zone", "eu-central-1"+string(rune('a'+j%3)))
			a.PutStr("client.id", fmt.Sprintf("client-%04d", random.IntN(3000)))
		}
	}
	return md
}

// decoded returns a request as a receiver decodes it into new memory: like the Collector's, or like ours, which uses
// one string for equal names and values.
func decoded(b *testing.B, request []byte, with *slab.Slabs, texts map[string]*slab.Text) pmetric.Metrics {
	md, err := (&pmetric.ProtoUnmarshaler{}).UnmarshalMetrics(request)
	require.NoError(b, err)
	if texts == nil {
		return md
	}
	text := func(s string) *slab.Text {
		t := texts[s]
		if t == nil {
			t = slab.NewText(s)
			texts[s] = t
		}
		return t
	}
	for _, m := range md.ResourceMetrics().At(0).ScopeMetrics().At(0).Metrics().All() {
		points := pmetric.NewNumberDataPointSlice()
		points.EnsureCapacity(m.Sum().DataPoints().Len())
		for _, dp := range m.Sum().DataPoints().All() {
			p := with.AppendNumber(points)
			with.SetInt(p, dp.IntValue())
			with.Reserve(p.Attributes(), dp.Attributes().Len())
			for key, value := range dp.Attributes().All() {
				with.PutText(p.Attributes(), text(key).String(), text(value.Str()))
			}
		}
		points.MoveAndAppendTo(emptied(m.Sum().DataPoints()))
	}
	return md
}

func emptied(points pmetric.NumberDataPointSlice) pmetric.NumberDataPointSlice {
	points.RemoveIf(func(pmetric.NumberDataPoint) bool { return true })
	return points
}

// BenchmarkKnownPods measures the path of known series with requests of a hundred pods in turn, each in memory that was
// just allocated.
func BenchmarkKnownPods(b *testing.B) {
	for _, shared := range []bool{false, true} {
		b.Run(fmt.Sprintf("shared=%t", shared), func(b *testing.B) { benchmarkKnownPods(b, shared) })
	}
}

func benchmarkKnownPods(b *testing.B, shared bool) {
	const pods = 100
	var slabs slab.Slabs
	var texts map[string]*slab.Text
	if shared {
		texts = map[string]*slab.Text{}
	}
	r := newRig(b, threeLimits)
	var requests [pods][]byte
	for i := range requests {
		var err error
		requests[i], err = (&pmetric.ProtoMarshaler{}).MarshalMetrics(podRequest(i))
		require.NoError(b, err)
		require.Equal(b, 1000, r.consume(podRequest(i)).DataPointCount())
	}
	n := 0
	var least [pods]time.Duration
	for b.Loop() {
		b.StopTimer()
		i := n % pods
		md := decoded(b, requests[i], &slabs, texts)
		n++
		b.StartTimer()
		began := time.Now()
		_, _ = r.process(b.Context(), md)
		if took := time.Since(began); least[i] == 0 || took < least[i] {
			least[i] = took
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/1000, "ns/point")
	var all time.Duration // other processes do not always disturb the same pods
	for _, d := range least {
		all += d
	}
	b.ReportMetric(float64(all.Nanoseconds())/pods/1000, "least-ns/point")
}

// BenchmarkKnownParallel measures how the path of known series scales, with the same series in all goroutines: run it
// with -cpu 1,2.
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

// BenchmarkRejected measures series that get no place: always the same ones, or new ones each time.
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

// fill admits n series that do not occur again.
func fill(l *series.Limiter, n int) { fillFirst(l, n, l.Shards()) }

// fillFirst puts them all into the first few shards.
func fillFirst(l *series.Limiter, n, shards int) {
	random := rand.New(rand.NewPCG(1, uint64(l.Admitted.Load())))
	cfg := defaultConfig()
	cfg.Memory.MaxSeries = math.MaxInt
	x := series.Sighting{Policy: policy.New(cfg, 1, nil, nil), Hash: testHasher(), Moment: l.Now()}
	x.Limits = x.Policy.Limits
	x.Attributes = attributesOf(nil)
	for range n {
		fp := ident.Settled(random.Uint64())
		place := uint64(shards) * (fp >> l.Series.Shift) / uint64(l.Shards())
		l.See(place<<l.Series.Shift|fp&(1<<l.Series.Shift-1), &x)
	}
}

// seriesVariable sets a higher number of series for TestBytesPerSeries than there is time for on every change.
const seriesVariable = "GODWIT_CARDINALITY_SERIES"

// TestBytesPerSeries measures everything on the heap, not only the slots, at various sizes, also right after the tables
// have grown and are half empty. From 700,000 series on, 20 bytes include statistics.
func TestBytesPerSeries(t *testing.T) {
	racetest.Sequential(t)
	most := 230_000
	if text := os.Getenv(seriesVariable); text != "" {
		var err error
		most, err = strconv.Atoi(text)
		require.NoError(t, err)
	}
	heap := func() uint64 {
		for range 3 { // pools are emptied by the second one
			runtime.GC()
		}
		var mem runtime.MemStats
		runtime.ReadMemStats(&mem)
		return mem.HeapAlloc
	}
	before := heap()
	l := series.New(100_000, max(most, defaultConfig().Memory.MaxSeries))
	for n := 200_000; n <= most; n += n / 16 {
		fill(l, n-int(l.Admitted.Load()))
		require.Equal(t, int64(n), l.Admitted.Load())
		taken := heap() - before
		require.Less(t, taken, 17*uint64(n), "%d series", n)
		if n >= 700_000 {
			require.Less(t, taken+stats.MaxBytes, 20*uint64(n), "%d series", n)
		}
		t.Logf("%d: %.2f bytes per series", n, float64(taken)/float64(n))
	}
	requireShortPasses(t, l.Series)
}

// longestPass is the maximum number of slots of a shard: visiting or moving them takes microseconds.
const longestPass = 2 * series.ShardEntries

func requireShortPasses(t *testing.T, tab *series.Table) {
	for i := range tab.Shards {
		require.LessOrEqual(t, len(tab.Shards[i].Slots.Load().Fps), longestPass)
	}
}

// TestPassesAreShort: the lock of a shard is held while its slots are visited or moved once. However many series there
// are, a shard has few slots, and so do all shards that are swept at once.
func TestPassesAreShort(t *testing.T) {
	const room = series.MinShards*series.ShardEntries - 1 // which has the minimum number of shards
	random := rand.New(rand.NewPCG(7, 8))
	tab := series.NewTable(room)
	for i := range tab.Shards[:3] {
		for range room / len(tab.Shards) * 5 / 4 { // and a quarter of series that left
			fp := ident.Settled(random.Uint64()>>series.MinShardBits | uint64(i)<<(64-series.MinShardBits))
			sh := tab.Lock(fp)
			sh.Insert(fp, 1, moment.In(1, 0, 1))
			sh.Mu.Unlock()
		}
	}
	requireShortPasses(t, tab)
	for room := 1; room <= 100_000_000; room += 1 + room/7 {
		shards := len(series.NewTable(room).Shards)
		require.LessOrEqual(t, room/shards, series.ShardEntries, "%d series", room)
		require.LessOrEqual(t, shards, max(series.MinShards, 2*room/series.ShardEntries), "%d series", room)
	}
}

// The fuller the shards are, the fewer of them are swept at a time.
func TestASweepIsLongEnoughToWakeUpFor(t *testing.T) {
	racetest.Sequential(t)
	r := newRig(t, threeLimits)
	most := r.Limiter.Shards() / sweepsPerEpoch
	require.Equal(t, most, r.sweepSome(most), "of shards with hardly anything in them")
	fillFirst(r.Limiter, 1000*2*most, 2*most)
	require.LessOrEqual(t, r.sweepSome(most), sweptAtOnce/1000+1)
}

// TestWhatASweepTakesOutIsBounded, however many series expire at once: several nearly empty shards, or one full one.
func TestWhatASweepTakesOutIsBounded(t *testing.T) {
	racetest.Sequential(t)
	const most = sweptAtOnce/series.Leaving + series.ShardEntries
	for _, inEach := range []int{10, 300, 1000} {
		r := newRig(t, threeLimits)
		filled := r.Limiter.Shards() / 16
		fillFirst(r.Limiter, inEach*filled, filled)
		r.epochs(series.KeptEpochs + 1)
		expired, longest := int64(0), int64(0)
		for left := r.Limiter.Shards(); left > 0; {
			left -= r.sweepSome(left)
			longest = max(longest, r.Limiter.Expired.Load()-expired)
			expired = r.Limiter.Expired.Load()
		}
		require.LessOrEqual(t, longest, int64(most), "%d in each shard", inEach)
		require.GreaterOrEqual(t, expired, int64(inEach*filled))
	}
}

// TestSweepGoesShardByShard: a sweep handles a small part at a time, however many series expire at once.
func TestSweepGoesShardByShard(t *testing.T) {
	l := series.New(1000, 25_000)
	fill(l, 25_000)
	for range (moment.IdleEpochs + 2) * l.Shards() {
		l.Sweep()
	}
	for range l.Shards() {
		before := l.Expired.Load()
		l.Sweep()
		require.LessOrEqual(t, l.Expired.Load()-before, int64(series.ShardEntries))
	}
	require.Equal(t, int64(25_000), l.Expired.Load())
}
