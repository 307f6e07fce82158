// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package decode

import "go.opentelemetry.io/collector/pdata/plog"

// Logs decodes the payload of a logs request.
func (d *Decoder) Logs(payload []byte) (plog.Logs, bool) {
	ld := plog.NewLogs()
	d.begin(payload)
	return ld, each(payload, func(message []byte) bool {
		return d.fit(message, resourceWeight) && d.resourceLogs(message, ld.ResourceLogs().AppendEmpty())
	})
}

func (d *Decoder) resourceLogs(message []byte, into plog.ResourceLogs) bool {
	c := cursor{message: message}
	ok := true
	for ok && c.more() {
		switch c.tag() {
		case 1<<3 | length:
			ok = d.resource(c.bytes(), into.Resource())
		case 2<<3 | length:
			message := c.bytes()
			ok = d.fit(message, scopeWeight) && d.scopeLogs(message, into.ScopeLogs().AppendEmpty())
		case 3<<3 | length:
			into.SetSchemaUrl(d.names.get(c.bytes()))
		default:
			return false
		}
	}
	return ok && !c.bad
}

func (d *Decoder) scopeLogs(message []byte, into plog.ScopeLogs) bool {
	c := cursor{message: message}
	records := into.LogRecords()
	ok := ahead(d, message, 2<<3|length, logWeight, records)
	for ok && c.more() {
		switch c.tag() {
		case 1<<3 | length:
			ok = d.scope(c.bytes(), into.Scope())
		case 2<<3 | length:
			message := c.bytes()
			ok = d.fit(message, logWeight) && d.record(message, records.AppendEmpty())
		case 3<<3 | length:
			into.SetSchemaUrl(d.names.get(c.bytes()))
		default:
			return false
		}
	}
	return ok && !c.bad
}

func (d *Decoder) record(message []byte, into plog.LogRecord) bool {
	c := cursor{message: message}
	ok, body := true, false
	for ok && c.more() {
		switch c.tag() {
		case 1<<3 | fixed64:
			into.SetTimestamp(c.time())
		case 2<<3 | varint:
			into.SetSeverityNumber(plog.SeverityNumber(c.number()))
		case 3<<3 | length:
			into.SetSeverityText(d.names.get(c.bytes()))
		case 5<<3 | length:
			ok = !body && d.value(c.bytes(), into.Body(), 0)
			body = true
		case 6<<3 | length:
			ok = d.itemAttribute(c.bytes(), into.Attributes())
		case 7<<3 | varint:
			into.SetDroppedAttributesCount(uint32(c.number()))
		case 8<<3 | fixed32:
			into.SetFlags(plog.LogRecordFlags(c.fixed32()))
		case 9<<3 | length:
			into.SetTraceID(c.traceID())
		case 10<<3 | length:
			into.SetSpanID(c.spanID())
		case 11<<3 | fixed64:
			into.SetObservedTimestamp(c.time())
		case 12<<3 | length:
			into.SetEventName(d.names.get(c.bytes()))
		default:
			return false
		}
	}
	return ok && !c.bad
}
