// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

//go:build !purego

package stencil

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/pdata/xpdata/entity"

	"github.com/godwit-otel/godwit/internal/alloctest"
	"github.com/godwit-otel/godwit/internal/handback/handbacktest"
	"github.com/godwit-otel/godwit/internal/otlpstream/minuszero"
	"github.com/godwit-otel/godwit/internal/racetest"
)

// TestItIsUsable fails when an update of pdata has made the package useless: everything works then, but slower.
func TestItIsUsable(t *testing.T) { require.True(t, usable()) }

// marshal encodes with pdata, but keeps the sign of zeros.
func marshal(t testing.TB, md pmetric.Metrics) []byte {
	t.Helper()
	marked := minuszero.Mark(md)
	if marked != nil {
		md = marked.Metrics
	}
	b, err := (&pmetric.ProtoMarshaler{}).MarshalMetrics(md)
	require.NoError(t, err)
	if marked != nil {
		marked.Restore(b)
	}
	return b
}

// same encodes metrics like the exporter, checks that the result is the same as pdata's, and reports whether they were
// known.
func same(t testing.TB, e *Encoder, md pmetric.Metrics) (known bool) {
	t.Helper()
	want := marshal(t, md)
	got := e.Encode(md)
	if got == nil {
		e.Learn(md, want)
		return false
	}
	if string(want) != string(got.Bytes()) {
		require.Equal(t, want, got.Bytes())
	}
	got.Release()
	return true
}

// fleet generates pages of targets that differ in their names and numbers.
type fleet struct{ random *rand.Rand }

func (f fleet) page(target int) pmetric.Metrics {
	md := pmetric.NewMetrics()
	rm := md.ResourceMetrics().AppendEmpty()
	rm.Resource().Attributes().PutStr("service.instance.id", fmt.Sprintf("10.0.0.%d:9100", target))
	rm.Resource().Attributes().PutInt("server.port", 9100)
	for s := range 2 {
		sm := rm.ScopeMetrics().AppendEmpty()
		sm.Scope().SetName(fmt.Sprintf("scope-%d", s))
		for i := range 12 {
			f.metric(sm.Metrics().AppendEmpty(), fmt.Sprintf("metric_%d_%d", s, i), i)
		}
	}
	f.change(md)
	return md
}

func (f fleet) metric(m pmetric.Metric, name string, kind int) {
	m.SetName(name)
	m.SetDescription(strings.Repeat("about ", kind*4))
	attributes := func(m pcommon.Map, i int) {
		m.PutStr("cpu", fmt.Sprint(i))
		m.PutStr("mode", strings.Repeat("idle", 1+kind*(kind/9)*10))
		if kind == 7 {
			m.PutInt("code", int64(i)<<10)
			m.PutBool("ok", true)
		}
	}
	points := 1 + kind%3
	switch kind % 5 {
	case 0, 1:
		all := m.SetEmptyGauge().DataPoints()
		if kind%5 == 1 {
			m.SetEmptySum().SetIsMonotonic(kind%2 == 0)
			m.Sum().SetAggregationTemporality(pmetric.AggregationTemporalityCumulative)
			all = m.Sum().DataPoints()
		}
		for i := range points {
			p := all.AppendEmpty()
			p.SetDoubleValue(1)
			if kind == 5 {
				p.SetIntValue(1)
			}
			attributes(p.Attributes(), i)
		}
	case 2:
		m.SetEmptyHistogram().SetAggregationTemporality(pmetric.AggregationTemporalityCumulative)
		for i := range points {
			p := m.Histogram().DataPoints().AppendEmpty()
			p.ExplicitBounds().FromRaw([]float64{1, 2, 4})
			p.BucketCounts().FromRaw([]uint64{0, 0, 0, 0})
			p.SetSum(1)
			attributes(p.Attributes(), i)
		}
	case 3:
		for i := range points {
			p := m.SetEmptySummary().DataPoints().AppendEmpty()
			p.QuantileValues().AppendEmpty()
			p.QuantileValues().AppendEmpty().SetQuantile(0.99)
			attributes(p.Attributes(), i)
		}
	default:
		m.SetEmptySum()
		for i := range points {
			attributes(m.Sum().DataPoints().AppendEmpty().Attributes(), i)
		}
	}
}

