// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package overflow

import (
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/godwit-otel/godwit/processor/cardinalityprocessor/internal/amount"
	"github.com/godwit-otel/godwit/processor/cardinalityprocessor/internal/ident"
)

// Shipment is what is sent to the next consumer for one tenant.
type Shipment struct {
	Tenant  ident.Tenant
	Md      pmetric.Metrics
	Points  int
	Bytes   int
	scopes  map[uint64]pmetric.ScopeMetrics
	Metrics map[uint64]pmetric.Metric
	sent    []sent
	Ended   []*Output
}

// sent is what a flush took out of an output.
type sent struct {
	output *Output
	total  amount.Value
	bounds *amount.Bounds
	points int
	start  pcommon.Timestamp
}

// ShipmentBytes is how large a shipment becomes before another one is begun: a quarter of what gRPC receivers accept.
const ShipmentBytes = 1 << 20

// NewShipment returns an empty shipment.
func NewShipment(t ident.Tenant) *Shipment {
	return &Shipment{
		Tenant: t, Md: pmetric.NewMetrics(),
		scopes: map[uint64]pmetric.ScopeMetrics{}, Metrics: map[uint64]pmetric.Metric{},
	}
}

// put adds an output's point. Outputs of the same metric share one.
func (s *Shipment) put(out *Output, at pcommon.Timestamp) {
	sum := &out.Sum
	total := sum.Total
	if out.Class == amount.ClassGauge && out.gauge == amount.GaugeMean {
		total = amount.Value{Numeric: amount.Numeric{Float: total.Number() / float64(sum.points), IsFloat: true}}
	}
	if out.form == amount.ShapeHistogram {
		amount.SetBounds(out.Metric, sum.bounds)
	}
	total.WriteTo(out.Metric, 0)
	out.Start = min(out.Start, at) // the clock may have gone back
	amount.SetTimes(out.Metric, out.Start, at)
	s.add(out)
	switch out.Class {
	case amount.ClassDelta:
		s.sent = append(s.sent, sent{output: out, total: total, bounds: sum.bounds, points: sum.points, start: out.Start})
		out.Start = at
	case amount.ClassGauge:
		s.sent = append(s.sent, sent{output: out, total: sum.Total, points: sum.points, start: out.Start})
	default: // its total stays, but it may be sent only once
		s.sent = append(s.sent, sent{output: out, bounds: sum.bounds, points: sum.points, start: out.Start})
	}
	out.sent, out.Sum.Total = true, amount.Value{}
	out.over.Store(false)
}

// end adds an output's end marker.
func (s *Shipment) end(out *Output, at pcommon.Timestamp) {
	amount.SetTimes(out.Metric, min(out.Start, at), at)
	m := s.add(out)
	amount.Silence(m, amount.PointCount(m)-1)
	s.Ended = append(s.Ended, out)
}

// add adds an output's point as it is and returns the metric that it is the last of.
func (s *Shipment) add(out *Output) pmetric.Metric {
	s.Points++
	scope := s.ScopeOf(out.Keys.Scope, out.Data)
	var sizer pmetric.ProtoMarshaler
	metric, ok := s.Metrics[out.Keys.Metric]
	if ok {
		s.Bytes += sizer.MetricSize(out.Metric) // slightly too much: the name is not repeated
		amount.AppendPointOf(metric, out.Metric)
		return metric
	}
	s.Bytes += sizer.MetricSize(out.Metric)
	metric = scope.Metrics().AppendEmpty()
	out.Metric.CopyTo(metric)
	s.Metrics[out.Keys.Metric] = metric
	return metric
}

// ScopeOf returns the scope of a key, with the data's resource and scope.
func (s *Shipment) ScopeOf(key uint64, data pmetric.Metrics) pmetric.ScopeMetrics {
	if scope, ok := s.scopes[key]; ok {
		return scope
	}
	from := data.ResourceMetrics().At(0)
	var sizer pmetric.ProtoMarshaler
	s.Bytes += sizer.ResourceMetricsSize(from)
	rm := s.Md.ResourceMetrics().AppendEmpty()
	from.Resource().CopyTo(rm.Resource())
	rm.SetSchemaUrl(from.SchemaUrl())
	scope := rm.ScopeMetrics().AppendEmpty()
	from.ScopeMetrics().At(0).Scope().CopyTo(scope.Scope())
	scope.SetSchemaUrl(from.ScopeMetrics().At(0).SchemaUrl())
	s.scopes[key] = scope
	return scope
}
