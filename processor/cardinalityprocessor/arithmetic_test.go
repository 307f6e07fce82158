// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package cardinalityprocessor

import (
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/godwit-otel/godwit/processor/cardinalityprocessor/internal/amount"
	"github.com/godwit-otel/godwit/processor/cardinalityprocessor/internal/moment"
	"github.com/godwit-otel/godwit/processor/cardinalityprocessor/internal/policy"
)

func TestCumulativeOverflow(t *testing.T) {
	for _, k := range []kind{cumulative, histogram, summary} {
		r := newRig(t, overflowing(1))
		begin := r.clock
		r.send(point{name: "other"})
		send := func(i int, start time.Time, n int64) {
			p := aSeries(i)
			p.kind = k
			require.Zero(t, r.consume(r.timed(p, start, r.clock, n)).DataPointCount())
		}
		total := func() int64 {
			m := onlyMetric(t, r.flushed(time.Second))
			require.Equal(t, begin.UnixNano(), amount.WhenAt(m, 0).Start.AsTime().UnixNano())
			n, _ := reading(m, 0)
			return n
		}
		r.clock = r.clock.Add(time.Minute)
		start := r.clock.Add(-time.Second)
		send(1, start, 10)
		send(2, begin.Add(-time.Hour), 1000) // older than the output: counted from here on
		send(3, time.Time{}, 500)            // unknown start: counted from here on
		require.Equal(t, int64(10), total())
		send(1, start, 15)
		send(2, begin.Add(-time.Hour), 1001)
		send(3, time.Time{}, 502)
		require.Equal(t, int64(10+5+1+2), total())
		require.Equal(t, int64(18), total(), "cumulative points are sent each time")
		send(1, start, 15) // the same again
		r.clock = r.clock.Add(-time.Minute)
		send(1, start, 14) // late: not a reset
		r.clock = r.clock.Add(2 * time.Minute)
		require.Equal(t, int64(18), total())
		send(1, r.clock.Add(-time.Second), 4) // restarted
		send(3, time.Time{}, 3)               // the same, without a new start
		anew := r.clock
		send(2, anew, 1000) // restarted at an unknown time
		require.Equal(t, int64(18+4+3), total())
		r.clock = r.clock.Add(time.Second)
		send(2, anew, 1005)
		require.Equal(t, int64(25+5), total())
		got, err := r.telemetry.GetMetric("otelcol_processor_cardinality_unaccounted_points")
		require.NoError(t, err)
		require.Equal(t, int64(3), sumOf(got, attrs{"reason": "baseline"}))
		require.Equal(t, int64(1), sumOf(got, attrs{"reason": "out_of_order"}))
	}
}

// A cumulative series that overflows stays there as long as there is no place for it, and gets its place immediately
// when it restarts.
func TestCumulativeOverflowIsSticky(t *testing.T) {
	r := newRig(t, overflowing(1))
	other := point{name: "other"}
	r.send(other)
	start := r.clock
	send := func(start time.Time, n int64) int {
		r.clock = r.clock.Add(time.Second)
		return r.consume(r.timed(aSeries(1), start, r.clock, n)).DataPointCount()
	}
	for i := range 2 * moment.IdleEpochs {
		r.epochs(1)
		r.send(other)
		require.Zero(t, send(start, int64(6+i)))
		r.flush(t.Context())
	}
	r.Limiter.End(fingerprintsOf(metricsOf(other))[0], 0, r.Limiter.Now())
	require.Equal(t, 1, send(r.clock, 3), "it began anew: now it may have the place")
	require.Zero(t, r.gauge("overflow_members", ""))
	require.Equal(t, 1, send(r.clock, 4))
}

func TestUpDownOverflowIsTheSumOfTheLiving(t *testing.T) {
	r := newRig(t, overflowing(1))
	r.send(point{name: "other"})
	send := func(i int, n int64, stale bool) {
		r.clock = r.clock.Add(time.Second)
		p := aSeries(i)
		p.kind = upDown
		md := r.timed(p, time.Time{}, r.clock, n)
		dp := md.ResourceMetrics().At(0).ScopeMetrics().At(0).Metrics().At(0).Sum().DataPoints().At(0)
		dp.SetFlags(dp.Flags().WithNoRecordedValue(stale))
		r.consume(md)
	}
	total := func() int64 { return onlyMetric(t, r.flushed(time.Second)).Sum().DataPoints().At(0).IntValue() }
	send(1, 10, false)
	send(2, 20, false)
	require.Equal(t, int64(30), total())
	send(1, 4, false)
	require.Equal(t, int64(24), total())
	send(2, 0, true)
	require.Equal(t, int64(4), total())
	r.epochs(moment.IdleEpochs)
	send(3, 7, false)
	r.epochs(3)
	r.flush(t.Context())
	require.Equal(t, int64(7), total(), "idle members are gone")
	r.idle()
	r.flush(t.Context())
	require.Zero(t, r.flushed(time.Second).DataPointCount())
	outputs, members, used := r.Overflow.Sizes()
	require.Zero(t, int64(outputs+members)+used)
}

// The sum of the living series is not affected by those that are gone.
func TestUpDownOverflowForgetsNothingForLargeValues(t *testing.T) {
	r := newRig(t, overflowing(1))
	r.send(point{name: "other"})
	send := func(i int, n float64) {
		r.clock = r.clock.Add(time.Second)
		p := aSeries(i)
		p.kind = upDown
		md := r.timed(p, time.Time{}, r.clock, 0)
		onlyMetricOf(md).Sum().DataPoints().At(0).SetDoubleValue(n)
		r.consume(md)
	}
	total := func() float64 { return onlyMetric(t, r.flushed(time.Second)).Sum().DataPoints().At(0).DoubleValue() }
	send(1, 1)
	send(2, 1e17)
	send(3, -3)
	send(2, 0)
	require.InDelta(t, -2, total(), 0)
	for range 1000 {
		send(4, 1e15)
		send(5, 0.1)
		send(4, 0.7)
		send(5, 0)
	}
	require.InDelta(t, -2+0.7, total(), 1e-12)
}

