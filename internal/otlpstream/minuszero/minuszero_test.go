// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package minuszero

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pmetric"
)

var minus = math.Copysign(0, -1)

// odd are values that an encoding might lose.
var odd = []float64{
	0, minus, 1, -1, math.Inf(1), math.Inf(-1), math.NaN(), math.SmallestNonzeroFloat64, math.MaxFloat64,
	math.Float64frombits(0x7ff0000000000002), math.Float64frombits(0xfff8000000000001), math.Float64frombits(0x7fffffffffffffff),
}

// oddMetrics returns values of all kinds in all float fields.
func oddMetrics(value func() float64) pmetric.Metrics {
	md := pmetric.NewMetrics()
	for range 2 {
		sm := md.ResourceMetrics().AppendEmpty().ScopeMetrics().AppendEmpty()
		sm.Metrics().AppendEmpty().SetEmptyGauge().DataPoints().AppendEmpty().SetDoubleValue(value())
		x := sm.Metrics().AppendEmpty().SetEmptySum().DataPoints().AppendEmpty()
		x.SetDoubleValue(value())
		x.Exemplars().AppendEmpty().SetDoubleValue(value())
		x.Attributes().PutDouble("key", value())
		h := sm.Metrics().AppendEmpty().SetEmptyHistogram().DataPoints().AppendEmpty()
		h.SetSum(value())
		h.SetMin(value())
		h.SetMax(value())
		h.ExplicitBounds().FromRaw([]float64{value(), value()})
		for range 2 {
			e := sm.Metrics().AppendEmpty().SetEmptyExponentialHistogram().DataPoints().AppendEmpty()
			e.SetSum(value())
			e.SetMin(value())
			e.SetMax(value())
			e.SetZeroThreshold(value())
			s := sm.Metrics().AppendEmpty().SetEmptySummary().DataPoints().AppendEmpty()
			s.SetSum(value())
			for range 3 {
				q := s.QuantileValues().AppendEmpty()
				q.SetQuantile(value())
				q.SetValue(value())
			}
		}
	}
	return md
}

// floatsOf returns the bits of all of them.
func floatsOf(md pmetric.Metrics) (all []uint64) {
	add := func(values ...float64) {
		for _, v := range values {
			all = append(all, math.Float64bits(v))
		}
	}
	for _, rm := range md.ResourceMetrics().All() {
		for _, m := range rm.ScopeMetrics().At(0).Metrics().All() {
			switch m.Type() {
			case pmetric.MetricTypeGauge:
				add(m.Gauge().DataPoints().At(0).DoubleValue())
			case pmetric.MetricTypeSum:
				p := m.Sum().DataPoints().At(0)
				key, _ := p.Attributes().Get("key")
				add(p.DoubleValue(), p.Exemplars().At(0).DoubleValue(), key.Double())
			case pmetric.MetricTypeHistogram:
				p := m.Histogram().DataPoints().At(0)
				add(p.Sum(), p.Min(), p.Max())
				add(p.ExplicitBounds().AsRaw()...)
			case pmetric.MetricTypeExponentialHistogram:
				p := m.ExponentialHistogram().DataPoints().At(0)
				add(p.Sum(), p.Min(), p.Max(), p.ZeroThreshold())
			case pmetric.MetricTypeSummary:
				p := m.Summary().DataPoints().At(0)
				add(p.Sum())
				for _, q := range p.QuantileValues().All() {
					add(q.Quantile(), q.Value())
				}
			default:
			}
		}
	}
	return all
}

func encode(t *testing.T, md pmetric.Metrics) []byte {
	t.Helper()
	b, err := (&pmetric.ProtoMarshaler{}).MarshalMetrics(md)
	require.NoError(t, err)
	return b
}

func decode(t *testing.T, b []byte) pmetric.Metrics {
	t.Helper()
	md, err := (&pmetric.ProtoUnmarshaler{}).UnmarshalMetrics(b)
	require.NoError(t, err)
	return md
}

// TestEachFloatArrivesAsItIs, whatever its value and field are.
func TestEachFloatArrivesAsItIs(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	marks := 0
	for range 2000 {
		few := odd[r.IntN(len(odd)):]
		md := oddMetrics(func() float64 { return few[r.IntN(len(few))] })
		md.MarkReadOnly()
		want := floatsOf(md)
		m := Mark(md)
		if m == nil {
			require.Equal(t, want, floatsOf(decode(t, encode(t, md))), "nothing is lost")
			continue
		}
		marks++
		require.NotEqual(t, want, floatsOf(decode(t, encode(t, md))), "what is lost without")
		b := encode(t, m.Metrics)
		m.Restore(b)
		require.Equal(t, want, floatsOf(decode(t, b)))
		require.Equal(t, want, floatsOf(md), "it is left as it was")
	}
	require.Greater(t, marks, 100)
	require.Less(t, marks, 1900)
}

// TestOnlyWhatWouldBeLostIsMarked: most fields are written with any value.
func TestOnlyWhatWouldBeLostIsMarked(t *testing.T) {
	md := oddMetrics(func() float64 { return minus })
	for v, set := range numbers(md) {
		require.Equal(t, uint64(sign), math.Float64bits(v))
		set(0)
	}
	require.Nil(t, Mark(md))
	require.Nil(t, Mark(pmetric.NewMetrics()))
}
