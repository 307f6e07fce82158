// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package slab

import (
	"math"
	"math/rand/v2"
	"runtime"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"
)

// writer is the common interface of Slabs and pdata's own API.
type writer interface {
	Reserve(into pcommon.Map, n int)
	PutStr(into pcommon.Map, key, value string)
	PutInt(into pcommon.Map, key string, value int64)
	AppendGauge(to pmetric.MetricSlice, n int) (pmetric.Metric, pmetric.NumberDataPointSlice)
	AppendSum(to pmetric.MetricSlice, n int) (pmetric.Metric, pmetric.NumberDataPointSlice)
	AppendNumber(to pmetric.NumberDataPointSlice) pmetric.NumberDataPoint
	SetInt(of pmetric.NumberDataPoint, value int64)
	SetDouble(of pmetric.NumberDataPoint, value float64)
	AppendHistogram(to pmetric.MetricSlice, n int) (pmetric.Metric, pmetric.HistogramDataPointSlice)
	AppendBuckets(to pmetric.HistogramDataPointSlice, bounds []float64) pmetric.HistogramDataPoint
	AppendSummary(to pmetric.MetricSlice, n int) (pmetric.Metric, pmetric.SummaryDataPointSlice)
	AppendQuantiles(to pmetric.SummaryDataPointSlice, n int) pmetric.SummaryDataPoint
	ReserveExemplars(into pmetric.ExemplarSlice, n int)
	SetExemplar(of pmetric.Exemplar, value float64)
}

// api is the oracle.
type api struct{}

func (api) Reserve(pcommon.Map, int)                            {}
func (api) PutStr(into pcommon.Map, key, value string)          { into.PutStr(key, value) }
func (api) PutInt(into pcommon.Map, key string, value int64)    { into.PutInt(key, value) }
func (api) SetInt(of pmetric.NumberDataPoint, value int64)      { of.SetIntValue(value) }
func (api) SetDouble(of pmetric.NumberDataPoint, value float64) { of.SetDoubleValue(value) }
func (api) AppendGauge(to pmetric.MetricSlice, n int) (pmetric.Metric, pmetric.NumberDataPointSlice) {
	return appendGauge(to, n)
}

func (api) AppendSum(to pmetric.MetricSlice, n int) (pmetric.Metric, pmetric.NumberDataPointSlice) {
	return appendSum(to, n)
}

func (api) AppendHistogram(to pmetric.MetricSlice, n int) (pmetric.Metric, pmetric.HistogramDataPointSlice) {
	return appendHistogram(to, n)
}

func (api) AppendBuckets(to pmetric.HistogramDataPointSlice, bounds []float64) pmetric.HistogramDataPoint {
	return appendBuckets(to, bounds)
}

func (api) AppendSummary(to pmetric.MetricSlice, n int) (pmetric.Metric, pmetric.SummaryDataPointSlice) {
	return appendSummary(to, n)
}

func (api) AppendQuantiles(to pmetric.SummaryDataPointSlice, n int) pmetric.SummaryDataPoint {
	return appendQuantiles(to, n)
}

func (api) ReserveExemplars(into pmetric.ExemplarSlice, n int) { into.EnsureCapacity(n) }
func (api) SetExemplar(of pmetric.Exemplar, value float64)     { of.SetDoubleValue(value) }

func (api) AppendNumber(to pmetric.NumberDataPointSlice) pmetric.NumberDataPoint {
	return to.AppendEmpty()
}

// script writes n random points, the same ones for the same seed.
func script(w writer, seed uint64, n int) pmetric.Metrics {
	random := rand.New(rand.NewPCG(seed, 1))
	md := pmetric.NewMetrics()
	sm := md.ResourceMetrics().AppendEmpty().ScopeMetrics().AppendEmpty()
	_, points := w.AppendGauge(sm.Metrics(), 0)
	for range n {
		if random.IntN(20) == 0 {
			grouped(w, random, sm.Metrics())
		}
		if random.IntN(20) == 0 { // more or fewer points than there is room for
			var m pmetric.Metric
			if random.IntN(2) == 0 {
				m, points = w.AppendGauge(sm.Metrics(), random.IntN(100))
			} else {
				m, points = w.AppendSum(sm.Metrics(), random.IntN(20))
				m.Sum().SetIsMonotonic(true)
				m.Sum().SetAggregationTemporality(pmetric.AggregationTemporalityDelta)
			}
			m.SetName(strconv.FormatUint(random.Uint64(), 36))
			w.Reserve(m.Metadata(), 1)
			w.PutStr(m.Metadata(), "type", "any")
		}
		p := w.AppendNumber(points)
		p.SetTimestamp(pcommon.Timestamp(random.Uint64()))
		p.SetStartTimestamp(pcommon.Timestamp(random.Uint64()))
		p.SetFlags(pmetric.DataPointFlags(random.Uint32()))
		switch random.IntN(5) {
		case 0:
		case 1, 2:
			w.SetInt(p, int64(random.Uint64()))
		default:
			w.SetDouble(p, []float64{random.NormFloat64(), math.Inf(-1), 0}[random.IntN(3)])
		}
		// More or fewer attributes than there is room for.
		w.Reserve(p.Attributes(), random.IntN(128))
		for i := range random.IntN(12) {
			key := strconv.Itoa(i)
			switch random.IntN(4) {
			case 0:
				w.PutInt(p.Attributes(), key, int64(random.Uint64()))
			case 1:
				p.Attributes().PutBool(key, true)
			default:
				w.PutStr(p.Attributes(), key, strconv.FormatUint(random.Uint64(), 36))
			}
		}
	}
	return md
}