// value returns a number, now and then zero or not finite.
func (f fleet) value() float64 {
	switch f.random.IntN(20) {
	case 0:
		return 0
	case 1:
		return math.Copysign(0, -1)
	case 2:
		return math.NaN()
	}
	return f.random.NormFloat64() * 1e6
}

// change sets other numbers on all points.
func (f fleet) change(md pmetric.Metrics) {
	at := pcommon.Timestamp(f.random.Int64())
	for _, rm := range md.ResourceMetrics().All() {
		for _, sm := range rm.ScopeMetrics().All() {
			for _, m := range sm.Metrics().All() {
				f.changeMetric(m, at)
			}
		}
	}
}

func (f fleet) changeMetric(m pmetric.Metric, at pcommon.Timestamp) {
	numbers := func(all pmetric.NumberDataPointSlice) {
		for _, p := range all.All() {
			p.SetTimestamp(at)
			p.SetStartTimestamp(at / 2)
			if p.ValueType() == pmetric.NumberDataPointValueTypeInt {
				p.SetIntValue(f.random.Int64())
			} else {
				p.SetDoubleValue(f.value())
			}
		}
	}
	switch m.Type() {
	case pmetric.MetricTypeGauge:
		numbers(m.Gauge().DataPoints())
	case pmetric.MetricTypeSum:
		numbers(m.Sum().DataPoints())
	case pmetric.MetricTypeHistogram:
		for _, p := range m.Histogram().DataPoints().All() {
			p.SetTimestamp(at)
			p.SetSum(f.value())
			p.SetCount(f.random.Uint64N(3))
			for i := range p.BucketCounts().Len() {
				p.BucketCounts().SetAt(i, f.random.Uint64N(3))
			}
		}
	case pmetric.MetricTypeSummary:
		for _, p := range m.Summary().DataPoints().All() {
			p.SetTimestamp(at)
			p.SetSum(f.value())
			p.SetCount(f.random.Uint64N(3))
			for _, q := range p.QuantileValues().All() {
				q.SetValue(f.value())
			}
		}
	default:
	}
}

// disturb changes something other than a number.
func (f fleet) disturb(md pmetric.Metrics) {
	rm := md.ResourceMetrics().At(0)
	sm := rm.ScopeMetrics().At(f.random.IntN(rm.ScopeMetrics().Len()))
	metrics := sm.Metrics()
	some := func() pmetric.Metric { return metrics.At(f.random.IntN(metrics.Len())) }
	point := func() pmetric.NumberDataPoint {
		for {
			switch m := some(); m.Type() {
			case pmetric.MetricTypeGauge:
				return m.Gauge().DataPoints().At(0)
			case pmetric.MetricTypeSum:
				return m.Sum().DataPoints().At(0)
			default:
			}
		}
	}
	switch f.random.IntN(14) {
	case 0:
		gone := some().Name()
		metrics.RemoveIf(func(m pmetric.Metric) bool { return metrics.Len() > 6 && m.Name() == gone })
	case 1:
		f.metric(metrics.AppendEmpty(), "another", f.random.IntN(12))
	case 2:
		metrics.Sort(func(a, b pmetric.Metric) bool { return a.Name() > b.Name() })
	case 3:
		some().SetName("renamed")
	case 4:
		some().SetUnit("By")
	case 5:
		some().SetDescription("")
	case 6:
		point().Attributes().PutStr("cpu", fmt.Sprint(f.random.IntN(30)))
	case 7:
		point().Attributes().PutStr("", "")
	case 8:
		point().Attributes().Clear()
	case 9:
		point().SetFlags(pmetric.DataPointFlags(f.random.Uint32N(300)))
	case 10:
		point().Exemplars().AppendEmpty().SetIntValue(1)
	case 11:
		point().SetIntValue(0)
	case 12:
		some().Metadata().PutStr("key", "value")
	default:
		rm.SetSchemaUrl("schema")
		sm.Scope().Attributes().PutStr("scope", "attribute")
		point().SetTimestamp(0)
	}
}

