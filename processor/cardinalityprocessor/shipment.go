// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package cardinalityprocessor

import (
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"
)

// shipment is what is sent to the next consumer for one tenant.
type shipment struct {
	tenant  tenant
	md      pmetric.Metrics
	points  int
	bytes   int
	scopes  map[uint64]pmetric.ScopeMetrics
	metrics map[uint64]pmetric.Metric
	sent    []sent
	ended   []*output
}

// sent is what a flush took out of an output.
type sent struct {
	output *output
	total  value
	bounds *bounds
	points int
	start  pcommon.Timestamp
}

// shipmentBytes is how large a shipment becomes before another one is begun: a quarter of what gRPC receivers accept.
const shipmentBytes = 1 << 20

func newShipment(t tenant) *shipment {
	return &shipment{
		tenant: t, md: pmetric.NewMetrics(),
		scopes: map[uint64]pmetric.ScopeMetrics{}, metrics: map[uint64]pmetric.Metric{},
	}
}

// put adds an output's point. Outputs of one metric go into one.
func (s *shipment) put(out *output, at pcommon.Timestamp) {
	sum := &out.sum
	total := sum.total
	if out.class == classGauge && out.gauge == gaugeMean {
		total = value{numeric: numeric{float: total.number() / float64(sum.points), isFloat: true}}
	}
	if out.form == shapeHistogram {
		setBounds(out.metric, sum.bounds)
	}
	total.writeTo(out.metric, 0)
	out.start = min(out.start, at) // the clock may have gone back
	setTimes(out.metric, out.start, at)
	s.add(out)
	switch out.class {
	case classDelta:
		s.sent = append(s.sent, sent{output: out, total: total, bounds: sum.bounds, points: sum.points, start: out.start})
		out.start = at
	case classGauge:
		s.sent = append(s.sent, sent{output: out, total: sum.total, points: sum.points, start: out.start})
	default: // its total stays, but it might say it only once
		s.sent = append(s.sent, sent{output: out, bounds: sum.bounds, points: sum.points, start: out.start})
	}
	out.sent, out.sum.total = true, value{}
}

// end adds an output's farewell.
func (s *shipment) end(out *output, at pcommon.Timestamp) {
	setTimes(out.metric, min(out.start, at), at)
	m := s.add(out)
	silence(m, pointCount(m)-1)
	s.ended = append(s.ended, out)
}

// add adds an output's point as it is and returns the metric that it is the last of.
func (s *shipment) add(out *output) pmetric.Metric {
	s.points++
	scope := s.scopeOf(out.keys.scope, out.data)
	var sizer pmetric.ProtoMarshaler
	metric, ok := s.metrics[out.keys.metric]
	if ok {
		s.bytes += sizer.MetricSize(out.metric) // and less, by the name
		appendPointOf(metric, out.metric)
		return metric
	}
	s.bytes += sizer.MetricSize(out.metric)
	metric = scope.Metrics().AppendEmpty()
	out.metric.CopyTo(metric)
	s.metrics[out.keys.metric] = metric
	return metric
}

// scopeOf returns the scope of a key, which is that of the data.
func (s *shipment) scopeOf(key uint64, data pmetric.Metrics) pmetric.ScopeMetrics {
	if scope, ok := s.scopes[key]; ok {
		return scope
	}
	from := data.ResourceMetrics().At(0)
	var sizer pmetric.ProtoMarshaler
	s.bytes += sizer.ResourceMetricsSize(from)
	rm := s.md.ResourceMetrics().AppendEmpty()
	from.Resource().CopyTo(rm.Resource())
	rm.SetSchemaUrl(from.SchemaUrl())
	scope := rm.ScopeMetrics().AppendEmpty()
	from.ScopeMetrics().At(0).Scope().CopyTo(scope.Scope())
	scope.SetSchemaUrl(from.ScopeMetrics().At(0).SchemaUrl())
	s.scopes[key] = scope
	return scope
}

func appendPointOf(to, from pmetric.Metric) {
	switch from.Type() {
	case pmetric.MetricTypeGauge:
		from.Gauge().DataPoints().At(0).CopyTo(to.Gauge().DataPoints().AppendEmpty())
	case pmetric.MetricTypeSum:
		from.Sum().DataPoints().At(0).CopyTo(to.Sum().DataPoints().AppendEmpty())
	case pmetric.MetricTypeHistogram:
		from.Histogram().DataPoints().At(0).CopyTo(to.Histogram().DataPoints().AppendEmpty())
	case pmetric.MetricTypeExponentialHistogram:
		from.ExponentialHistogram().DataPoints().At(0).CopyTo(to.ExponentialHistogram().DataPoints().AppendEmpty())
	default:
		from.Summary().DataPoints().At(0).CopyTo(to.Summary().DataPoints().AppendEmpty())
	}
}

func setTimes(m pmetric.Metric, start, at pcommon.Timestamp) { setTimesAt(m, 0, start, at) }

func setTimesAt(m pmetric.Metric, i int, start, at pcommon.Timestamp) {
	switch m.Type() {
	case pmetric.MetricTypeGauge:
		m.Gauge().DataPoints().At(i).SetTimestamp(at)
	case pmetric.MetricTypeSum:
		m.Sum().DataPoints().At(i).SetStartTimestamp(start)
		m.Sum().DataPoints().At(i).SetTimestamp(at)
	case pmetric.MetricTypeHistogram:
		m.Histogram().DataPoints().At(i).SetStartTimestamp(start)
		m.Histogram().DataPoints().At(i).SetTimestamp(at)
	case pmetric.MetricTypeExponentialHistogram:
		m.ExponentialHistogram().DataPoints().At(i).SetStartTimestamp(start)
		m.ExponentialHistogram().DataPoints().At(i).SetTimestamp(at)
	default:
		m.Summary().DataPoints().At(i).SetStartTimestamp(start)
		m.Summary().DataPoints().At(i).SetTimestamp(at)
	}
}
