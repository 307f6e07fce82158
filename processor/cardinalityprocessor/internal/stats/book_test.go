// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package stats

import (
	"fmt"
	"math"
	"math/rand/v2"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/zeebo/xxh3"
	"go.opentelemetry.io/collector/pdata/pcommon"

	"github.com/godwit-otel/godwit/internal/racetest"
)

var start = time.Unix(1_000_000, 0)

// seriesOf returns a series of a metric with labels, given as alternating keys and values.
func seriesOf(metric string, labels ...string) *Series {
	s := &Series{Metric: metric, Base: xxh3.HashString(metric), New: true}
	var sum uint64
	for i := 0; i < len(labels); i += 2 {
		name := xxh3.HashString(labels[i])
		h := fold(name, xxh3.HashString(labels[i+1]))
		s.Labels = append(s.Labels, Label{Key: labels[i], Value: pcommon.NewValueStr(labels[i+1]), Name: name, Hash: h})
		sum += h
	}
	s.Fingerprint = fold(sum, s.Base)
	return s
}

// within requires an estimate to be within four standard errors, or within two if it is small.
func within(t *testing.T, exact, estimate float64, what string) {
	t.Helper()
	require.InDelta(t, exact, estimate, max(2, 4*StandardError*exact), what)
}

func find[T any](all []T, is func(T) bool) (found T) {
	for _, x := range all {
		if is(x) {
			return x
		}
	}
	return found
}

// TestEstimatesAreNearTheTruth compares all estimates with exact counts of generated series.
func TestEstimatesAreNearTheTruth(t *testing.T) {
	for _, n := range []int{10, 1_000, 30_000} {
		t.Run(strconv.Itoa(n), func(t *testing.T) {
			random := rand.New(rand.NewPCG(1, uint64(n)))
			b := NewBook(start, xxh3.HashString)
			metrics := map[string]map[uint64]bool{}
			values, carrying, without := map[string]map[string]bool{}, map[string]map[string]bool{}, map[string]map[string]bool{}
			put := func(in map[string]map[string]bool, key, what string) {
				if in[key] == nil {
					in[key] = map[string]bool{}
				}
				in[key][what] = true
			}
			pod := 0
			for i := range n {
				metric := fmt.Sprintf("m%d", int(math.Floor(10*random.Float64()*random.Float64())))
				labels := []string{"job", "j" + strconv.Itoa(random.IntN(3)), "path", "/" + strconv.Itoa(random.IntN(200))}
				if i%2 == 0 {
					pod++
					labels = append(labels, "id", "id-"+strconv.Itoa(pod))
				}
				s := seriesOf(metric, labels...)
				if metrics[metric] == nil {
					metrics[metric] = map[uint64]bool{}
				}
				metrics[metric][s.Fingerprint] = true
				for j := 0; j < len(labels); j += 2 {
					rest := append(append([]string{metric}, labels[:j]...), labels[j+2:]...)
					for _, key := range []string{labels[j], metric + "/" + labels[j]} {
						put(values, key, labels[j+1])
						put(carrying, key, metric+strings.Join(labels, ","))
						put(without, key, strings.Join(rest, ","))
					}
				}
				b.Observe(s)
				b.Observe(s) // the second time only changes the births
			}
			got := b.Snapshot(1000)
			require.Len(t, got.Metrics, len(metrics))
			for _, m := range got.Metrics {
				within(t, float64(len(metrics[m.Name])), m.Series, m.Name)
				for _, l := range m.Labels {
					key := m.Name + "/" + l.Name
					within(t, float64(len(carrying[key])), l.Series, key)
					within(t, float64(len(values[key])), l.Values, key)
					within(t, float64(len(without[key])), l.Without, "without "+key)
				}
			}
			require.Len(t, got.Labels, 3)
			for _, l := range got.Labels {
				within(t, float64(len(carrying[l.Name])), l.Series, l.Name)
				within(t, float64(len(values[l.Name])), l.Values, l.Name)
				within(t, float64(len(without[l.Name])), l.Without, "without "+l.Name)
			}
			total := 0
			for _, m := range metrics {
				total += len(m)
			}
			job := find(got.Pairs, func(p Pair) bool { return p.Key == "job" && p.Value == "j0" })
			require.InDelta(t, float64(total)/3, job.Series, max(float64(total)*4*math.Sqrt(1.0/3/float64(got.Sampled)), 0.15*float64(total)))
		})
	}
}

