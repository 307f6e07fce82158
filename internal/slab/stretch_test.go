// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

//go:build !purego

package slab

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pmetric"
)

// someMetrics returns a gauge with two points and a sum with three.
func someMetrics() pmetric.MetricSlice {
	metrics := pmetric.NewMetricSlice()
	gauge := metrics.AppendEmpty()
	gauge.SetName("gauge")
	gauge.SetUnit("By")
	gauge.SetDescription("what it is")
	gauge.Metadata().PutStr("prometheus.type", "gauge")
	sum := metrics.AppendEmpty()
	sum.SetName("sum")
	sum.SetEmptySum().SetIsMonotonic(true)
	sum.Sum().SetAggregationTemporality(pmetric.AggregationTemporalityCumulative)
	points := gauge.SetEmptyGauge().DataPoints()
	for i := range 5 {
		if i == 2 {
			points = sum.Sum().DataPoints()
		}
		p := points.AppendEmpty()
		p.SetDoubleValue(float64(i))
		p.SetTimestamp(10)
	}
	return metrics
}

func stretchOf(metrics pmetric.MetricSlice) *Stretch {
	s := &Stretch{Metrics: Metrics(metrics)}
	for _, m := range s.Metrics {
		points, _ := m.Numbers()
		s.Points = append(s.Points, points...)
		s.Ends = append(s.Ends, len(s.Points))
	}
	return s
}

func TestWhatAMetricSaysIsRead(t *testing.T) {
	require.True(t, Readable(), "pdata has changed: see layout.go")
	metrics := someMetrics()
	gauge, sum := Metrics(metrics)[0], Metrics(metrics)[1]
	name, unit, description := gauge.Texts()
	require.Equal(t, []string{"gauge", "By", "what it is"}, []string{name, unit, description})
	require.Len(t, gauge.Metadata(), 1)
	monotonic, temporality := sum.Sums()
	require.True(t, monotonic)
	require.Equal(t, int32(pmetric.AggregationTemporalityCumulative), temporality)
	monotonic, temporality = gauge.Sums()
	require.False(t, monotonic)
	require.Zero(t, temporality)
	other := pmetric.NewMetricSlice()
	other.AppendEmpty().SetEmptySummary()
	other.AppendEmpty()
	for _, m := range Metrics(other) {
		_, ok := m.Numbers()
		require.False(t, ok)
	}
}

func TestAPointIsRefilled(t *testing.T) {
	metrics := someMetrics()
	p, n := metrics.At(1).Sum().DataPoints().At(1), stretchOf(metrics).Points[3]
	n.Refill(2.5, 30, 20)
	require.Equal(t, []any{2.5, 30, 20}, []any{p.DoubleValue(), int(p.Timestamp()), int(p.StartTimestamp())})
	bits, at, start, ok := n.Float()
	require.Equal(t, []any{math.Float64bits(2.5), uint64(30), uint64(20), true}, []any{bits, at, start, ok})
	require.True(t, n.IsPlain())
	require.False(t, n.IsEmpty())
	for what, change := range map[string]func(pmetric.NumberDataPoint){
		"flags":     func(p pmetric.NumberDataPoint) { p.SetFlags(pmetric.DefaultDataPointFlags.WithNoRecordedValue(true)) },
		"exemplars": func(p pmetric.NumberDataPoint) { p.Exemplars().AppendEmpty() },
		"integer":   func(p pmetric.NumberDataPoint) { p.SetIntValue(1) },
	} {
		metrics := someMetrics()
		n := stretchOf(metrics).Points[0]
		change(metrics.At(0).Gauge().DataPoints().At(0))
		require.False(t, n.IsPlain(), what)
		_, _, _, ok := n.Float()
		require.False(t, ok, what)
		n.Refill(4, 1, 2) // skips anything other than floats
	}
	empty := pmetric.NewNumberDataPointSlice()
	empty.AppendEmpty()
	require.True(t, Numbers(empty)[0].IsEmpty())
}

// Unwritten points have their values once these are written, and only the first time: later changes are kept.
func TestDeferredValuesAreSettled(t *testing.T) {
	metrics := someMetrics()
	s := stretchOf(metrics)
	says := func() (all []any) {
		for _, m := range metrics.All() {
			var points pmetric.NumberDataPointSlice
			if m.Type() == pmetric.MetricTypeSum {
				points = m.Sum().DataPoints()
			} else {
				points = m.Gauge().DataPoints()
			}
			for _, p := range points.All() {
				all = append(all, p.DoubleValue(), p.Timestamp().AsTime().UnixMilli(), p.StartTimestamp().AsTime().UnixMilli())
			}
		}
		return all
	}
	before := says()
	var want []any
	for i := range s.Points {
		s.Floats = append(s.Floats, Float{Value: float64(i) + 0.5, At: 1_700_000_000_000 + int64(i), Start: int64(i)})
		want = append(want, s.Floats[i].Value, s.Floats[i].At, s.Floats[i].Start)
	}
	s.Settle()
	require.Equal(t, before, says(), "nothing is deferred")
	s.Deferred = true
	s.Settle()
	require.Equal(t, want, says())
	require.False(t, s.Deferred)
	s.Floats[0].Value = 77
	s.Settle()
	require.Equal(t, want, says())
}