func TestGaugesByChoice(t *testing.T) {
	f := func(mode string, want float64) {
		t.Helper()
		r := newRig(t, overflowing(1, func(rule *RuleConfig) { rule.Exceed.Gauge = mode }))
		r.send(point{name: "other"})
		for i, v := range []float64{4, 1, 9, 2} {
			p := aSeries(i)
			p.kind, p.value = gauge, v
			require.Empty(t, r.send(p))
		}
		md := r.flushed(time.Second)
		if mode == "drop" {
			require.Zero(t, md.DataPointCount())
			require.Equal(t, int64(4), r.rejected("r", "max_series", "drop"))
			return
		}
		require.InDelta(t, want, onlyMetric(t, md).Gauge().DataPoints().At(0).DoubleValue(), 0)
		require.Zero(t, r.flushed(time.Second).DataPointCount())
	}
	f("drop", 0)
	f("last", 2)
	f("min", 1)
	f(policy.NameMax, 9)
	f(policy.NameMean, 4)
}

// Histograms with different bounds are merged into the bounds that all of them have, where each has an exact count. A
// histogram with none of these bounds would reduce all others to a count: it is excluded.
func TestHistogramsComeTogetherInCommonBounds(t *testing.T) {
	for _, temporality := range []pmetric.AggregationTemporality{pmetric.AggregationTemporalityDelta, pmetric.AggregationTemporalityCumulative} {
		r := newRig(t, overflowing(1))
		r.send(point{name: "other"})
		send := func(i int, bounds []float64, counts []uint64) {
			md := r.timed(point{name: "h", kind: histogram, attrs: attrs{"i": int64(i)}}, r.clock, r.clock.Add(time.Second), 3)
			m := md.ResourceMetrics().At(0).ScopeMetrics().At(0).Metrics().At(0).Histogram()
			m.SetAggregationTemporality(temporality)
			m.DataPoints().At(0).ExplicitBounds().FromRaw(bounds)
			m.DataPoints().At(0).BucketCounts().FromRaw(counts)
			r.consume(md)
		}
		send(1, []float64{1, 2, 3}, []uint64{1, 1, 0, 1})
		send(2, []float64{1, 2, 3}, []uint64{0, 1, 1, 1})
		send(3, []float64{1, 1.5, 3, 4}, []uint64{0, 1, 1, 1, 0})
		send(4, []float64{1, 2, 3}, []uint64{1, 1, 1}) // a count is missing
		send(5, []float64{2, 1, 3}, []uint64{1, 1, 1, 0})
		send(6, []float64{1, math.NaN(), 3}, []uint64{1, 1, 1, 0})
		send(7, []float64{7, 8}, []uint64{1, 1, 1})
		send(8, nil, nil)
		dp := onlyMetric(t, r.flushed(time.Second)).Histogram().DataPoints().At(0)
		require.Equal(t, []uint64{1, 5, 3}, dp.BucketCounts().AsRaw())
		require.Equal(t, []float64{1, 3}, dp.ExplicitBounds().AsRaw())
		require.Equal(t, uint64(9), dp.Count())
		require.Equal(t, int64(5), r.rejected("r", "max_series", "drop"))
		require.Equal(t, int64(5), r.unaccounted("bounds"))
	}
}

// The last values of inputs are kept with the bounds of their time: growth is also computed correctly after bounds are
// removed.
func TestCumulativeHistogramsGoOnInFewerBounds(t *testing.T) {
	r := newRig(t, overflowing(1))
	r.send(point{name: "other"})
	start := r.clock
	send := func(i int, bounds []float64, counts ...uint64) {
		r.clock = r.clock.Add(time.Second)
		md := r.timed(point{name: "h", kind: histogram, attrs: attrs{"i": int64(i)}}, start, r.clock, 0)
		dp := onlyMetricOf(md).Histogram().DataPoints().At(0)
		dp.ExplicitBounds().FromRaw(bounds)
		dp.BucketCounts().FromRaw(counts)
		for _, n := range counts {
			dp.SetCount(dp.Count() + n)
		}
		require.Zero(t, r.consume(md).DataPointCount())
	}
	total := func(bounds []float64, counts ...uint64) {
		t.Helper()
		dp := onlyMetric(t, r.flushed(time.Second)).Histogram().DataPoints().At(0)
		require.Equal(t, bounds, dp.ExplicitBounds().AsRaw())
		require.Equal(t, counts, dp.BucketCounts().AsRaw())
	}
	wide, wider := []float64{1, 2, 5}, []float64{1, 2, 5, 10}
	send(1, wider, 1, 1, 1, 1, 1)
	send(2, wider, 2, 0, 0, 0, 0)
	total(wider, 3, 1, 1, 1, 1)
	send(3, wide, 1, 1, 1, 1)
	total(wide, 4, 2, 2, 3)
	send(1, wider, 2, 2, 2, 2, 2) // last seen with the wider bounds
	total(wide, 5, 3, 3, 5)
	send(2, []float64{2, 5}, 2, 1, 0) // its bounds change, but it has not restarted
	total([]float64{2, 5}, 8, 4, 5)
	send(3, wide, 1, 1, 1, 0) // one less: it has restarted, without a new start
	total([]float64{2, 5}, 10, 5, 5)
}
