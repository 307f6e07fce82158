// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package cardinalityprocessor

import (
	rand "math/rand/v2"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"

	"github.com/godwit-otel/godwit/internal/racetest"
	"github.com/godwit-otel/godwit/processor/cardinalityprocessor/internal/amount"
	"github.com/godwit-otel/godwit/processor/cardinalityprocessor/internal/overflow"
	"github.com/godwit-otel/godwit/processor/cardinalityprocessor/internal/policy"
)

func TestOverflowSeries(t *testing.T) {
	r := newRig(t, overflowing(1, func(rule *RuleConfig) {
		rule.GroupBy = []string{"resource:service.name"}
		rule.Exceed.KeepLabels = []string{"code"}
	}))
	p := func(i int) point {
		return point{
			resource: attrs{"service.name": "a", "pod": "p" + strconv.Itoa(i)}, scope: "s", name: "m", unit: "u", kind: delta,
			attrs: attrs{"code": int64(200 + i%2), "user": strconv.Itoa(i)},
		}
	}
	for i := range 5 {
		r.consume(r.timed(p(i), r.clock, r.clock, int64(1+i)))
	}
	md := r.flushed(time.Minute)
	require.Equal(t, 1, md.ResourceMetrics().Len())
	require.Equal(t, attrs{"service.name": "a"}, md.ResourceMetrics().At(0).Resource().Attributes().AsRaw())
	require.Equal(t, "s", md.ResourceMetrics().At(0).ScopeMetrics().At(0).Scope().Name())
	m := onlyMetric(t, md)
	require.Equal(t, "m", m.Name())
	require.Equal(t, "u", m.Unit())
	require.True(t, m.Sum().IsMonotonic())
	require.Equal(t, pmetric.AggregationTemporalityDelta, m.Sum().AggregationTemporality())
	points := m.Sum().DataPoints()
	require.Equal(t, 2, points.Len())
	require.Equal(t, attrs{"otel.metric.overflow": true, "code": int64(201)}, points.At(0).Attributes().AsRaw())
	require.Equal(t, int64(2+4), points.At(0).IntValue())
	require.Equal(t, attrs{"otel.metric.overflow": true, "code": int64(200)}, points.At(1).Attributes().AsRaw())
	require.Equal(t, int64(3+5), points.At(1).IntValue())
	require.Equal(t, r.clock.Add(-time.Minute).UnixNano(), points.At(0).StartTimestamp().AsTime().UnixNano())
	require.Equal(t, r.clock.UnixNano(), points.At(0).Timestamp().AsTime().UnixNano())
	require.Equal(t, int64(4), r.rejected("r", "max_series", "overflow"))
	require.Equal(t, int64(2), r.gauge("overflow_series", ""))
	require.Zero(t, r.flushed(time.Minute).DataPointCount(), "deltas are sent once")
}

func TestCollapse(t *testing.T) {
	r := newRig(t, overflowing(3, func(rule *RuleConfig) { rule.LabelLimits = map[string]int{"user": 1, "route": 2} }))
	send := func(user, route string, n int64) int {
		p := point{name: "m", kind: delta, attrs: attrs{"user": user, "route": route}}
		return r.consume(r.timed(p, r.clock, r.clock, n)).DataPointCount()
	}
	require.Equal(t, 1, send("u1", "/a", 1))
	require.Equal(t, 0, send("u2", "/a", 10)) // user is collapsed
	require.Equal(t, 0, send("u3", "/a", 20)) // the same
	require.Equal(t, 0, send("u4", "/b", 30)) // user is collapsed, another series
	require.Equal(t, 0, send("u5", "/c", 40)) // route is over its limit, too; no place for a fourth series
	points := onlyMetric(t, r.flushed(time.Minute)).Sum().DataPoints()
	got := map[string]int64{}
	for _, dp := range points.All() {
		got[spell(dp.Attributes().AsRaw())] = dp.IntValue()
	}
	require.Equal(t, map[string]int64{
		spell(attrs{"user": "__collapsed__", "route": "/a"}): 30,
		spell(attrs{"user": "__collapsed__", "route": "/b"}): 30,
		spell(attrs{"otel.metric.overflow": true}):           40,
	}, got)
	require.Equal(t, int64(3), r.gaugeNow("r"), "collapsed series have places")
	require.Equal(t, int64(3), r.rejected("r", "label_limit", "collapse"))
	require.Equal(t, int64(1), r.rejected("r", "label_limit", "overflow"))
	requireWithinLimits(t, r)
}

