// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package interop

import (
	"context"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/exporter/exportertest"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/godwit-otel/godwit/exporter/otlpstreamexporter"
	"github.com/godwit-otel/godwit/internal/otlpstream/minuszero"
	"github.com/godwit-otel/godwit/receiver/otlpstreamreceiver"
)

// oddFloats are values that an encoding might lose.
var oddFloats = []float64{
	0, math.Copysign(0, -1), math.Copysign(0, -1), 1, 0.1, math.Inf(1), math.Inf(-1), math.SmallestNonzeroFloat64, math.MaxFloat64,
	math.NaN(), math.Float64frombits(0x7ff0000000000002), math.Float64frombits(0xfff8000000000003), math.Float64frombits(0x7fffffffffffffff),
}

// oddMetrics returns odd values in all float fields, some of which are missing where they are optional.
func oddMetrics(r *rand.Rand, at pcommon.Timestamp) pmetric.Metrics {
	odd := func() float64 { return oddFloats[r.IntN(len(oddFloats))] }
	maybe := func(set func(float64)) {
		if r.IntN(3) > 0 {
			set(odd())
		}
	}
	md := pmetric.NewMetrics()
	sm := md.ResourceMetrics().AppendEmpty().ScopeMetrics().AppendEmpty()
	for range 5 {
		g := sm.Metrics().AppendEmpty().SetEmptyGauge().DataPoints().AppendEmpty()
		g.SetTimestamp(at)
		g.SetDoubleValue(odd())
		h := sm.Metrics().AppendEmpty().SetEmptyHistogram().DataPoints().AppendEmpty()
		h.SetTimestamp(at)
		maybe(h.SetSum)
		maybe(h.SetMin)
		maybe(h.SetMax)
		x := sm.Metrics().AppendEmpty().SetEmptyExponentialHistogram().DataPoints().AppendEmpty()
		x.SetTimestamp(at)
		maybe(x.SetSum)
		maybe(x.SetMin)
		maybe(x.SetMax)
		x.SetZeroThreshold(odd())
		s := sm.Metrics().AppendEmpty().SetEmptySummary().DataPoints().AppendEmpty()
		s.SetTimestamp(at)
		s.SetSum(odd())
		for i := range 3 {
			q := s.QuantileValues().AppendEmpty()
			q.SetQuantile([]float64{math.Copysign(0, -1), 0.5, 1}[i])
			q.SetValue(odd())
		}
	}
	return md
}

// bitByBit encodes without omitting anything.
func bitByBit(t *testing.T, md pmetric.Metrics) string {
	t.Helper()
	marked := minuszero.Mark(md)
	if marked == nil {
		return marshal(t, md)
	}
	b := []byte(marshal(t, marked.Metrics))
	marked.Restore(b)
	return string(b)
}

// TestFloatsArriveBitByBit: whether metrics are new, known, or a delta, over each transport.
func TestFloatsArriveBitByBit(t *testing.T) {
	const rounds = 60
	for _, mode := range []string{"stream", "unary"} {
		t.Run(mode, func(t *testing.T) {
			bothTransports(t, func(t *testing.T, transport string) {
				var to sink
				factory := otlpstreamexporter.NewFactory()
				cfg := testConfig(transport, startReceiver(t, otlpstreamreceiver.NewFactory(), transport, &to, nil),
					func(c *otlpstreamexporter.Config) { c.Mode = mode })
				require.NoError(t, cfg.Validate())
				e, err := factory.CreateMetrics(context.Background(), exportertest.NewNopSettings(factory.Type()), cfg)
				require.NoError(t, err)
				require.NoError(t, e.Start(context.Background(), componenttest.NewNopHost()))
				want := map[string]int{}
				for n := range uint64(rounds) {
					md := oddMetrics(rand.New(rand.NewPCG(n/2, 1)), pcommon.Timestamp(1+n))
					want[bitByBit(t, md)]++
					require.NoError(t, e.ConsumeMetrics(context.Background(), md))
				}
				require.NoError(t, e.Shutdown(context.Background()))
				got := map[string]int{}
				for _, md := range to.metrics.AllMetrics() {
					got[bitByBit(t, md)]++
				}
				require.Len(t, got, rounds)
				require.Equal(t, want, got)
			})
		})
	}
}
