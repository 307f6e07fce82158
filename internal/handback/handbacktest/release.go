// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

// Package handbacktest tests whether components keep no metrics, as package handback defines it.
package handbacktest

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/godwit-otel/godwit/internal/handback"
)

// Consume makes a component consume metrics, checks that they are unchanged, and overwrites them: if the component kept
// any of them, it no longer has what it was given. The component must accept them.
func Consume(t testing.TB, consume func(pmetric.Metrics) error, md pmetric.Metrics) {
	t.Helper()
	before := bytesOf(t, md)
	require.NoError(t, consume(md))
	require.Equal(t, before, bytesOf(t, md), "the metrics were changed")
	handback.Overwrite(md)
}

func bytesOf(t testing.TB, md pmetric.Metrics) []byte {
	t.Helper()
	b, err := (&pmetric.ProtoMarshaler{}).MarshalMetrics(md)
	require.NoError(t, err)
	return b
}

// Metrics makes metrics of every type, of several resources that name different tenants, with values derived from n.
func Metrics(n int) pmetric.Metrics {
	md := pmetric.NewMetrics()
	for i := range 4 {
		rm := md.ResourceMetrics().AppendEmpty()
		rm.Resource().Attributes().PutStr("service.name", fmt.Sprintf("service-%d", i))
		rm.Resource().Attributes().PutStr("service.instance.id", fmt.Sprintf("instance-%d", i))
		rm.Resource().Attributes().PutStr("tenant", fmt.Sprintf("tenant-%d", i%2))
		sm := rm.ScopeMetrics().AppendEmpty()
		sm.Scope().SetName("scope")
		fill(sm.Metrics(), n)
	}
	return md
}

func fill(ms pmetric.MetricSlice, n int) {
	at := pcommon.Timestamp(1_700_000_000+n) * 1e9
	add := func(name string) pmetric.Metric {
		m := ms.AppendEmpty()
		m.SetName(name)
		m.SetDescription("about " + name)
		m.SetUnit("By")
		return m
	}
	const cumulative = pmetric.AggregationTemporalityCumulative
	gauge := add("gauge").SetEmptyGauge().DataPoints()
	sum := add("sum").SetEmptySum()
	sum.SetIsMonotonic(true)
	sum.SetAggregationTemporality(cumulative)
	for i := range 3 {
		dp := gauge.AppendEmpty()
		dp.Attributes().PutStr("bird", fmt.Sprintf("bird-%d", i))
		dp.SetTimestamp(at)
		dp.SetDoubleValue(float64(n + i))
		dp.CopyTo(sum.DataPoints().AppendEmpty())
	}
	e := sum.DataPoints().At(0).Exemplars().AppendEmpty()
	e.SetDoubleValue(1)
	e.SetTimestamp(at)
	e.FilteredAttributes().PutStr("trace", "t")

	histogram := add("histogram").SetEmptyHistogram()
	histogram.SetAggregationTemporality(cumulative)
	h := histogram.DataPoints().AppendEmpty()
	h.Attributes().PutStr("bird", "all")
	h.SetTimestamp(at)
	h.ExplicitBounds().FromRaw([]float64{1, 2})
	h.BucketCounts().FromRaw([]uint64{1, 2, uint64(n)})
	h.SetCount(uint64(3 + n))
	h.SetSum(float64(n))

	s := add("summary").SetEmptySummary().DataPoints().AppendEmpty()
	s.Attributes().PutStr("bird", "all")
	s.SetTimestamp(at)
	s.SetCount(uint64(n))
	s.SetSum(float64(n))
	q := s.QuantileValues().AppendEmpty()
	q.SetQuantile(0.5)
	q.SetValue(float64(n))

	exponential := add("exponential").SetEmptyExponentialHistogram()
	exponential.SetAggregationTemporality(cumulative)
	x := exponential.DataPoints().AppendEmpty()
	x.Attributes().PutStr("bird", "all")
	x.SetTimestamp(at)
	x.SetScale(1)
	x.SetCount(uint64(2 + n))
	x.SetSum(float64(n))
	x.Positive().BucketCounts().FromRaw([]uint64{1, 1, uint64(n)})
}