// An incoming series with the identity of a series made here is added to it: there must not be two.
func TestIncomingOverflowSeriesIsAdded(t *testing.T) {
	for _, before := range []bool{false, true} {
		r := newRig(t, overflowing(1))
		cascade := point{name: "m", kind: delta, attrs: attrs{"otel.metric.overflow": true}}
		if before { // even if it had a place before
			require.Equal(t, 1, r.consume(r.timed(cascade, r.clock, r.clock, 7)).DataPointCount())
		} else {
			r.send(point{name: "other"})
		}
		s := aSeries(1)
		s.kind = delta
		require.Zero(t, r.consume(r.timed(s, r.clock, r.clock, 5)).DataPointCount())
		require.Zero(t, r.consume(r.timed(cascade, r.clock, r.clock, 7)).DataPointCount())
		require.Equal(t, int64(12), onlyMetric(t, r.flushed(time.Minute)).Sum().DataPoints().At(0).IntValue())
		requireWithinLimits(t, r)
	}
}

func TestSampleLetsAStableFractionThrough(t *testing.T) {
	r := newRig(t, overflowing(1, func(rule *RuleConfig) {
		rule.Exceed.OnExceed = []string{"sample"}
		rule.Exceed.SampleRate = 0.25
	}))
	r.send(point{name: "other"})
	points := make([]point, 4000)
	for i := range points {
		points[i] = aSeries(i)
	}
	first := r.send(points...)
	require.InDelta(t, 1000, len(first), 100)
	require.Equal(t, first, r.send(points...))
	require.Equal(t, int64(2*len(first)), r.rejected("r", "max_series", "sample"))
	require.Equal(t, int64(1), r.gaugeNow("r"), "sampled series have no place")
}

func TestOverflowStateIsBounded(t *testing.T) {
	r := newRig(t, func(c *Config) {
		overflowing(1, func(rule *RuleConfig) { rule.Exceed.KeepLabels = []string{"i"} })(c)
		c.Memory.OverflowStateMiB = 1
	})
	r.send(point{name: "other"})
	for i := range 5000 {
		r.consume(r.timed(aSeries(i), r.clock, r.clock.Add(time.Second), 1))
	}
	outputs, members, used := r.Overflow.Sizes()
	require.LessOrEqual(t, used, int64(1<<20))
	require.Equal(t, outputs, members)
	require.Equal(t, int64(5000-members), r.rejected("r", "max_series", "drop"))
	require.Positive(t, members)
}

func TestDryRunForeseesTheActions(t *testing.T) {
	r := newRig(t, func(c *Config) {
		overflowing(1, func(rule *RuleConfig) { rule.LabelLimits = map[string]int{"user": 0} })(c)
		c.Mode = policy.ModeDryRun
	})
	r.send(point{name: "m", kind: delta, attrs: attrs{"user": "a"}}, point{name: "m", kind: delta, attrs: attrs{"user": "b"}})
	r.send(point{name: "m", kind: delta, attrs: attrs{"x": "a"}}, point{name: "m", kind: gauge, attrs: attrs{"x": "b"}})
	require.Equal(t, int64(2), r.rejected("r", "label_limit", "collapse"))
	require.Equal(t, int64(1), r.rejected("r", "max_series", "overflow"))
	require.Equal(t, int64(1), r.rejected("r", "max_series", "drop"))
	require.Zero(t, r.flushed(time.Second).DataPointCount())
}