// refuse reports a rejected series like the processor does, and returns whether it was recorded.
func refuse(b *Book, s *Series) bool {
	s.New, s.Rejected, s.Rule, s.Reason = false, true, "http", "max_series"
	if !b.Refuse(s.Metric, s.Fingerprint) {
		return false
	}
	b.Observe(s)
	return true
}

func TestAnExplodingLabelShowsWhatItCosts(t *testing.T) {
	for _, n := range []int{5_000, 120_000} {
		b := NewBook(start, xxh3.HashString)
		for i := range 2_000 {
			b.Observe(seriesOf("healthy", "path", "/"+strconv.Itoa(i%400), "pod", strconv.Itoa(i/400)))
		}
		looked := 0
		for i := range n {
			if s := seriesOf("requests", "path", "/"+strconv.Itoa(i%400), "trace", strconv.Itoa(i)); i < 1000 {
				b.Observe(s)
			} else if refuse(b, s) {
				looked++
			}
		}
		require.LessOrEqual(t, looked, allRefused+n*5/4/someRefused)
		got := b.Snapshot(10)
		requests := find(got.Metrics, func(m Metric) bool { return m.Name == "requests" })
		within(t, 1000, requests.Series, "series")
		within(t, float64(n-1000), requests.Rejected, "rejected")
		require.Equal(t, 1000, requests.Births)
		require.Equal(t, "trace", requests.Labels[0].Name)
		f := func(all []WithoutLabel, name string, series, values, without int) {
			l := find(all, func(l WithoutLabel) bool { return l.Name == name })
			for what, pair := range map[string][2]float64{
				"series": {float64(series), l.Series}, "values": {float64(values), l.Values}, "without": {float64(without), l.Without},
			} {
				require.InDelta(t, pair[0], pair[1], max(2, 3*SampledError*pair[0]), "%d: %s %s", n, name, what)
			}
		}
		f(requests.Labels, "trace", n, n, 400)
		f(requests.Labels, "path", n, 400, n)
		var all []WithoutLabel
		for _, l := range got.Labels {
			all = append(all, l.WithoutLabel)
		}
		f(all, "trace", n, n, 400)
		f(all, "path", n+2000, 400, n+5)
		f(all, "pod", 2000, 5, 400)
		require.Len(t, got.Rejections, 1)
		require.Len(t, got.Rejections[0].Examples, maxExamples)
		example := got.Rejections[0].Examples[0]
		require.Equal(t, "requests", example.Metric)
		require.Equal(t, []string{"path", "trace"}, []string{example.Labels[0], example.Labels[2]})
	}
}

// TestAFloodMayBeOfManyMetrics, not all of which have their labels counted one by one.
func TestAFloodMayBeOfManyMetrics(t *testing.T) {
	b := NewBook(start, xxh3.HashString)
	looked := 0
	for i := range 200_000 {
		if refuse(b, seriesOf("m"+strconv.Itoa(i%40), "path", "/"+strconv.Itoa(i/40%100), "trace", strconv.Itoa(i))) {
			looked++
		}
	}
	require.Less(t, looked, 200_000/2)
	for _, l := range b.Snapshot(10).Labels {
		values, without := 100.0, 200_000.0
		if l.Name == "trace" {
			values, without = without, 4_000
		}
		require.InEpsilon(t, 200_000, l.Series, 3*SampledError, l.Name)
		require.InEpsilon(t, values, l.Values, 3*SampledError, l.Name)
		require.InEpsilon(t, without, l.Without, 3*SampledError, l.Name)
	}
}

// TestWhatIsRejectedAgainAndAgainIsSeenInTheEnd: after a while, all rejected series were recorded, and no estimate of
// the others is needed.
func TestWhatIsRejectedAgainAndAgainIsSeenInTheEnd(t *testing.T) {
	b := NewBook(start, xxh3.HashString)
	all := make([]*Series, 20_000)
	for i := range all { // few users have most of the series
		all[i] = seriesOf("requests", "user", strconv.Itoa(int(math.Sqrt(float64(i/7)))), "id", strconv.Itoa(i))
	}
	for range 25 {
		for _, s := range all {
			refuse(b, s)
		}
	}
	got := b.Snapshot(10).Metrics[0]
	within(t, 20_000, got.Rejected, "rejected")
	for _, l := range got.Labels {
		within(t, 20_000, l.Series, l.Name)
	}
	user := find(got.Labels, func(l WithoutLabel) bool { return l.Name == "user" })
	within(t, math.Sqrt(20_000.0/7), user.Values, "users")
}

