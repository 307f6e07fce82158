// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package cardinalityprocessor

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/godwit-otel/godwit/internal/alloctest"
	"github.com/godwit-otel/godwit/internal/racetest"
	"github.com/godwit-otel/godwit/processor/cardinalityprocessor/internal/amount"
	"github.com/godwit-otel/godwit/processor/cardinalityprocessor/internal/policy"
)

// TestHistogramsGoOnInTheirMemory: a member's new value overwrites its last one, and its growth is in the memory of the
// batch.
func TestHistogramsGoOnInTheirMemory(t *testing.T) {
	racetest.Sequential(t)
	const points = 1000
	r := newRig(t, func(c *Config) { overflowing(1)(c); c.Mode = policy.ModeDryRun }) // the same points are sent again
	r.send(point{name: "other"})
	md := metricsOf(point{name: "m", kind: histogram, attrs: attrs{"id": int64(0)}})
	m := onlyMetricOf(md)
	for i := range points {
		if i > 0 {
			amount.AppendPointOf(m, m)
			amount.AttributesAt(m, i).PutInt("id", int64(i))
		}
		setPoint(m, i, r.clock, r.clock, 1)
	}
	at := r.clock
	next := func() {
		at = at.Add(time.Millisecond)
		for i := range points {
			amount.SetTimesAt(m, i, pcommon.NewTimestampFromTime(r.clock), pcommon.NewTimestampFromTime(at))
		}
		_, _ = r.process(t.Context(), md)
	}
	next()
	require.Less(t, alloctest.PerRun(next), points/10.)
	require.Equal(t, int64(points), r.gauge("overflow_members", ""))
}

// BenchmarkOverflow measures points that are added to a series made here: deltas, without further state, and counters
// and histograms, with their last values.
func BenchmarkOverflow(b *testing.B) {
	for _, c := range []struct {
		name string
		kind kind
	}{{"delta", delta}, {"cumulative", cumulative}, {"histogram", histogram}} {
		b.Run(c.name, func(b *testing.B) {
			const points = 10_000
			r := newRig(b, overflowing(1))
			r.send(point{name: "other"})
			template, md := pmetric.NewMetrics(), pmetric.NewMetrics()
			appendPoint(template, point{name: "m", kind: c.kind, attrs: attrs{"http.route": "/orders", "id": int64(0)}})
			m := template.ResourceMetrics().At(0).ScopeMetrics().At(0).Metrics().At(0)
			for i := 1; i < points; i++ {
				amount.AppendPointOf(m, m)
				amount.AttributesAt(m, i).PutInt("id", int64(i))
			}
			value, start := int64(0), r.clock
			b.ReportAllocs()
			for b.Loop() {
				b.StopTimer()
				r.clock = r.clock.Add(time.Second)
				value++
				for i := range points {
					setPoint(m, i, start, r.clock, value)
				}
				template.CopyTo(md)
				b.StartTimer()
				_, _ = r.process(b.Context(), md)
			}
			require.Zero(b, md.DataPointCount())
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/points, "ns/point")
		})
	}
}

func setPoint(m pmetric.Metric, i int, start, at time.Time, n int64) {
	s, t := pcommon.NewTimestampFromTime(start), pcommon.NewTimestampFromTime(at)
	if m.Type() == pmetric.MetricTypeSum {
		dp := m.Sum().DataPoints().At(i)
		dp.SetStartTimestamp(s)
		dp.SetTimestamp(t)
		dp.SetIntValue(n)
		return
	}
	dp := m.Histogram().DataPoints().At(i)
	dp.SetStartTimestamp(s)
	dp.SetTimestamp(t)
	dp.SetCount(uint64(2 * n))
	dp.SetSum(float64(n))
	dp.ExplicitBounds().FromRaw([]float64{1, 2, 5, 10})
	dp.BucketCounts().FromRaw([]uint64{uint64(n), 0, 0, uint64(n), 0})
}