// TestDryRunCountsTheSame: decisions do not depend on whether they are carried out. Members stay members, series that
// lost their place and come back get none, and so on.
func TestDryRunCountsTheSame(t *testing.T) {
	racetest.Sequential(t)
	for seed := range seeds(t, 6) {
		rejected := map[string]map[string]int64{}
		for _, mode := range []string{policy.ModeEnforce, policy.ModeDryRun} {
			random := rand.New(rand.NewPCG(seed, 17))
			r := newRig(t, func(c *Config) {
				c.Mode = mode
				c.Memory.MaxSeries = 30
				c.Defaults.Exceed = ExceedConfig{OnExceed: []string{"collapse", "overflow"}, KeepLabels: []string{"route"}, Gauge: policy.NameMean}
				c.Rules = []RuleConfig{
					{Name: "r", GroupBy: []string{"metric"}, MaxSeries: 2 + random.IntN(4), LabelLimits: map[string]int{"user": 2}},
					{Name: "s", GroupBy: []string{"route"}, MaxSeries: 6, Adaptive: AdaptiveConfig{ShareBy: []string{"user"}}},
				}
			})
			start, total := r.clock, int64(0)
			for range 300 {
				r.clock = r.clock.Add(time.Second)
				total += int64(random.IntN(5))
				p := point{
					name: "m" + strconv.Itoa(random.IntN(3)), kind: kind(random.IntN(int(kinds))),
					attrs: attrs{"user": int64(random.IntN(5)), "route": int64(random.IntN(2))},
				}
				md := r.timed(p, start, r.clock, total)
				if random.IntN(15) == 0 {
					amount.Silence(onlyMetricOf(md), 0)
				}
				out := r.consume(md)
				if mode == policy.ModeDryRun {
					require.Equal(t, 1, out.DataPointCount())
				}
				if random.IntN(4) == 0 {
					r.epochs(1 + random.IntN(3)*random.IntN(8))
				}
				if random.IntN(10) == 0 {
					made := r.flushed(time.Second).DataPointCount()
					require.True(t, mode == policy.ModeEnforce || made == 0)
				}
			}
			counts := map[string]int64{"places": r.gaugeNow(policy.RuleTotal), "members": r.gauge("overflow_members", "")}
			got, err := r.telemetry.GetMetric("otelcol_processor_cardinality_rejected_points")
			require.NoError(t, err)
			for _, p := range got.Data.(metricdata.Sum[int64]).DataPoints {
				counts[p.Attributes.Encoded(attribute.DefaultEncoder())] = p.Value
			}
			rejected[mode] = counts
		}
		require.Greater(t, len(rejected[policy.ModeEnforce]), 3)
		require.Equal(t, rejected[policy.ModeEnforce], rejected[policy.ModeDryRun], "seed %d", seed)
	}
}

// TestOverflowUnderConcurrency: the same series from several goroutines, with flushes and expiry at the same time.
func TestOverflowUnderConcurrency(t *testing.T) {
	const writers, rounds = 3, 100
	r := newRig(t, overflowing(2, func(rule *RuleConfig) {
		rule.LabelLimits = map[string]int{"user": 1}
	}))
	total := 0.0
	count := func(md pmetric.Metrics) {
		for _, rm := range md.ResourceMetrics().All() {
			for _, m := range rm.ScopeMetrics().At(0).Metrics().All() {
				for i := range amount.PointCount(m) {
					if v := amount.ValueAt(m, i); amount.ClassOf(m) == amount.ClassDelta && m.Type() == pmetric.MetricTypeSum {
						total += v.Number()
					}
				}
			}
		}
	}
	var mu sync.Mutex
	var done sync.WaitGroup
	for w := range writers {
		done.Go(func() {
			for round := range rounds {
				md := pmetric.NewMetrics()
				for k := range kinds {
					for i := range 3 {
						appendPoint(md, point{name: "m", kind: k, value: 1, attrs: attrs{"user": strconv.Itoa(i), "w": int64(w * (i % 2) * round)}})
					}
				}
				out, _ := r.process(t.Context(), md)
				mu.Lock()
				count(out)
				mu.Unlock()
			}
		})
	}
	finished := make(chan struct{})
	go func() {
		done.Wait()
		close(finished)
	}()
	for running := true; running; {
		select {
		case <-finished:
			running = false
		default:
		}
		r.epochs(1)
		r.flush(t.Context())
	}
	r.flush(t.Context())
	for _, md := range r.sink.AllMetrics() {
		count(md)
	}
	require.InDelta(t, writers*rounds*3, total, 0)
	requireWithinLimits(t, r)
}

func TestMemberWhoseOutputHasJustGone(t *testing.T) {
	r := newRig(t, overflowing(1))
	exponential := pmetric.NewMetric()
	exponential.SetEmptyExponentialHistogram().DataPoints().AppendEmpty()
	require.Equal(t, amount.LossState, addTo(r.Overflow, 5, overflow.Arrival{Metric: exponential, Limit: r.Rules.Policy.Limits[0]}, 0, nil))
}