// TestWhatIsEncodedIsWhatPdataEncodes, over many scrapes of some targets, each of which may be replaced by another one.
func TestWhatIsEncodedIsWhatPdataEncodes(t *testing.T) {
	racetest.Sequential(t)
	known := 0
	for seed := range uint64(100) {
		f := fleet{rand.New(rand.NewPCG(seed, 1))}
		e := NewEncoder([]int64{1 << 20, 6_000, 0}[seed%3])
		var pages []pmetric.Metrics
		for target := range 3 {
			pages = append(pages, f.page(target))
		}
		for range 60 {
			md := pages[f.random.IntN(len(pages))]
			f.change(md)
			if f.random.IntN(2) == 0 {
				quiet(md)
			}
			if f.random.IntN(5) == 0 {
				f.disturb(md)
			}
			if same(t, e, md) {
				known++
			}
			require.LessOrEqual(t, e.Used(), e.shelf.limit)
		}
		all := pmetric.NewMetrics()
		for _, md := range pages {
			md.ResourceMetrics().At(0).CopyTo(all.ResourceMetrics().AppendEmpty())
		}
		all.ResourceMetrics().AppendEmpty()
		same(t, e, all)
		all.MarkReadOnly()
		same(t, e, all)
	}
	require.Greater(t, known, 200)
	require.True(t, same(t, NewEncoder(0), pmetric.NewMetrics()), "nothing is known")
}

// TestKnownMetricsAreCopied, also in requests with many resources, and similar targets share what is known.
func TestKnownMetricsAreCopied(t *testing.T) {
	f := fleet{rand.New(rand.NewPCG(1, 2))}
	e := NewEncoder(1 << 20)
	all := pmetric.NewMetrics()
	for target := range 100 {
		md := f.page(target)
		quiet(md)
		require.False(t, same(t, e, md))
		f.change(md)
		quiet(md)
		require.True(t, same(t, e, md), "page %d", target)
		md.ResourceMetrics().At(0).CopyTo(all.ResourceMetrics().AppendEmpty())
	}
	require.Len(t, e.shelf.byText, 1)
	require.True(t, same(t, e, all))
	all.ResourceMetrics().At(50).ScopeMetrics().At(1).Metrics().At(3).SetUnit("By")
	require.False(t, same(t, e, all))
	require.Len(t, e.shelf.byText, 2)
	require.True(t, same(t, e, all))
}

// TestWhatIsAnotherIsNotTakenForIt: each change is detected.
func TestWhatIsAnotherIsNotTakenForIt(t *testing.T) {
	for seed := range uint64(300) {
		f := fleet{rand.New(rand.NewPCG(seed, 3))}
		e := NewEncoder(1 << 20)
		md := f.page(1)
		quiet(md)
		same(t, e, md)
		require.True(t, same(t, e, md))
		before := marshal(t, md)
		f.disturb(md)
		if len(before) != len(marshal(t, md)) {
			require.False(t, same(t, e, md), "seed %d", seed)
		}
	}
}

// quiet makes sure that no number is omitted.
func quiet(md pmetric.Metrics) {
	for _, sm := range md.ResourceMetrics().At(0).ScopeMetrics().All() {
		for _, m := range sm.Metrics().All() {
			switch m.Type() {
			case pmetric.MetricTypeHistogram:
				for _, p := range m.Histogram().DataPoints().All() {
					p.SetCount(1 + p.Count())
				}
			case pmetric.MetricTypeSummary:
				for _, p := range m.Summary().DataPoints().All() {
					p.SetCount(1 + p.Count())
					p.SetSum(7)
					for _, q := range p.QuantileValues().All() {
						q.SetValue(8)
					}
				}
			default:
			}
		}
	}
}

// TestKnownPagesAllocateNothing except their output, which is reused.
func TestKnownPagesAllocateNothing(t *testing.T) {
	f := fleet{rand.New(rand.NewPCG(1, 2))}
	e := NewEncoder(1 << 20)
	md := f.page(1)
	quiet(md)
	same(t, e, md)
	perRun := alloctest.PerRun(func() { e.Encode(md).Release() })
	require.LessOrEqual(t, perRun, 1.0)
}

