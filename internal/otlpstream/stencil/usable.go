// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package stencil

import (
	"bytes"
	"sync"

	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/godwit-otel/godwit/internal/slab"
)

// usable reports whether this package's output equals pdata's, for a sample with something in each supported field.
var usable = sync.OnceValue(func() bool {
	if !slab.Readable() {
		return false
	}
	const limit = 1 << 20
	e := NewEncoder(limit)
	for n := range 3 {
		md := sample(n)
		want, err := (&pmetric.ProtoMarshaler{}).MarshalMetrics(md)
		if err != nil {
			return false
		}
		got := e.encode(md)
		if n > 0 && (got == nil || !bytes.Equal(want, got.Bytes())) {
			return false
		}
		e.learn(md, want)
	}
	return true
})

// sample returns metrics with something in each field, and with numbers derived from n.
func sample(n int) pmetric.Metrics {
	md := pmetric.NewMetrics()
	rm := md.ResourceMetrics().AppendEmpty()
	rm.SetSchemaUrl("resource")
	rm.Resource().Attributes().PutStr("name", "r")
	rm.Resource().SetDroppedAttributesCount(1)
	sm := rm.ScopeMetrics().AppendEmpty()
	sm.SetSchemaUrl("scope")
	sm.Scope().SetName("s")
	sm.Scope().SetVersion("v")
	sm.Scope().Attributes().PutBool("bool", true)
	sm.Scope().SetDroppedAttributesCount(2)
	v := uint64(n + 1)
	add := func(name string) pmetric.Metric {
		m := sm.Metrics().AppendEmpty()
		m.SetName(name)
		m.SetDescription("about")
		m.SetUnit("1")
		return m
	}

	numbers(add("gauge").SetEmptyGauge().DataPoints(), v)
	sum := add("sum").SetEmptySum()
	sum.SetIsMonotonic(true)
	sum.SetAggregationTemporality(pmetric.AggregationTemporalityDelta)
	numbers(sum.DataPoints(), v)

	histogram := add("histogram").SetEmptyHistogram()
	histogram.SetAggregationTemporality(pmetric.AggregationTemporalityCumulative)
	h := histogram.DataPoints().AppendEmpty()
	h.Attributes().PutStr("key", "value")
	h.SetStartTimestamp(1)
	h.SetTimestamp(2)
	h.SetCount(3 + v)
	h.SetSum(float64(v))
	h.SetMin(1)
	h.SetMax(float64(v))
	h.SetFlags(pmetric.DefaultDataPointFlags.WithNoRecordedValue(true))
	h.ExplicitBounds().FromRaw([]float64{1, 2})
	h.BucketCounts().FromRaw([]uint64{1, 2, v})

	summary := add("summary").SetEmptySummary().DataPoints().AppendEmpty()
	summary.Attributes().PutStr("key", "value")
	summary.SetStartTimestamp(1)
	summary.SetTimestamp(2)
	summary.SetCount(v)
	summary.SetSum(float64(v))
	summary.SetFlags(pmetric.DefaultDataPointFlags.WithNoRecordedValue(true))
	q := summary.QuantileValues().AppendEmpty()
	q.SetQuantile(0.5)
	q.SetValue(float64(v))
	return md
}

func numbers(to pmetric.NumberDataPointSlice, v uint64) {
	double, integer := to.AppendEmpty(), to.AppendEmpty()
	double.SetDoubleValue(float64(v))
	integer.SetIntValue(int64(v))
	for _, p := range to.All() {
		p.Attributes().PutStr("key", "value")
		p.Attributes().PutStr("", "")
		p.Attributes().PutInt("int", -1)
		p.Attributes().PutDouble("double", 0.5)
		p.SetStartTimestamp(1)
		p.SetTimestamp(2)
		p.SetFlags(pmetric.DefaultDataPointFlags.WithNoRecordedValue(true))
	}
}
