// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package encode

import (
	"fmt"
	"math"
	"math/rand/v2"
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/godwit-otel/godwit/internal/promwrite"

	"github.com/godwit-otel/godwit/exporter/remotewriteexporter/internal/encode/histogram"
)

// generator generates metrics of all kinds, except for what DIFFERENCES.md lists.
type generator struct {
	r       *rand.Rand
	version promwrite.Version
	custom  bool
	serial  int
}

// workload is what stays the same in each round.
type workload []func(rm pmetric.ResourceMetrics, g *generator, at pcommon.Timestamp)

func (g *generator) workload() (s workload) {
	for range 1 + g.r.IntN(4) {
		s = append(s, g.resource())
	}
	return s
}

func (g *generator) mutate(s workload) workload {
	return append(s[:len(s)/2:len(s)/2], g.resource(), g.resource())
}

func (s workload) metrics(g *generator, round int) pmetric.Metrics {
	md := pmetric.NewMetrics()
	at := pcommon.NewTimestampFromTime(epoch.Add(time.Duration(round)*time.Minute + 123456*time.Nanosecond))
	for _, fill := range s {
		fill(md.ResourceMetrics().AppendEmpty(), g, at)
	}
	return md
}

func (g *generator) resource() func(pmetric.ResourceMetrics, *generator, pcommon.Timestamp) {
	g.serial++
	attrs := map[string]any{"service.instance.id": fmt.Sprint("instance-", g.serial)}
	if g.r.IntN(4) > 0 {
		attrs["service.name"] = g.pick("api", "db")
		if g.r.IntN(2) > 0 {
			attrs["service.namespace"] = "shop"
		}
	}
	if g.r.IntN(2) > 0 {
		attrs["host.name"] = "h1"
		attrs["process.pid"] = int64(g.serial)
	}
	type scopeShape struct {
		name, version string
		attrs         map[string]any
		metrics       []func(pmetric.Metric, *generator, pcommon.Timestamp)
	}
	var scopes []scopeShape
	for i := range 1 + g.r.IntN(2) {
		s := scopeShape{name: g.pick("", "lib"), version: g.pick("", "1.2")}
		if g.r.IntN(2) > 0 {
			s.attrs = map[string]any{"tier.x": "gold", "name": "ignored"}
		}
		for j := range 1 + g.r.IntN(8) {
			s.metrics = append(s.metrics, g.metric(fmt.Sprintf("%d.%d.%d", g.serial, i, j)))
		}
		// Always one that cannot be sent.
		s.metrics = append(s.metrics, func(m pmetric.Metric, _ *generator, at pcommon.Timestamp) {
			m.SetName("delta")
			m.SetEmptySum().SetAggregationTemporality(pmetric.AggregationTemporalityDelta)
			m.Sum().DataPoints().AppendEmpty().SetTimestamp(at)
		})
		scopes = append(scopes, s)
	}
	return func(rm pmetric.ResourceMetrics, g *generator, at pcommon.Timestamp) {
		_ = rm.Resource().Attributes().FromRaw(attrs)
		for _, s := range scopes {
			sm := rm.ScopeMetrics().AppendEmpty()
			sm.Scope().SetName(s.name)
			sm.Scope().SetVersion(s.version)
			_ = sm.Scope().Attributes().FromRaw(s.attrs)
			for _, fill := range s.metrics {
				fill(sm.Metrics().AppendEmpty(), g, at)
			}
		}
	}
}

func (g *generator) pick(of ...string) string { return of[g.r.IntN(len(of))] }

func (g *generator) metric(serial string) func(pmetric.Metric, *generator, pcommon.Timestamp) {
	name := g.pick("http.server.duration", "a_total_of", "9lives", "cpu.time", "temp:äöü", "foo__bar_", "ratio.used") + ".n" + serial
	unit := g.pick("", "s", "ms", "By", "1", "%", "{request}", "By/s", "requests/min", "wei$rd")
	help := g.pick("", "What it is.", "Zeile zwei\nünïcode")
	hint := g.pick("", "", "unknown", "info", "stateset", "gauge")
	kind := g.r.IntN(6)
	points := 1 + g.r.IntN(5)
	attrs := make([]map[string]any, points)
	for i := range attrs {
		attrs[i] = map[string]any{"point": int64(i)}
		for _, kv := range []struct {
			key   string
			value any
		}{
			{"http.method", g.pick("GET", "POST", "")},
			{"http_method", g.pick("PUT", "GET")},
			{"1st", "x"},
			{"_hidden", "y"},
			{"a__b", "z"},
			{"flag", g.r.IntN(2) > 0},
			{"share", 0.25 * float64(g.r.IntN(9))},
			{"cluster", "mine"},
			{"job", "theirs"},
			{"ünï", "ö"},
			{"list", []any{"a", int64(1)}},
			{"map", map[string]any{"k": "v<>"}},
			{"bytes", []byte{1, 2}},
		} {
			if g.r.IntN(5) == 0 {
				attrs[i][kv.key] = kv.value
			}
		}
	}
	bounds := make([][]float64, points)
	for i := range bounds {
		for b := 0.005; len(bounds[i]) < g.r.IntN(6); b *= 2.5 {
			bounds[i] = append(bounds[i], b)
		}
	}
	return func(m pmetric.Metric, g *generator, at pcommon.Timestamp) {
		m.SetName(name)
		m.SetUnit(unit)
		m.SetDescription(help)
		if hint != "" {
			m.Metadata().PutStr("prometheus.type", hint)
		}
		switch kind {
		case 0:
			g.numbers(m.SetEmptyGauge().DataPoints(), attrs, at, g.version == promwrite.V2)
		case 1, 2:
			m.SetEmptySum().SetIsMonotonic(kind == 1)
			m.Sum().SetAggregationTemporality(pmetric.AggregationTemporalityCumulative)
			g.numbers(m.Sum().DataPoints(), attrs, at, kind == 1 || g.version == promwrite.V2)
		case 3:
			m.SetEmptyHistogram().SetAggregationTemporality(pmetric.AggregationTemporalityCumulative)
			for i, a := range attrs {
				g.explicit(m.Histogram().DataPoints().AppendEmpty(), a, bounds[i], at)
			}
		case 4:
			m.SetEmptyExponentialHistogram().SetAggregationTemporality(pmetric.AggregationTemporalityCumulative)
			for _, a := range attrs {
				g.exponential(m.ExponentialHistogram().DataPoints().AppendEmpty(), a, at)
			}
		case 5:
			points := m.SetEmptySummary().DataPoints()
			for _, a := range attrs {
				dp := points.AppendEmpty()
				_ = dp.Attributes().FromRaw(a)
				dp.SetTimestamp(at)
				dp.SetCount(g.r.Uint64N(1000))
				dp.SetSum(g.value())
				for _, q := range []float64{0, 0.5, 0.99} {
					v := dp.QuantileValues().AppendEmpty()
					v.SetQuantile(q)
					v.SetValue(g.value())
				}
				dp.SetFlags(g.flags())
			}
		}
	}
}

