// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package page

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/godwit-otel/godwit/receiver/fastprometheusreceiver/internal/page/catalog"
)

// canon formats metrics with one line per point, in an order that depends only on the content.
func canon(md pmetric.Metrics) []string {
	var all []string
	for _, rm := range md.ResourceMetrics().All() {
		r := canonMap(rm.Resource().Attributes()) + rm.SchemaUrl()
		for _, sm := range rm.ScopeMetrics().All() {
			s := fmt.Sprintf("%s %s %s %s", sm.Scope().Name(), sm.Scope().Version(), canonMap(sm.Scope().Attributes()), sm.SchemaUrl())
			if strings.HasPrefix(s, catalog.DefaultScope) {
				s = ""
			}
			for _, m := range sm.Metrics().All() {
				head := fmt.Sprintf("%s | %s | %s %q %q %s %s", r, s, m.Name(), m.Description(), m.Unit(), m.Type(), canonMap(m.Metadata()))
				for _, p := range canonPoints(m) {
					all = append(all, head+p)
				}
			}
		}
	}
	slices.Sort(all)
	return all
}

func canonMap(m pcommon.Map) string {
	var kv []string
	for k, v := range m.All() {
		kv = append(kv, fmt.Sprintf("%s=%q", k, v.AsString()))
	}
	slices.Sort(kv)
	return "{" + strings.Join(kv, " ") + "}"
}

type common interface {
	Attributes() pcommon.Map
	Timestamp() pcommon.Timestamp
	StartTimestamp() pcommon.Timestamp
	Flags() pmetric.DataPointFlags
}

func canonPoint(p common, rest string, xs pmetric.ExemplarSlice) string {
	started := p.StartTimestamp()
	if started == 1<<63 { // of a stale _created in the stock receiver
		started = 0
	}
	s := fmt.Sprintf(" %s at %d from %d flags %d: %s", canonMap(p.Attributes()), p.Timestamp(), started, p.Flags(), rest)
	if xs != (pmetric.ExemplarSlice{}) {
		var b strings.Builder
		for _, x := range xs.All() {
			fmt.Fprintf(&b, " exemplar %s %v at %d trace %s span %s", canonMap(x.FilteredAttributes()), x.DoubleValue(), x.Timestamp(), x.TraceID(), x.SpanID())
		}
		s += b.String()
	}
	return s
}

func canonPoints(m pmetric.Metric) (all []string) {
	number := func(p pmetric.NumberDataPoint, name string) {
		rest := fmt.Sprintf("%s %x", p.ValueType(), math.Float64bits(p.DoubleValue()))
		if strings.HasPrefix(name, "scrape_duration") {
			rest = p.ValueType().String()
		}
		all = append(all, canonPoint(p, rest, p.Exemplars()))
	}
	switch m.Type() {
	case pmetric.MetricTypeGauge:
		for _, p := range m.Gauge().DataPoints().All() {
			number(p, m.Name())
		}
	case pmetric.MetricTypeSum:
		for _, p := range m.Sum().DataPoints().All() {
			number(p, m.Name())
			all[len(all)-1] += fmt.Sprint(m.Sum().IsMonotonic(), m.Sum().AggregationTemporality())
		}
	case pmetric.MetricTypeHistogram:
		for _, p := range m.Histogram().DataPoints().All() {
			all = append(all, canonPoint(p, fmt.Sprint(m.Histogram().AggregationTemporality(), p.Count(), p.HasSum(), p.Sum(),
				p.ExplicitBounds().AsRaw(), p.BucketCounts().AsRaw()), p.Exemplars()))
		}
	case pmetric.MetricTypeSummary:
		for _, p := range m.Summary().DataPoints().All() {
			var s strings.Builder
			fmt.Fprint(&s, p.Count(), p.Sum())
			for _, q := range p.QuantileValues().All() {
				fmt.Fprint(&s, " ", q.Quantile(), "=", q.Value())
			}
			all = append(all, canonPoint(p, s.String(), pmetric.ExemplarSlice{}))
		}
	case pmetric.MetricTypeExponentialHistogram:
		for _, p := range m.ExponentialHistogram().DataPoints().All() {
			all = append(all, canonPoint(p, fmt.Sprint(m.ExponentialHistogram().AggregationTemporality(), p.Scale(), p.Count(), p.Sum(),
				p.ZeroCount(), p.ZeroThreshold(), p.Positive().Offset(), p.Positive().BucketCounts().AsRaw(),
				p.Negative().Offset(), p.Negative().BucketCounts().AsRaw()), p.Exemplars()))
		}
	default:
	}
	return all
}
