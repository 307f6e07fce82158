// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package decode

import (
	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/godwit-otel/godwit/internal/reuse"
)

// Metrics decodes the payload of a metrics request.
func (d *Decoder) Metrics(payload []byte) (pmetric.Metrics, bool) {
	md := pmetric.NewMetrics()
	d.begin(payload)
	return md, each(payload, func(message []byte) bool {
		return d.fit(message, resourceWeight) && d.resourceMetrics(message, md.ResourceMetrics().AppendEmpty())
	})
}

func (d *Decoder) resourceMetrics(message []byte, into pmetric.ResourceMetrics) bool {
	c := cursor{message: message}
	ok := true
	for ok && c.more() {
		switch c.tag() {
		case 1<<3 | length:
			message := c.bytes()
			ok = d.sharedResource(message, into.Resource()) || d.resource(message, into.Resource())
		case 2<<3 | length:
			message := c.bytes()
			ok = d.fit(message, scopeWeight) && d.scopeMetrics(message, d.newScope(into.ScopeMetrics()))
		case 3<<3 | length:
			into.SetSchemaUrl(d.names.get(c.bytes()))
		default:
			return false
		}
	}
	return ok && !c.bad
}

func (d *Decoder) scopeMetrics(message []byte, into pmetric.ScopeMetrics) bool {
	c := cursor{message: message}
	metrics := into.Metrics()
	ok := d.again != nil || ahead(d, message, 2<<3|length, metricWeight, metrics) // reused memory has capacity
	for ok && c.more() {
		switch c.tag() {
		case 1<<3 | length:
			ok = d.scope(c.bytes(), into.Scope())
		case 2<<3 | length:
			message := c.bytes()
			ok = d.fit(message, metricWeight) && d.metric(message, d.newMetric(metrics, kindOf(message)))
		case 3<<3 | length:
			into.SetSchemaUrl(d.names.get(c.bytes()))
		default:
			return false
		}
	}
	return ok && !c.bad
}

func (d *Decoder) newScope(to pmetric.ScopeMetricsSlice) pmetric.ScopeMetrics {
	if d.again != nil {
		return d.again.Scope(to)
	}
	return to.AppendEmpty()
}

// newMetric appends a metric of a type: number metrics have their type from the start.
func (d *Decoder) newMetric(to pmetric.MetricSlice, kind byte) (of reuse.Numbers) {
	switch {
	case kind == 5<<3|length && d.again != nil:
		return d.again.Gauge(to)
	case kind == 7<<3|length && d.again != nil:
		return d.again.Sum(to)
	case kind == 5<<3|length:
		of.Metric, of.Points = d.slabs.AppendGauge(to, 0)
	case kind == 7<<3|length:
		of.Metric, of.Points = d.slabs.AppendSum(to, 0)
	default:
		of.Metric = to.AppendEmpty()
	}
	return of
}

// metric reads a Metric.
func (d *Decoder) metric(message []byte, of reuse.Numbers) bool {
	c := cursor{message: message}
	into, ok := of.Metric, true
	kinds := 0
	for ok && c.more() {
		tag := c.tag()
		if tag >= 5<<3 && tag < 12<<3 {
			if kinds++; kinds > 1 {
				return false // it has two types
			}
		}
		switch tag {
		case 1<<3 | length:
			into.SetName(d.header(c.bytes()))
		case 2<<3 | length:
			into.SetDescription(d.header(c.bytes()))
		case 3<<3 | length:
			into.SetUnit(d.header(c.bytes()))
		case 5<<3 | length:
			ok = into.Type() == pmetric.MetricTypeGauge && d.gauge(c.bytes(), of.Points)
		case 7<<3 | length:
			ok = into.Type() == pmetric.MetricTypeSum && d.sum(c.bytes(), into.Sum(), of.Points)
		case 9<<3 | length:
			ok = d.histogram(c.bytes(), into.SetEmptyHistogram())
		case 10<<3 | length:
			ok = d.exponential(c.bytes(), into.SetEmptyExponentialHistogram())
		case 11<<3 | length:
			ok = d.summary(c.bytes(), into.SetEmptySummary())
		case 12<<3 | length:
			ok = d.attribute(c.bytes(), into.Metadata())
		default:
			return false
		}
	}
	return ok && !c.bad
}

func (d *Decoder) gauge(message []byte, points pmetric.NumberDataPointSlice) bool {
	return (d.again != nil || ahead(d, message, 1<<3|length, numberWeight, points)) && each(message, func(message []byte) bool { return d.fit(message, numberWeight) && d.number(message, points) })
}

func (d *Decoder) sum(message []byte, into pmetric.Sum, points pmetric.NumberDataPointSlice) bool {
	c := cursor{message: message}
	ok := d.again != nil || ahead(d, message, 1<<3|length, numberWeight, points)
	for ok && c.more() {
		switch c.tag() {
		case 1<<3 | length:
			message := c.bytes()
			ok = d.fit(message, numberWeight) && d.number(message, points)
		case 2<<3 | varint:
			into.SetAggregationTemporality(pmetric.AggregationTemporality(c.number()))
		case 3<<3 | varint:
			into.SetIsMonotonic(c.number() != 0)
		default:
			return false
		}
	}
	return ok && !c.bad
}

func (d *Decoder) number(message []byte, to pmetric.NumberDataPointSlice) bool {
	if d.again != nil {
		return d.numberAgain(message, to)
	}
	return d.numberPoint(message, d.slabs.AppendNumber(to))
}

func (d *Decoder) numberPoint(message []byte, into pmetric.NumberDataPoint) bool {
	c := cursor{message: message}
	attributes := into.Attributes()
	ok := true
	for ok && c.more() {
		switch c.tag() {
		case 2<<3 | fixed64:
			into.SetStartTimestamp(c.time())
		case 3<<3 | fixed64:
			into.SetTimestamp(c.time())
		case 4<<3 | fixed64:
			d.slabs.SetDouble(into, c.double())
		case 5<<3 | length:
			message := c.bytes()
			ok = d.fit(message, partWeight) && d.exemplar(message, into.Exemplars().AppendEmpty())
		case 6<<3 | fixed64:
			d.slabs.SetInt(into, int64(c.fixed64()))
		case 7<<3 | length:
			ok = d.itemAttribute(c.bytes(), attributes)
		case 8<<3 | varint:
			into.SetFlags(pmetric.DataPointFlags(c.number()))
		default:
			return false
		}
	}
	return ok && !c.bad
}

func (d *Decoder) exemplar(message []byte, into pmetric.Exemplar) bool {
	c := cursor{message: message}
	ok := true
	for ok && c.more() {
		switch c.tag() {
		case 2<<3 | fixed64:
			into.SetTimestamp(c.time())
		case 3<<3 | fixed64:
			into.SetDoubleValue(c.double())
		case 4<<3 | length:
			into.SetSpanID(c.spanID())
		case 5<<3 | length:
			into.SetTraceID(c.traceID())
		case 6<<3 | fixed64:
			into.SetIntValue(int64(c.fixed64()))
		case 7<<3 | length:
			ok = d.attribute(c.bytes(), into.FilteredAttributes())
		default:
			return false
		}
	}
	return ok && !c.bad
}