// grouped writes a histogram and a summary.
func grouped(w writer, random *rand.Rand, to pmetric.MetricSlice) {
	m, histograms := w.AppendHistogram(to, random.IntN(100))
	m.SetName("h")
	m.Histogram().SetAggregationTemporality(pmetric.AggregationTemporalityCumulative)
	for range random.IntN(100) {
		bounds := make([]float64, random.IntN(100))
		for i := range bounds {
			bounds[i] = float64(i)
		}
		p := w.AppendBuckets(histograms, bounds)
		p.SetCount(random.Uint64())
		for i := range random.IntN(len(bounds) + 1) {
			p.BucketCounts().SetAt(i, random.Uint64())
		}
		w.Reserve(p.Attributes(), 1)
		w.PutStr(p.Attributes(), "kind", "histogram")
		switch random.IntN(5) {
		case 0:
			p.SetSum(1)
		case 1:
			w.ReserveExemplars(p.Exemplars(), random.IntN(80))
			for range random.IntN(80) {
				x := p.Exemplars().AppendEmpty()
				w.SetExemplar(x, random.NormFloat64())
				x.SetTraceID(pcommon.TraceID{1, byte(random.Uint32())})
			}
		case 2:
			p.BucketCounts().Append(3)
			p.ExplicitBounds().Append(4)
		default:
		}
	}
	m, summaries := w.AppendSummary(to, random.IntN(100))
	m.SetName("s")
	for range random.IntN(100) {
		p := w.AppendQuantiles(summaries, random.IntN(80))
		for i := range random.IntN(p.QuantileValues().Len() + 1) {
			p.QuantileValues().At(i).SetValue(random.NormFloat64())
		}
		if random.IntN(5) == 0 {
			p.QuantileValues().AppendEmpty().SetQuantile(1)
		}
		p.SetSum(random.NormFloat64())
		w.Reserve(p.Attributes(), 1)
		w.PutStr(p.Attributes(), "kind", "summary")
	}
}

func encoded(t *testing.T, md pmetric.Metrics) []byte {
	t.Helper()
	b, err := (&pmetric.ProtoMarshaler{}).MarshalMetrics(md)
	require.NoError(t, err)
	return b
}

// TestSlabsHoldWhatPdataHolds: the same, despite garbage collections in between, and changes of data nearby.
func TestSlabsHoldWhatPdataHolds(t *testing.T) {
	const messages = 40
	var s Slabs
	var got []pmetric.Metrics
	for seed := range uint64(messages) {
		got = append(got, script(&s, seed, 200))
		runtime.GC()
	}
	for seed, md := range got {
		if seed%3 == 0 { // the owner of the data may change it
			ruin(md)
			runtime.GC()
		}
	}
	for seed, md := range got {
		want := script(api{}, uint64(seed), 200)
		if seed%3 == 0 {
			ruin(want)
		}
		require.Equal(t, encoded(t, want), encoded(t, md), "message %d", seed)
	}
}

// Data in memory that was released equals data in new memory.
func TestKeptSlabsAreUsedAgain(t *testing.T) {
	s := Kept()
	for seed := range uint64(40) {
		got := script(s, seed, 1+int(seed*37%400))
		runtime.GC()
		require.Equal(t, encoded(t, script(api{}, seed, 1+int(seed*37%400))), encoded(t, got), "message %d", seed)
		if seed%4 > 0 { // otherwise it was kept
			s.Again()
		} else {
			s = Kept()
		}
	}
}