func TestAStretchIsThereAsAWholeOrNot(t *testing.T) {
	points := func(m pmetric.Metric) pmetric.NumberDataPointSlice { return m.Sum().DataPoints() }
	for what, change := range map[string]func(pmetric.MetricSlice){
		"nothing":        func(pmetric.MetricSlice) {},
		"another behind": func(m pmetric.MetricSlice) { m.AppendEmpty() },
		"a point less": func(m pmetric.MetricSlice) {
			points(m.At(1)).RemoveIf(func(p pmetric.NumberDataPoint) bool { return p.DoubleValue() == 3 })
		},
		"a point more": func(m pmetric.MetricSlice) { points(m.At(1)).AppendEmpty() },
		"another order": func(m pmetric.MetricSlice) {
			points(m.At(1)).Sort(func(a, b pmetric.NumberDataPoint) bool { return a.DoubleValue() > b.DoubleValue() })
		},
		"a metric less": func(m pmetric.MetricSlice) { m.RemoveIf(func(m pmetric.Metric) bool { return m.Name() == "gauge" }) },
		"another kind":  func(m pmetric.MetricSlice) { m.At(0).SetEmptySummary() },
	} {
		metrics := someMetrics()
		s := stretchOf(metrics)
		s.Metrics = append([]*Metric(nil), s.Metrics...)
		change(metrics)
		require.Equal(t, what == "nothing" || what == "another behind", s.Begins(Metrics(metrics)), what)
	}
}

func TestMetricsArePlacedTogether(t *testing.T) {
	s := stretchOf(someMetrics())
	to := pmetric.NewMetricSlice()
	to.AppendEmpty().SetName("before")
	s.Place(to)
	require.Equal(t, 3, to.Len())
	require.Equal(t, "sum", to.At(2).Name())
	require.True(t, s.Begins(Metrics(to)[1:]))
	require.False(t, s.Begins(Metrics(to)))
}

// While points are unwritten, one metric replaces all of them, wherever they are, until they are requested.
func TestAMetricStandsForOthers(t *testing.T) {
	stretch := func() (s *Stretch) {
		s = stretchOf(someMetrics())
		s.Floats = make([]Float, len(s.Points))
		all := pmetric.NewMetricSlice()
		PlaceNumbers(all.AppendEmpty().SetEmptyGauge().DataPoints(), s.Points)
		s.Stand = Metrics(all)[0]
		return s
	}
	first, second, third := stretch(), stretch(), stretch()
	first.Deferred, third.Deferred = true, true
	md := pmetric.NewMetrics()
	to := md.ResourceMetrics().AppendEmpty().ScopeMetrics().AppendEmpty().Metrics()
	names := func() (all []string) {
		for _, m := range to.All() {
			all = append(all, m.Name())
		}
		return all
	}
	first.Place(to)
	to.AppendEmpty().SetName("loose")
	second.Place(to)
	third.Place(to)
	require.Equal(t, []string{"", "loose", "gauge", "sum", ""}, names())
	require.Equal(t, 15, md.DataPointCount())
	require.True(t, third.StandsAt(Metrics(to)[4]))
	require.False(t, third.StandsAt(Metrics(to)[0]))
	require.False(t, second.StandsAt(Metrics(to)[2]))
	for range 2 {
		third.Unfold()
		require.Equal(t, []string{"", "loose", "gauge", "sum", "gauge", "sum"}, names())
	}
	require.True(t, third.Deferred)
	second.Settle()
	first.Floats[4].Value = 7
	first.Settle()
	require.Equal(t, []string{"gauge", "sum", "loose", "gauge", "sum", "gauge", "sum"}, names())
	require.Equal(t, 15, md.DataPointCount())
	require.InDelta(t, 7, to.At(1).Sum().DataPoints().At(2).DoubleValue(), 0)
	require.False(t, first.StandsAt(Metrics(to)[0]))

	first.Deferred = true
	first.Place(to)
	to.RemoveIf(func(m pmetric.Metric) bool { return m.Name() == "" })
	first.Settle()
	require.Equal(t, 7, to.Len(), "somebody has taken it out")
}
