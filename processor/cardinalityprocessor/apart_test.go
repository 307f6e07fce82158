// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package cardinalityprocessor

import (
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/godwit-otel/godwit/processor/cardinalityprocessor/internal/amount"
	"github.com/godwit-otel/godwit/processor/cardinalityprocessor/internal/overflow"
)

// Values that are not finite are excluded and counted, and the next value of the same input makes up for them.
func TestWhatIsNoNumberIsSetApart(t *testing.T) {
	for _, k := range []kind{cumulative, delta, upDown} {
		r := newRig(t, overflowing(1))
		r.send(point{name: "other"})
		start := r.clock
		send := func(i int, n float64) {
			r.clock = r.clock.Add(time.Second)
			p := aSeries(i)
			p.kind = k
			md := r.timed(p, start, r.clock, 0)
			onlyMetricOf(md).Sum().DataPoints().At(0).SetDoubleValue(n)
			r.consume(md)
		}
		total := func() float64 { return onlyMetric(t, r.flushed(time.Second)).Sum().DataPoints().At(0).DoubleValue() }
		send(1, 5)
		for i, n := range []float64{math.NaN(), math.Inf(1), math.Inf(-1)} {
			send(1, n)
			send(2+i, n)
		}
		send(2, 7)
		require.InDelta(t, 12, total(), 0, "kind %d", k)
		require.Equal(t, int64(6), r.unaccounted("not_finite"))
		send(1, 6)
		if k == delta {
			require.InDelta(t, 6, total(), 0)
			continue
		}
		require.InDelta(t, 13, total(), 0)
		send(3, math.MaxFloat64)
		send(4, math.MaxFloat64) // both are finite, their sum is not
		require.InDelta(t, math.MaxFloat64, total(), 0)
		require.Equal(t, int64(7), r.unaccounted("not_finite"))
		send(1, math.Float64frombits(amount.StaleBits)) // Prometheus' stale marker
		require.Equal(t, int64(1), r.unaccounted("no_value"))
	}
}

// Integer sums that overflow become floats.
func TestIntegersDoNotWrap(t *testing.T) {
	r := newRig(t, overflowing(1))
	r.send(point{name: "other"})
	for i := range 3 {
		s := aSeries(i)
		s.kind = delta
		r.consume(r.timed(s, r.clock, r.clock, math.MaxInt64))
	}
	require.InEpsilon(t, 3*float64(math.MaxInt64), onlyMetric(t, r.flushed(time.Second)).Sum().DataPoints().At(0).DoubleValue(), 1e-9)
}

// A histogram without a sum, or with one that is not finite, does not affect the sum of the others.
func TestSumsOutliveHistogramsWithout(t *testing.T) {
	for _, k := range []kind{histogram, exponential} {
		for _, sum := range []float64{math.NaN(), math.Inf(1), -1} { // -1 means none
			r := newRig(t, overflowing(1))
			r.send(point{name: "other"})
			start := r.clock
			send := func(i int, n int64, bare bool) {
				r.clock = r.clock.Add(time.Second)
				s := aSeries(i)
				s.kind = k
				md := r.timed(s, start, r.clock, n)
				m := onlyMetricOf(md)
				if k == exponential {
					m.ExponentialHistogram().SetAggregationTemporality(pmetric.AggregationTemporalityCumulative)
					m.ExponentialHistogram().DataPoints().At(0).SetScale(0)
					m.ExponentialHistogram().DataPoints().At(0).Positive().SetOffset(0)
				}
				if bare {
					removeSum(m)
					if sum != -1 {
						setSum(m, sum)
					}
				}
				require.Zero(t, r.consume(md).DataPointCount())
			}
			said := func(count, sum int64) {
				t.Helper()
				v := amount.ValueAt(onlyMetric(t, r.flushed(time.Second)), 0)
				require.Equal(t, []any{uint64(count), true, float64(sum)}, []any{v.Count, v.HasSum, v.Sum})
			}
			send(1, 10, false)
			send(2, 20, true)
			said(30, 10)
			send(1, 15, true)
			said(35, 10)
			send(1, 17, false)
			send(2, 25, false)
			said(42, 42)
			reason := "not_finite"
			if sum == -1 {
				reason = "no_sum"
			}
			require.Equal(t, int64(2), r.unaccounted(reason))
			require.Equal(t, int64(2), r.unaccounted(""))
		}
	}
}

func TestSeriesWithoutAnySumHaveNone(t *testing.T) {
	r := newRig(t, overflowing(1))
	r.send(point{name: "other"})
	for i := range 2 {
		s := aSeries(i)
		s.kind = histogram
		md := r.timed(s, r.clock.Add(time.Millisecond), r.clock.Add(time.Second), 4)
		removeSum(onlyMetricOf(md))
		r.consume(md)
	}
	dp := onlyMetric(t, r.flushed(time.Minute)).Histogram().DataPoints().At(0)
	require.False(t, dp.HasSum())
	require.Equal(t, uint64(8), dp.Count())
	require.Zero(t, r.unaccounted(""))
}

func removeSum(m pmetric.Metric) {
	if m.Type() == pmetric.MetricTypeHistogram {
		m.Histogram().DataPoints().At(0).RemoveSum()
		return
	}
	m.ExponentialHistogram().DataPoints().At(0).RemoveSum()
}