// A value that is changed in place reads as if it was set, whatever it was before, and nothing else changes.
func TestChangesValuesInPlace(t *testing.T) {
	values := map[string]func(pcommon.Value){
		"nothing": func(pcommon.Value) {},
		"string":  func(v pcommon.Value) { v.SetStr("before") },
		"number":  func(v pcommon.Value) { v.SetInt(7) },
		"bool":    func(v pcommon.Value) { v.SetBool(true) },
		"list":    func(v pcommon.Value) { v.SetEmptySlice().AppendEmpty().SetStr("x") },
	}
	for name, set := range values {
		v, copied := pcommon.NewValueEmpty(), pcommon.NewValueEmpty()
		set(v)
		v.CopyTo(copied)
		before := copied.AsRaw()
		ChangeStr(v, "after")
		require.Equal(t, "after", v.Str(), name)
		require.Equal(t, before, copied.AsRaw(), "a copy of %s stays", name)
	}
	for name, set := range map[string]func(pmetric.NumberDataPoint){
		"nothing": func(pmetric.NumberDataPoint) {},
		"double":  func(p pmetric.NumberDataPoint) { p.SetDoubleValue(1) },
		"int":     func(p pmetric.NumberDataPoint) { p.SetIntValue(1) },
	} {
		p, copied := pmetric.NewNumberDataPoint(), pmetric.NewNumberDataPoint()
		set(p)
		p.CopyTo(copied)
		was := copied.ValueType()
		ChangeDouble(p, math.Inf(-1))
		require.Equal(t, pmetric.NumberDataPointValueTypeDouble, p.ValueType(), name)
		require.True(t, math.IsInf(p.DoubleValue(), -1), name)
		require.Equal(t, was, copied.ValueType(), "a copy of %s stays", name)
		require.False(t, math.IsInf(copied.DoubleValue(), -1), "a copy of %s stays", name)
	}
	for name, set := range map[string]func(pmetric.NumberDataPoint){
		"nothing": func(pmetric.NumberDataPoint) {},
		"double":  func(p pmetric.NumberDataPoint) { p.SetDoubleValue(1) },
		"int":     func(p pmetric.NumberDataPoint) { p.SetIntValue(1) },
	} {
		p, copied := pmetric.NewNumberDataPoint(), pmetric.NewNumberDataPoint()
		set(p)
		p.CopyTo(copied)
		was := copied.ValueType()
		ChangeInt(p, math.MinInt64)
		require.Equal(t, pmetric.NumberDataPointValueTypeInt, p.ValueType(), name)
		require.Equal(t, int64(math.MinInt64), p.IntValue(), name)
		require.Equal(t, was, copied.ValueType(), "a copy of %s stays", name)
		require.NotEqual(t, int64(math.MinInt64), copied.IntValue(), "a copy of %s stays", name)
	}
	moved, from := pmetric.NewNumberDataPoint(), pmetric.NewNumberDataPoint()
	from.SetDoubleValue(1)
	from.MoveTo(moved)
	ChangeDouble(from, 2)
	require.InDelta(t, 1, moved.DoubleValue(), 0, "what was moved away is another's")
}

// ruin changes, adds and removes parts.
func ruin(md pmetric.Metrics) {
	metrics := md.ResourceMetrics().At(0).ScopeMetrics().At(0).Metrics()
	for i := range metrics.Len() {
		metrics.At(i).SetDescription("ruined")
		metrics.At(i).Metadata().PutInt("more", 1)
		if metrics.At(i).Type() == pmetric.MetricTypeSum {
			if i%3 == 0 {
				metrics.At(i).SetEmptySummary()
				continue
			}
			metrics.At(i).Sum().DataPoints().RemoveIf(func(p pmetric.NumberDataPoint) bool { return p.Timestamp()%2 == 0 })
			continue
		}
		if ruinGrouped(metrics.At(i)) {
			continue
		}
		points := metrics.At(i).Gauge().DataPoints()
		points.RemoveIf(func(p pmetric.NumberDataPoint) bool { return p.Timestamp()%5 == 0 })
		for j := range points.Len() {
			p := points.At(j)
			p.SetIntValue(int64(j))
			for k, v := range p.Attributes().All() {
				v.SetStr("was " + k)
			}
			p.Attributes().Remove("1")
			for k := range 10 {
				p.Attributes().PutInt("more"+strconv.Itoa(k), int64(k))
			}
			p.Exemplars().AppendEmpty().SetIntValue(1)
		}
		points.AppendEmpty().SetDoubleValue(1)
	}
}

// ruinGrouped changes, adds and removes points of a histogram or a summary.
func ruinGrouped(m pmetric.Metric) bool {
	switch m.Type() {
	case pmetric.MetricTypeHistogram:
		points := m.Histogram().DataPoints()
		points.RemoveIf(func(p pmetric.HistogramDataPoint) bool { return p.Count()%3 == 0 })
		for i := range points.Len() {
			points.At(i).BucketCounts().Append(1, 2)
			points.At(i).ExplicitBounds().Append(3)
			points.At(i).Exemplars().AppendEmpty().SetIntValue(4)
			points.At(i).ExplicitBounds().SetAt(0, 7)
		}
		points.AppendEmpty().SetCount(1)
	case pmetric.MetricTypeSummary:
		points := m.Summary().DataPoints()
		for i := range points.Len() {
			points.At(i).QuantileValues().RemoveIf(func(q pmetric.SummaryDataPointValueAtQuantile) bool { return q.Value() > 0 })
			points.At(i).QuantileValues().AppendEmpty().SetQuantile(0.5)
		}
		points.AppendEmpty().SetCount(1)
	default:
		return false
	}
	return true
}