func (g *generator) value() float64 {
	switch g.r.IntN(8) {
	case 0:
		return 0
	case 1:
		return math.Inf(1)
	case 2:
		return math.NaN()
	case 3:
		return math.Copysign(0, -1)
	default:
		return float64(g.r.IntN(1_000_000)) / 16
	}
}

func (g *generator) flags() pmetric.DataPointFlags {
	return pmetric.DefaultDataPointFlags.WithNoRecordedValue(g.r.IntN(8) == 0)
}

func (g *generator) numbers(points pmetric.NumberDataPointSlice, attrs []map[string]any, at pcommon.Timestamp, exemplars bool) {
	for _, a := range attrs {
		dp := points.AppendEmpty()
		_ = dp.Attributes().FromRaw(a)
		dp.SetTimestamp(at)
		dp.SetStartTimestamp(at - 5e9)
		if g.r.IntN(2) > 0 {
			dp.SetIntValue(g.r.Int64() - g.r.Int64())
		} else {
			dp.SetDoubleValue(g.value())
		}
		dp.SetFlags(g.flags())
		if exemplars {
			g.exemplars(dp.Exemplars(), at)
		}
	}
}

func (g *generator) exemplars(list pmetric.ExemplarSlice, at pcommon.Timestamp) {
	for range g.r.IntN(3) {
		x := list.AppendEmpty()
		x.SetTimestamp(at - pcommon.Timestamp(g.r.Int64N(1e9)))
		if g.r.IntN(2) > 0 {
			x.SetIntValue(int64(g.r.IntN(3)))
		} else {
			x.SetDoubleValue(g.r.Float64())
		}
		if g.r.IntN(2) > 0 {
			x.SetTraceID(pcommon.TraceID{1, 2, byte(g.r.Int())})
			x.SetSpanID(pcommon.SpanID{3, byte(g.r.Int())})
		}
		if g.r.IntN(2) > 0 {
			x.FilteredAttributes().PutStr("user", "someone")
			x.FilteredAttributes().PutInt("size", 12)
		}
		if g.r.IntN(6) == 0 {
			x.FilteredAttributes().PutStr("long", fmt.Sprintf("%0130d", 1))
		}
	}
}

func (g *generator) explicit(dp pmetric.HistogramDataPoint, attrs map[string]any, bounds []float64, at pcommon.Timestamp) {
	_ = dp.Attributes().FromRaw(attrs)
	dp.SetTimestamp(at)
	dp.ExplicitBounds().FromRaw(bounds)
	total := uint64(0)
	for range len(bounds) + 1 {
		n := g.r.Uint64N(4)
		dp.BucketCounts().Append(n)
		total += n
	}
	dp.SetCount(total)
	dp.SetFlags(g.flags())
	if dp.Flags().NoRecordedValue() || g.r.IntN(4) > 0 {
		dp.SetSum(float64(g.r.IntN(1000)) / 8)
	}
	if g.version == promwrite.V1 {
		g.exemplars(dp.Exemplars(), at) // contrib's 2.0 has none on classic histograms
	}
}

func (g *generator) exponential(dp pmetric.ExponentialHistogramDataPoint, attrs map[string]any, at pcommon.Timestamp) {
	_ = dp.Attributes().FromRaw(attrs)
	dp.SetTimestamp(at)
	dp.SetScale(int32(g.r.IntN(20)) - 5)
	total := g.r.Uint64N(5)
	dp.SetZeroCount(total)
	if g.r.IntN(2) > 0 {
		dp.SetZeroThreshold(0.001)
	}
	for _, side := range []pmetric.ExponentialHistogramDataPointBuckets{dp.Positive(), dp.Negative()} {
		side.SetOffset(int32(g.r.IntN(2000)) - 1000)
		for range g.r.IntN(30) {
			n := g.r.Uint64N(5)
			if dp.Scale() > histogram.MaxScale {
				n++ // contrib misplaces buckets after an empty group
			} else if g.r.IntN(3) == 0 {
				n = 0
			}
			side.BucketCounts().Append(n)
			total += n
		}
	}
	dp.SetCount(total)
	if g.r.IntN(4) > 0 {
		dp.SetSum(g.r.Float64() * 1000)
	}
	dp.SetFlags(g.flags())
	g.exemplars(dp.Exemplars(), at)
}
