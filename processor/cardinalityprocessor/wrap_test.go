// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package cardinalityprocessor

import (
	"context"
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/godwit-otel/godwit/processor/cardinalityprocessor/internal/policy"
)

// belowZero sets a count of -n, like a program that subtracts too much from an unsigned number.
func belowZero(m pmetric.Metric, n uint64) {
	switch m.Type() {
	case pmetric.MetricTypeHistogram:
		dp := m.Histogram().DataPoints().At(0)
		dp.SetCount(-n)
		dp.BucketCounts().FromRaw([]uint64{-n, 0, 0})
	case pmetric.MetricTypeExponentialHistogram:
		dp := m.ExponentialHistogram().DataPoints().At(0)
		dp.SetCount(-n)
		dp.Positive().BucketCounts().FromRaw([]uint64{-n})
	default:
		m.Summary().DataPoints().At(0).SetCount(-n)
	}
}

// TestCountsDoNotBeginAgain: a point with a count below 0 is excluded, and all others stay the same.
func TestCountsDoNotBeginAgain(t *testing.T) {
	for _, k := range []kind{histogram, exponential, summary} {
		r := newRig(t, overflowing(1))
		r.send(point{name: "other"})
		start, said := r.clock, int64(0)
		send := func(n int64, below uint64) {
			r.clock = r.clock.Add(time.Second)
			p := aSeries(1)
			p.kind = k
			md := r.timed(p, start, r.clock, n)
			if below > 0 {
				belowZero(onlyMetricOf(md), below)
			}
			require.Zero(t, r.consume(md).DataPointCount())
		}
		total := func() int64 {
			n, _ := reading(onlyMetric(t, r.flushed(time.Second)), 0)
			if k == exponential { // deltas
				said += n
				return said
			}
			return n
		}
		send(10, 0)
		send(0, 1)
		require.Equal(t, int64(10), total(), k)
		require.Equal(t, int64(1), r.unaccounted("not_finite"), k)
		if k != exponential {
			send(12, 0)
			require.Equal(t, int64(12), total(), k)
		}
	}
}

// TestMeanIsThatOfWhatWasAdded: a value that would make the sum infinite is not included in the count either.
func TestMeanIsThatOfWhatWasAdded(t *testing.T) {
	r := newRig(t, overflowing(1, func(rule *RuleConfig) { rule.Exceed.Gauge = policy.NameMean }))
	r.send(point{name: "other"})
	md := pmetric.NewMetrics()
	for range 3 {
		p := aSeries(1)
		p.kind, p.value = gauge, math.MaxFloat64
		metricsOf(p).ResourceMetrics().MoveAndAppendTo(md.ResourceMetrics())
	}
	r.consume(md)
	m := onlyMetric(t, r.flushed(time.Second))
	require.InEpsilon(t, math.MaxFloat64, m.Gauge().DataPoints().At(0).DoubleValue(), 1e-9)
	require.Equal(t, int64(2), r.unaccounted("not_finite"))
	for i := range 40 { // in all parts
		p := aSeries(i)
		p.kind, p.value = gauge, math.MaxFloat64
		r.send(p)
	}
	m = onlyMetric(t, r.flushed(time.Second))
	require.InEpsilon(t, math.MaxFloat64, m.Gauge().DataPoints().At(0).DoubleValue(), 1e-9)
}

// TestWhatCannotBeTakenBackIsCounted: a sum that was not sent, and would be infinite together with later values, is
// lost and counted.
func TestWhatCannotBeTakenBackIsCounted(t *testing.T) {
	r := newRig(t, overflowing(1))
	r.send(point{name: "other"})
	p := aSeries(1)
	p.kind, p.value = delta, math.MaxFloat64
	r.send(p)
	r.next = during{r.sink, func() {
		for i := range 40 { // in all parts
			p := aSeries(i)
			p.kind, p.value = delta, math.MaxFloat64
			r.send(p)
		}
	}}
	r.flush(t.Context())
	got, err := r.telemetry.GetMetric("otelcol_processor_cardinality_overflow_failed_points")
	require.NoError(t, err)
	require.Equal(t, int64(1), sumOf(got, nil))
	r.next = r.sink
	require.InEpsilon(t, math.MaxFloat64, onlyMetric(t, r.flushed(time.Second)).Sum().DataPoints().At(0).DoubleValue(), 1e-9)
}

// during refuses metrics after calling a function.
type during struct {
	consumer.Metrics

	happens func()
}

func (d during) ConsumeMetrics(context.Context, pmetric.Metrics) error {
	d.happens()
	return errBusy
}
