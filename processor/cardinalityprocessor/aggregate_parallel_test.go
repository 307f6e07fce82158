// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package cardinalityprocessor

import (
	"context"
	"fmt"
	"math"
	rand "math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/processor/processortest"

	"github.com/godwit-otel/godwit/processor/cardinalityprocessor/internal/amount"
	"github.com/godwit-otel/godwit/processor/cardinalityprocessor/internal/metadata"
)

// TestAggregatesAreExactWhileAllGoesOn: senders, flushes of which some are refused, saves and rule changes, all at the
// same time.
func TestAggregatesAreExactWhileAllGoesOn(t *testing.T) {
	const senders, series, rounds = 4, 40, 150
	r := newRig(t, aggregating(AggregateConfig{By: []string{"route"}}))
	r.keep(newMemory())
	var mu sync.Mutex
	random := rand.New(rand.NewPCG(1, 2))
	last := map[string]int64{}
	next, err := consumer.NewMetrics(func(_ context.Context, md pmetric.Metrics) error {
		mu.Lock()
		defer mu.Unlock()
		if random.IntN(4) == 0 {
			return errBusy
		}
		for _, rm := range md.ResourceMetrics().All() {
			for _, m := range rm.ScopeMetrics().At(0).Metrics().All() {
				for i := range amount.PointCount(m) {
					if n, start := reading(m, i); m.Name() == "exempt" || amount.WhenAt(m, i).NoValue {
						continue
					} else if amount.ClassOf(m) == amount.ClassDelta {
						last["delta"] += n
					} else {
						key := fmt.Sprint(spell(amount.AttributesAt(m, i).AsRaw()), uint64(start))
						if n < last[key] {
							return fmt.Errorf("%s falls from %d to %d", key, last[key], n) //nolint:err113 // of a test
						}
						last[key] = n
					}
				}
			}
		}
		return nil
	})
	require.NoError(t, err)
	r.next = next
	front, err := r.pass(processortest.NewNopSettings(metadata.Type), next)
	require.NoError(t, err)
	begin := r.clock
	sends := make(chan struct{})
	var background, all sync.WaitGroup
	keep := func(do func(i int)) {
		background.Go(func() {
			for i := 0; ; i++ {
				select {
				case <-sends:
					return
				default:
					do(i)
				}
			}
		})
	}
	keep(func(int) { r.pour(t.Context(), r.Aggregator.All(r.Now())) })
	keep(func(i int) {
		cfg := *r.cfg
		cfg.Rules = []RuleConfig{{Name: "a", Aggregate: &AggregateConfig{By: [][]string{{"route"}, {}}[i/50%2]}}}
		r.Apply(&cfg)
	})
	for sender := range senders {
		all.Go(func() {
			for round := range rounds {
				for {
					md := metricsOf(point{name: "exempt"})
					for i := range series {
						for _, k := range []kind{cumulative, delta} {
							p := point{
								resource: attrs{"sender": int64(sender)}, name: fmt.Sprint("m", int(k)), kind: k,
								attrs: attrs{"id": int64(i), "route": int64(i % 3)},
							}
							n := int64(1)
							if k == cumulative {
								n = int64(round + 1)
							}
							r.timed(p, begin, begin.Add(time.Duration(round+1)*time.Second), n).ResourceMetrics().MoveAndAppendTo(md.ResourceMetrics())
						}
					}
					if front.ConsumeMetrics(t.Context(), md) == nil {
						break
					}
				}
			}
		})
	}
	all.Wait()
	close(sends)
	background.Wait()
	r.next = r.sink
	r.sink.Reset()
	r.pour(t.Context(), r.Aggregator.All(r.clock.Add(time.Second)))
	mu.Lock()
	defer mu.Unlock()
	for _, md := range r.sink.AllMetrics() {
		for _, rm := range md.ResourceMetrics().All() {
			for _, m := range rm.ScopeMetrics().At(0).Metrics().All() {
				for i := range amount.PointCount(m) {
					n, start := reading(m, i)
					switch {
					case amount.WhenAt(m, i).NoValue:
					case amount.ClassOf(m) == amount.ClassDelta:
						last["delta"] += n
					default:
						last[fmt.Sprint(spell(amount.AttributesAt(m, i).AsRaw()), uint64(start))] = n
					}
				}
			}
		}
	}
	require.Equal(t, int64(senders*series*rounds), last["delta"])
	delete(last, "delta")
	sum := int64(0)
	for _, n := range last {
		sum += n
	}
	require.Equal(t, int64(senders*series*rounds), sum)
}

