// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package scenario

import (
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/promql/parser"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"
)

// Requests have timestamps one minute apart, whenever they are sent.
var firstMinute = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

// Metrics makes the metrics of a request, a line each:
//
//	resource service.name=shop tenant=a
//	counter http.requests{path="/a"} 3
//	delta http.requests{path="/a"} 1
//	gauge temperature 21.5
func Metrics(t testing.TB, text string, minute int) pmetric.Metrics {
	t.Helper()
	at := pcommon.NewTimestampFromTime(firstMinute.Add(time.Duration(minute) * time.Minute))
	md := pmetric.NewMetrics()
	var to pmetric.MetricSlice
	open := func() pcommon.Resource {
		rm := md.ResourceMetrics().AppendEmpty()
		to = rm.ScopeMetrics().AppendEmpty().Metrics()
		return rm.Resource()
	}
	for line := range strings.Lines(text) {
		kind, rest, _ := strings.Cut(strings.TrimSpace(line), " ")
		if kind == "resource" {
			r := open()
			for pair := range strings.FieldsSeq(rest) {
				key, value, _ := strings.Cut(pair, "=")
				r.Attributes().PutStr(key, value)
			}
			continue
		}
		if md.ResourceMetrics().Len() == 0 {
			open()
		}
		space := strings.LastIndexByte(rest, ' ')
		require.Positive(t, space, "%q has no value", line)
		value, err := strconv.ParseFloat(rest[space+1:], 64)
		require.NoError(t, err, line)
		name, braces, _ := strings.Cut(rest[:space], "{")
		m := to.AppendEmpty()
		m.SetName(name)
		var p pmetric.NumberDataPoint
		switch kind {
		case "gauge":
			p = m.SetEmptyGauge().DataPoints().AppendEmpty()
		case "counter", "delta":
			sum := m.SetEmptySum()
			sum.SetIsMonotonic(true)
			sum.SetAggregationTemporality(pmetric.AggregationTemporalityCumulative)
			p = sum.DataPoints().AppendEmpty()
			p.SetStartTimestamp(pcommon.NewTimestampFromTime(firstMinute))
			if kind == "delta" {
				sum.SetAggregationTemporality(pmetric.AggregationTemporalityDelta)
				p.SetStartTimestamp(at - pcommon.Timestamp(time.Minute))
			}
		default:
			t.Fatalf("%q is no kind of metric: counter, delta and gauge are", kind)
		}
		p.SetTimestamp(at)
		p.SetDoubleValue(value)
		if braces == "" {
			continue
		}
		lset, err := parser.NewParser(parser.Options{}).ParseMetric("{" + braces)
		require.NoError(t, err, line)
		lset.Range(func(l labels.Label) { p.Attributes().PutStr(l.Name, l.Value) })
	}
	return md
}