func setSum(m pmetric.Metric, sum float64) {
	if m.Type() == pmetric.MetricTypeHistogram {
		m.Histogram().DataPoints().At(0).SetSum(sum)
		return
	}
	m.ExponentialHistogram().DataPoints().At(0).SetSum(sum)
}

// Two series of different kinds may have the same fingerprint. The second one is excluded, for all pairs of kinds.
func TestKindsAreNotMixed(t *testing.T) {
	all := map[string]func(*rig, int64) pmetric.Metric{}
	for k := range kinds {
		all[string(rune('0'+int(k)))] = func(r *rig, n int64) pmetric.Metric {
			return onlyMetricOf(r.timed(point{name: "m", kind: k}, r.clock.Add(-time.Second), r.clock, n))
		}
	}
	for _, k := range []kind{histogram, exponential} { // and with the other temporality
		all[string(rune('0'+int(k)))+"'"] = func(r *rig, n int64) pmetric.Metric {
			m := onlyMetricOf(r.timed(point{name: "m", kind: k}, r.clock.Add(-time.Second), r.clock, n))
			if k == histogram {
				m.Histogram().SetAggregationTemporality(pmetric.AggregationTemporalityDelta)
			} else {
				m.ExponentialHistogram().SetAggregationTemporality(pmetric.AggregationTemporalityCumulative)
			}
			return m
		}
	}
	for a, first := range all {
		for b, second := range all {
			for _, other := range []uint64{1, 2} { // of the same series, or only of the same output
				r := newRig(t, overflowing(1, func(rule *RuleConfig) { rule.Exceed.Gauge = "last" }))
				send := func(m pmetric.Metric, fp, to uint64) amount.Loss {
					r.clock = r.clock.Add(time.Second)
					build := func() *overflow.Output {
						out := &overflow.Output{Data: pmetric.NewMetrics(), Cost: overflow.OutputCost}
						out.Metric = out.Data.ResourceMetrics().AppendEmpty().ScopeMetrics().AppendEmpty().Metrics().AppendEmpty()
						amount.EmptyPoint(out.Metric, m)
						return out
					}
					return addTo(r.Overflow, to, overflow.Arrival{Metric: m, FP: fp, Limit: r.Rules.Policy.Limits[0], Now: r.clock.UnixNano()}, 0, build)
				}
				r.clock = r.clock.Add(time.Minute)
				send(first(r, 3), 1, 5)
				lost := send(second(r, 4), other, 5)
				send(first(r, 5), 1, 5)
				require.Equal(t, a != b, lost == amount.LossKind, "%s and %s: %d", a, b, lost)
				for _, s := range r.Overflow.Flush(1, r.clock) {
					require.Equal(t, 1, s.Points)
				}
			}
		}
	}
}

// That a series is a member of another output is also detected at the commit.
func TestKindsAreComparedAgainAtTheCommit(t *testing.T) {
	r := newRig(t, overflowing(1))
	r.clock = r.clock.Add(time.Minute)
	var batches [2]overflow.Staged
	var lost [amount.Losses]int64
	for i, k := range []kind{cumulative, histogram} { // two batches at the same time, of two series with one fingerprint
		m := onlyMetricOf(r.timed(point{name: "m", kind: k}, r.clock.Add(-time.Second), r.clock, 5))
		require.Equal(t, amount.LossNone, r.Overflow.Stage(&batches[i], uint64(i), &overflow.Arrival{Metric: m, FP: 9, Limit: r.Rules.Policy.Limits[0]}, func() *overflow.Output {
			out := &overflow.Output{Data: pmetric.NewMetrics(), Cost: overflow.OutputCost}
			out.Metric = out.Data.ResourceMetrics().AppendEmpty().ScopeMetrics().AppendEmpty().Metrics().AppendEmpty()
			amount.EmptyPoint(out.Metric, m)
			return out
		}))
	}
	for i := range batches {
		r.Overflow.Commit(&overflow.Settlement{Staged: &batches[i], Now: r.clock, Lost: &lost, Placed: func(uint64) bool { return false }})
	}
	require.Equal(t, []int64{1, 1}, []int64{lost[amount.LossNone], lost[amount.LossKind]})
	require.Len(t, r.Overflow.Outputs, 1, "nothing was added to the other one")
	require.Equal(t, pcommon.Timestamp(r.clock.UnixNano()), everybody(r.Overflow)[9].Time)
}

// A point from the far future does not make all later points count as late.
func TestOnePointAheadOfItsTime(t *testing.T) {
	r := newRig(t, overflowing(1))
	r.send(point{name: "other"})
	start := r.clock
	s := aSeries(1)
	s.kind = cumulative
	send := func(n int64, ahead time.Duration) {
		r.clock = r.clock.Add(time.Minute)
		r.consume(r.timed(s, start, r.clock.Add(ahead), n))
	}
	send(10, 0)
	send(20, 10*365*24*time.Hour)
	for i := range 70 {
		send(int64(21+i), 0)
	}
	n, _ := reading(onlyMetric(t, r.flushed(time.Second)), 0)
	require.Equal(t, int64(90), n)
}