// TestNothingIsKept: consumed metrics may be overwritten, and later ones are encoded correctly.
func TestNothingIsKept(t *testing.T) {
	e := NewEncoder(1 << 20)
	for n := range 5 {
		handbacktest.Consume(t, func(md pmetric.Metrics) error { same(t, e, withoutExtras(md)); return nil }, withoutExtras(handbacktest.Metrics(1+n)))
	}
}

// withoutExtras removes what stencils do not support.
func withoutExtras(md pmetric.Metrics) pmetric.Metrics {
	for _, rm := range md.ResourceMetrics().All() {
		rm.ScopeMetrics().At(0).Metrics().RemoveIf(func(m pmetric.Metric) bool {
			if m.Type() == pmetric.MetricTypeSum {
				m.Sum().DataPoints().At(0).Exemplars().RemoveIf(func(pmetric.Exemplar) bool { return true })
			}
			return m.Type() == pmetric.MetricTypeExponentialHistogram
		})
	}
	return md
}

// TestWhatThereIsNoStencilOfIsLeftToPdata, and similar metrics without it are known nevertheless.
func TestWhatThereIsNoStencilOfIsLeftToPdata(t *testing.T) {
	metric := func(md pmetric.Metrics) pmetric.Metric {
		return md.ResourceMetrics().At(0).ScopeMetrics().At(0).Metrics().At(0)
	}
	for name, change := range map[string]func(pmetric.Metrics){
		"a list":           func(md pmetric.Metrics) { md.ResourceMetrics().At(0).Resource().Attributes().PutEmptySlice("args") },
		"a map of a point": func(md pmetric.Metrics) { metric(md).Gauge().DataPoints().At(0).Attributes().PutEmptyMap("map") },
		"bytes": func(md pmetric.Metrics) {
			md.ResourceMetrics().At(0).ScopeMetrics().At(0).Scope().Attributes().PutEmptyBytes("bytes")
		},
		"an entity": func(md pmetric.Metrics) {
			entity.ResourceEntityRefs(md.ResourceMetrics().At(0).Resource()).AppendEmpty().SetType("host")
		},
		"an exponential histogram": func(md pmetric.Metrics) { metric(md).SetEmptyExponentialHistogram() },
		"nothing":                  func(md pmetric.Metrics) { pmetric.NewMetric().CopyTo(metric(md)) },
		"metadata":                 func(md pmetric.Metrics) { metric(md).Metadata().PutStr("key", "value") },
	} {
		t.Run(name, func(t *testing.T) {
			e := NewEncoder(1 << 20)
			plain := withoutExtras(handbacktest.Metrics(1))
			require.False(t, same(t, e, plain))
			require.True(t, same(t, e, plain))
			md := withoutExtras(handbacktest.Metrics(1))
			change(md)
			for range 3 {
				require.False(t, same(t, e, md))
			}
			same(t, e, plain)
			require.True(t, same(t, e, plain))
		})
	}
}

// TestManyEncodeAtATime with different metrics, for the race detector.
func TestManyEncodeAtATime(t *testing.T) {
	e := NewEncoder(12_000)
	var all sync.WaitGroup
	for g := range uint64(4) {
		all.Go(func() {
			f := fleet{rand.New(rand.NewPCG(g, 5))}
			md := f.page(int(g))
			for range 200 {
				f.change(md)
				if f.random.IntN(10) == 0 {
					f.disturb(md)
				}
				same(t, e, md)
			}
		})
	}
	all.Wait()
}

func FuzzEncode(f *testing.F) {
	for n := range 3 {
		f.Add(marshal(f, sample(n)), marshal(f, sample(n+1)))
		f.Add(marshal(f, handbacktest.Metrics(n)), marshal(f, withoutExtras(handbacktest.Metrics(n))))
	}
	f.Add([]byte("\n\x05\x12\x03\x12\x01\n"), []byte{})
	f.Fuzz(func(t *testing.T, one, two []byte) {
		e := NewEncoder(1 << 16)
		for _, b := range [][]byte{one, one, two, one, two, slices.Concat(one, two)} {
			md, err := (&pmetric.ProtoUnmarshaler{}).UnmarshalMetrics(b)
			if err == nil {
				same(t, e, md)
			}
		}
	})
}