// TestWhatIsMadeIsSentAtMultiples of each rule's interval, by the clock.
func TestWhatIsMadeIsSentAtMultiples(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, func(c *Config) {
			aggregating(AggregateConfig{By: []string{}, Interval: 10 * time.Second}, func(r *RuleConfig) { r.Match.Metric = "fast" })(c)
			aggregating(AggregateConfig{By: []string{}}, func(r *RuleConfig) { r.Name, r.Match.Metric = "slow", "slow" })(c)
		})
		r.Now = time.Now
		require.NoError(t, r.start(t.Context(), componenttest.NewNopHost()))
		time.Sleep(3 * time.Second)
		for range 9 {
			for _, name := range []string{"fast", "slow"} {
				r.consume(r.timed(point{name: name, kind: gauge}, time.Time{}, time.Now(), 1))
			}
			time.Sleep(10 * time.Second)
			synctest.Wait()
		}
		times := map[string][]pcommon.Timestamp{}
		for _, md := range r.sink.AllMetrics() {
			for _, m := range md.ResourceMetrics().At(0).ScopeMetrics().At(0).Metrics().All() {
				at := amount.WhenAt(m, 0).Time
				times[m.Name()] = append(times[m.Name()], at)
				interval := map[string]time.Duration{"fast": 10 * time.Second, "slow": time.Minute}[m.Name()]
				require.Equal(t, at.AsTime().Truncate(interval), at.AsTime())
			}
		}
		require.Len(t, times["fast"], 9)
		require.Len(t, times["slow"], 1)
		require.NoError(t, r.shutdown(t.Context()))
	})
}

// Exponential histograms are merged into the lower scale and the wider zero bucket, and keep all of their counts.
func TestExponentialHistogramsAreAggregated(t *testing.T) {
	r := newRig(t, aggregating(AggregateConfig{By: []string{}}))
	begin := r.clock
	say := func(id string, seconds int, scale int32, zero uint64, threshold float64, offset int32, counts ...uint64) {
		md := r.timed(point{name: "e", kind: exponential, attrs: attrs{"id": id}}, begin, r.at(seconds), 1)
		m := onlyMetricOf(md).ExponentialHistogram()
		m.SetAggregationTemporality(pmetric.AggregationTemporalityCumulative)
		dp := m.DataPoints().At(0)
		dp.SetScale(scale)
		dp.SetZeroCount(zero)
		dp.SetZeroThreshold(threshold)
		dp.Positive().SetOffset(offset)
		dp.Positive().BucketCounts().FromRaw(counts)
		n := zero
		for _, c := range counts {
			n += c
		}
		dp.SetCount(n)
		dp.SetSum(float64(n))
		r.consume(md)
	}
	say("a", 1, 1, 2, 0, 2, 1, 2, 3, 4) // from 2 on, two buckets per power of two
	say("b", 1, 0, 1, 2.5, 2, 5)        // from 4 to 8; zero up to 2.5, which includes the bucket from 2 to 4
	dp := onlyMetric(t, r.poured(10*time.Second)).ExponentialHistogram().DataPoints().At(0)
	require.Equal(t, uint64(18), dp.Count())
	require.InDelta(t, 18, dp.Sum(), 0)
	require.Equal(t, int32(0), dp.Scale())
	require.Equal(t, uint64(2+1+1+2), dp.ZeroCount())
	require.InDelta(t, 4, dp.ZeroThreshold(), 0)
	require.Equal(t, []uint64{7 + 5}, dp.Positive().BucketCounts().AsRaw())
	require.Equal(t, int32(2), dp.Positive().Offset())

	say("b", 2, 0, 1, 2.5, 2, 9)
	say("a", 1, -1, 2, 0, 1, 20) // with half of the previous scale: from 4 to 16
	dp = onlyMetric(t, r.poured(10*time.Second)).ExponentialHistogram().DataPoints().At(0)
	require.Equal(t, int32(-1), dp.Scale())
	total := dp.ZeroCount()
	for _, n := range dp.Positive().BucketCounts().AsRaw() {
		total += n
	}
	require.Equal(t, dp.Count(), total)
	require.False(t, math.IsNaN(dp.Sum()))
}
