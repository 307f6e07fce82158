// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package inspect

import (
	"fmt"
	"strconv"
	"strings"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/pdata/ptrace"
)

const (
	shownLabels = 64  // of a resource or a point
	shownText   = 256 // bytes of a name or a value
)

// points gives access to the points of a metric of any type.
type points struct {
	n          int
	name, kind string
	attributes func(i int) pcommon.Map
	at         func(i int) pcommon.Timestamp
	value      func(i int) string
}

func pointsOf(m pmetric.Metric) points {
	p := points{name: m.Name(), kind: strings.ToLower(m.Type().String())}
	switch m.Type() {
	case pmetric.MetricTypeGauge:
		p.ofNumbers(m.Gauge().DataPoints())
	case pmetric.MetricTypeSum:
		p.ofNumbers(m.Sum().DataPoints())
	case pmetric.MetricTypeHistogram:
		all := m.Histogram().DataPoints()
		p.n = all.Len()
		p.attributes = func(i int) pcommon.Map { return all.At(i).Attributes() }
		p.at = func(i int) pcommon.Timestamp { return all.At(i).Timestamp() }
		p.value = func(i int) string { return sums(all.At(i).Count(), all.At(i).Sum(), all.At(i).BucketCounts().Len()) }
	case pmetric.MetricTypeExponentialHistogram:
		all := m.ExponentialHistogram().DataPoints()
		p.n = all.Len()
		p.attributes = func(i int) pcommon.Map { return all.At(i).Attributes() }
		p.at = func(i int) pcommon.Timestamp { return all.At(i).Timestamp() }
		p.value = func(i int) string {
			return sums(all.At(i).Count(), all.At(i).Sum(), all.At(i).Positive().BucketCounts().Len()+all.At(i).Negative().BucketCounts().Len())
		}
	case pmetric.MetricTypeSummary:
		all := m.Summary().DataPoints()
		p.n = all.Len()
		p.attributes = func(i int) pcommon.Map { return all.At(i).Attributes() }
		p.at = func(i int) pcommon.Timestamp { return all.At(i).Timestamp() }
		p.value = func(i int) string { return sums(all.At(i).Count(), all.At(i).Sum(), all.At(i).QuantileValues().Len()) }
	default: // a metric without data
	}
	return p
}

func (p *points) ofNumbers(all pmetric.NumberDataPointSlice) {
	p.n = all.Len()
	p.attributes = func(i int) pcommon.Map { return all.At(i).Attributes() }
	p.at = func(i int) pcommon.Timestamp { return all.At(i).Timestamp() }
	p.value = func(i int) string {
		d := all.At(i)
		switch {
		case d.Flags().NoRecordedValue():
			return "stale marker"
		case d.ValueType() == pmetric.NumberDataPointValueTypeInt:
			return strconv.FormatInt(d.IntValue(), 10)
		}
		return strconv.FormatFloat(d.DoubleValue(), 'g', -1, 64)
	}
}

func sums(count uint64, sum float64, parts int) string {
	return fmt.Sprintf("count %d, sum %g, %d buckets", count, sum, parts)
}

func (p *points) show(resource pcommon.Resource, i int) Point {
	return Point{
		Name: clip(p.name), Kind: p.kind, Value: p.value(i), At: p.at(i).AsTime(),
		Resource: labelsOf(resource.Attributes()), Attributes: labelsOf(p.attributes(i)),
	}
}

func labelsOf(attributes pcommon.Map) []Label {
	out := make([]Label, 0, min(attributes.Len(), shownLabels))
	for name, value := range attributes.All() {
		if len(out) == shownLabels {
			break
		}
		out = append(out, Label{Name: clip(name), Value: clip(value.AsString())})
	}
	return out
}

// clip copies the beginning of a text, whose memory may be reused.
func clip(text string) string {
	if len(text) <= shownText {
		return strings.Clone(text)
	}
	return strings.ToValidUTF8(text[:shownText], "") + "…"
}

func glanceOfLogs(ld plog.Logs, nth uint64) Glance {
	g := Glance{Signal: "logs", In: ld.LogRecordCount(), Points: []Sight{}}
	g.Out = g.In
	chosen := newChoice(g.In, nth)
	for _, rl := range ld.ResourceLogs().All() {
		for _, sl := range rl.ScopeLogs().All() {
			all := sl.LogRecords()
			for i, ok := chosen.within(all.Len()); ok; i, ok = chosen.within(all.Len()) {
				r := all.At(i)
				name := r.SeverityText()
				if name == "" {
					name = r.SeverityNumber().String()
				}
				g.Points = append(g.Points, Sight{Fate: FatePassed, Point: Point{
					Name: clip(name), Kind: "log", Value: clip(r.Body().AsString()), At: r.Timestamp().AsTime(),
					Resource: labelsOf(rl.Resource().Attributes()), Attributes: labelsOf(r.Attributes()),
				}})
			}
			chosen.skip(all.Len())
		}
	}
	return g
}

func glanceOfTraces(td ptrace.Traces, nth uint64) Glance {
	g := Glance{Signal: "traces", In: td.SpanCount(), Points: []Sight{}}
	g.Out = g.In
	chosen := newChoice(g.In, nth)
	for _, rs := range td.ResourceSpans().All() {
		for _, ss := range rs.ScopeSpans().All() {
			all := ss.Spans()
			for i, ok := chosen.within(all.Len()); ok; i, ok = chosen.within(all.Len()) {
				s := all.At(i)
				g.Points = append(g.Points, Sight{Fate: FatePassed, Point: Point{
					Name: clip(s.Name()), Kind: "span", Value: s.EndTimestamp().AsTime().Sub(s.StartTimestamp().AsTime()).String(),
					At: s.StartTimestamp().AsTime(), Resource: labelsOf(rs.Resource().Attributes()), Attributes: labelsOf(s.Attributes()),
				}})
			}
			chosen.skip(all.Len())
		}
	}
	return g
}