// A metric at its limit has few series with a place, and others have many, but the labels of the limited metric are the
// interesting ones.
func TestMetricsAtALimitAreToldOfFirst(t *testing.T) {
	b := NewBook(start, xxh3.HashString)
	observe := func(metric string, i int) {
		b.Observe(seriesOf(metric, "user", strconv.Itoa(i)))
	}
	for i := range 2000 { // more large metrics than labels are counted for
		for m := range 2 * maxDetailed {
			observe("large"+strconv.Itoa(m), i)
		}
	}
	reject := func(metric string, n int) {
		for i := range n {
			s := seriesOf(metric, "user", "u"+strconv.Itoa(i))
			s.New, s.Rejected = false, true
			if b.Refuse(metric, s.Fingerprint) {
				b.Observe(s)
			}
		}
	}
	values := func(metric string) float64 {
		for _, m := range b.Snapshot(1000).Metrics {
			if m.Name == metric && len(m.Labels) == 1 {
				return m.Labels[0].Values
			}
		}
		return 0
	}
	for range 3 {
		observe("limited", 0)
	}
	reject("limited", 3000)
	within(t, 3001, values("limited"), "values of a metric at its limit")
	for m := range maxDetailed - 1 {
		reject("other"+strconv.Itoa(m), 500)
	}
	for m := range maxDetailed - 1 {
		within(t, 500, values("other"+strconv.Itoa(m)), "values of another one")
	}
	within(t, 3001, values("limited"), "values of the first, beside them")
	for range 2 {
		b.Turn(start)
		for i := range 2000 {
			for m := range 2 * maxDetailed {
				observe("large"+strconv.Itoa(m), i)
			}
		}
	}
	detailed := 0
	for _, m := range b.Snapshot(1000).Metrics {
		if strings.HasPrefix(m.Name, "large") && len(m.Labels) > 0 {
			detailed++
		}
	}
	require.Equal(t, maxDetailed, detailed, "when nothing is rejected any more, the largest are told of again")
}

func TestALabelThatIsThereTwiceVanishesAsAWhole(t *testing.T) {
	b := NewBook(start, xxh3.HashString)
	for i := range 100 {
		b.Observe(seriesOf("m", "pod", "a"+strconv.Itoa(i), "pod", "b"+strconv.Itoa(i)))
	}
	got := b.Snapshot(10)
	within(t, 1, got.Labels[0].Without, "without pod")
}

func TestWhatIsGoneIsForgottenAfterTwoWindows(t *testing.T) {
	b := NewBook(start, xxh3.HashString)
	lasts := seriesOf("lasts", "a", "1")
	b.Observe(lasts)
	for i := range 500 {
		b.Observe(seriesOf("goes", "b", strconv.Itoa(i)))
	}
	for window := range 3 {
		b.Turn(start.Add(time.Duration(window+1) * time.Minute))
		lasts.New = false
		b.Observe(lasts)
	}
	got := b.Snapshot(10)
	require.Len(t, got.Metrics, 1)
	require.Equal(t, "lasts", got.Metrics[0].Name)
	require.Zero(t, got.Metrics[0].Births)
	require.Len(t, got.Labels, 1)
	require.Equal(t, []Pair{{"a", "1", 1}}, got.Pairs)
	require.Equal(t, start.Add(2*time.Minute), got.Since)
}

func TestTheSampleGrowsAgainWhenSeriesAreGone(t *testing.T) {
	b := NewBook(start, xxh3.HashString)
	for i := range 40_000 {
		b.Observe(seriesOf("m", "i", strconv.Itoa(i)))
	}
	require.Greater(t, b.Snapshot(1).Factor, 16.0)
	for window := range 30 {
		b.Turn(start.Add(time.Duration(window) * time.Minute))
		for i := range 300 {
			b.Observe(seriesOf("m", "i", strconv.Itoa(i)))
		}
	}
	got := b.Snapshot(1000)
	require.Equal(t, 1, int(got.Factor))
	require.Equal(t, 300, got.Sampled)
	require.Len(t, got.Pairs, 300)
	all, factor := b.Sample()
	require.Len(t, all, 300)
	require.Equal(t, 1, int(factor))
	require.Equal(t, Example{Metric: "m", Labels: []string{"i", "0"}}, all[0])
}

// TestAHostileStreamTakesNoMoreMemory uses new and long names each time.
func TestAHostileStreamTakesNoMoreMemory(t *testing.T) {
	racetest.Sequential(t)
	heap := func() int64 {
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return int64(m.HeapAlloc)
	}
	before := heap()
	b := NewBook(start, xxh3.HashString)
	long := strings.Repeat("x", 200)
	healthy := func() {
		for i := range 100 {
			b.Observe(seriesOf("healthy", "i", strconv.Itoa(i)))
		}
	}
	for i := range 20_000 {
		if i%100 == 0 {
			healthy()
		}
		n := strconv.Itoa(i)
		s := seriesOf(n+long, n+"a"+long, n+long, n+"b"+long, n+long, n+"c"+long, n+long)
		if i%2 == 0 {
			s.New, s.Rejected, s.Rule, s.Reason = false, true, n, "max_series"
		}
		b.Observe(s)
		if i%7_000 == 0 {
			b.Turn(start)
		}
	}
	taken := heap() - before
	require.Less(t, taken, int64(MaxBytes))
	require.Less(t, b.Bytes(), MaxBytes)
	require.InDelta(t, taken, b.Bytes(), 0.5*float64(MaxBytes))
	got := find(b.Snapshot(1000).Metrics, func(m Metric) bool { return m.Name == "healthy" })
	within(t, 100, got.Series, "healthy")
	require.NotEmpty(t, got.Labels)
}

// TestTheFullestBookIsWithinBounds fills all tables.
func TestTheFullestBookIsWithinBounds(t *testing.T) {
	b := NewBook(start, xxh3.HashString)
	long := strings.Repeat("y", 100)
	for window := range 3 {
		for i := range 3_000 {
			labels := make([]string, 0, 2*maxMetricLabels)
			for l := range maxMetricLabels {
				labels = append(labels, "label"+strconv.Itoa((i+l)%maxLabels)+long, strconv.Itoa(i)+long)
			}
			s := seriesOf("m"+strconv.Itoa(i%(maxMetrics/2)*2%maxMetrics), labels...)
			if s.Rejected = i%2 == 0; s.Rejected {
				s.New, s.Rule = false, "rule"+strconv.Itoa(i%100)
			}
			b.Observe(s)
		}
		if window < 2 {
			b.Turn(start)
		}
	}
	require.Less(t, b.Bytes(), MaxBytes)
	require.Greater(t, b.Bytes(), MaxBytes/2)
}

func TestItIsSafeForConcurrentUse(t *testing.T) {
	b := NewBook(start, xxh3.HashString)
	var all sync.WaitGroup
	for g := range 4 {
		all.Go(func() {
			for i := range 500 {
				b.Observe(seriesOf("m"+strconv.Itoa(i%7), "g", strconv.Itoa(g), "i", strconv.Itoa(i)))
				if i%100 == 0 {
					b.Turn(start)
					b.Snapshot(10)
				}
			}
		})
	}
	all.Wait()
	require.NotEmpty(t, b.Snapshot(10).Metrics)
}

func BenchmarkObserve(b *testing.B) {
	book := NewBook(start, xxh3.HashString)
	var all []*Series
	for i := range 10_000 {
		all = append(all, seriesOf("m"+strconv.Itoa(i%50), "a", "1", "b", "2", "c", "3", "d", "4", "e", "5", "id", strconv.Itoa(i)))
	}
	i := 0
	b.ReportAllocs()
	for b.Loop() {
		book.Observe(all[i%len(all)])
		i++
	}
	require.NotEmpty(b, book.Snapshot(1).Metrics)
}

// TestWhatWentAndHowManyPointsCame: both counts cover whole windows, and fade with them.
func TestWhatWentAndHowManyPointsCame(t *testing.T) {
	b := NewBook(start, xxh3.HashString)
	see := func(from, to int) {
		for i := range to - from {
			b.Observe(seriesOf("m", "i", strconv.Itoa(from+i)))
		}
	}
	see(0, 1000)
	b.Passed("m", 5000)
	b.Passed("m", 3000)
	b.Passed("unknown", 3000)
	got := b.Snapshot(10)
	require.Zero(t, got.Window)
	require.Zero(t, got.Metrics[0].Gone)
	require.Equal(t, []int{8000, 2}, []int{got.Metrics[0].Points, got.Metrics[0].Counts})

	b.Turn(start.Add(time.Minute))
	see(400, 1000)
	require.Zero(t, b.Snapshot(10).Metrics[0].Gone, "the window is not over")
	b.Turn(start.Add(3 * time.Minute))
	see(400, 1000)
	got = b.Snapshot(10)
	require.Equal(t, 2*time.Minute, got.Window)
	require.InDelta(t, 400, got.Metrics[0].Gone, 3*got.Metrics[0].GoneError)
	require.InDelta(t, 32.5, got.Metrics[0].GoneError, 4)
	require.Zero(t, got.Metrics[0].Points)

	b.Turn(start.Add(4 * time.Minute))
	require.Zero(t, b.Snapshot(10).Metrics[0].Gone)
}
