// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package decode

import "go.opentelemetry.io/collector/pdata/ptrace"

// Traces decodes the payload of a traces request.
func (d *Decoder) Traces(payload []byte) (ptrace.Traces, bool) {
	td := ptrace.NewTraces()
	d.begin(payload)
	return td, each(payload, func(message []byte) bool {
		return d.fit(message, resourceWeight) && d.resourceSpans(message, td.ResourceSpans().AppendEmpty())
	})
}

func (d *Decoder) resourceSpans(message []byte, into ptrace.ResourceSpans) bool {
	c := cursor{message: message}
	ok := true
	for ok && c.more() {
		switch c.tag() {
		case 1<<3 | length:
			ok = d.resource(c.bytes(), into.Resource())
		case 2<<3 | length:
			message := c.bytes()
			ok = d.fit(message, scopeWeight) && d.scopeSpans(message, into.ScopeSpans().AppendEmpty())
		case 3<<3 | length:
			into.SetSchemaUrl(d.names.get(c.bytes()))
		default:
			return false
		}
	}
	return ok && !c.bad
}

func (d *Decoder) scopeSpans(message []byte, into ptrace.ScopeSpans) bool {
	c := cursor{message: message}
	spans := into.Spans()
	ok := ahead(d, message, 2<<3|length, spanWeight, spans)
	for ok && c.more() {
		switch c.tag() {
		case 1<<3 | length:
			ok = d.scope(c.bytes(), into.Scope())
		case 2<<3 | length:
			message := c.bytes()
			ok = d.fit(message, spanWeight) && d.span(message, spans.AppendEmpty())
		case 3<<3 | length:
			into.SetSchemaUrl(d.names.get(c.bytes()))
		default:
			return false
		}
	}
	return ok && !c.bad
}

func (d *Decoder) span(message []byte, into ptrace.Span) bool {
	c := cursor{message: message}
	attributes := into.Attributes()
	ok := true
	for ok && c.more() {
		switch c.number() {
		case 1<<3 | length:
			into.SetTraceID(c.traceID())
		case 2<<3 | length:
			into.SetSpanID(c.spanID())
		case 3<<3 | length:
			into.TraceState().FromRaw(d.values.string(c.bytes()))
		case 4<<3 | length:
			into.SetParentSpanID(c.spanID())
		case 5<<3 | length:
			into.SetName(d.names.get(c.bytes()))
		case 6<<3 | varint:
			into.SetKind(ptrace.SpanKind(c.number()))
		case 7<<3 | fixed64:
			into.SetStartTimestamp(c.time())
		case 8<<3 | fixed64:
			into.SetEndTimestamp(c.time())
		case 9<<3 | length:
			ok = d.itemAttribute(c.bytes(), attributes)
		case 10<<3 | varint:
			into.SetDroppedAttributesCount(uint32(c.number()))
		case 11<<3 | length:
			message := c.bytes()
			ok = d.fit(message, partWeight) && d.event(message, into.Events().AppendEmpty())
		case 12<<3 | varint:
			into.SetDroppedEventsCount(uint32(c.number()))
		case 13<<3 | length:
			message := c.bytes()
			ok = d.fit(message, partWeight) && d.link(message, into.Links().AppendEmpty())
		case 14<<3 | varint:
			into.SetDroppedLinksCount(uint32(c.number()))
		case 15<<3 | length:
			ok = d.status(c.bytes(), into.Status())
		case 16<<3 | fixed32:
			into.SetFlags(c.fixed32())
		default:
			return false
		}
	}
	return ok && !c.bad
}

func (d *Decoder) event(message []byte, into ptrace.SpanEvent) bool {
	c := cursor{message: message}
	ok := true
	for ok && c.more() {
		switch c.tag() {
		case 1<<3 | fixed64:
			into.SetTimestamp(c.time())
		case 2<<3 | length:
			into.SetName(d.names.get(c.bytes()))
		case 3<<3 | length:
			ok = d.attribute(c.bytes(), into.Attributes())
		case 4<<3 | varint:
			into.SetDroppedAttributesCount(uint32(c.number()))
		default:
			return false
		}
	}
	return ok && !c.bad
}

func (d *Decoder) link(message []byte, into ptrace.SpanLink) bool {
	c := cursor{message: message}
	ok := true
	for ok && c.more() {
		switch c.tag() {
		case 1<<3 | length:
			into.SetTraceID(c.traceID())
		case 2<<3 | length:
			into.SetSpanID(c.spanID())
		case 3<<3 | length:
			into.TraceState().FromRaw(d.values.string(c.bytes()))
		case 4<<3 | length:
			ok = d.attribute(c.bytes(), into.Attributes())
		case 5<<3 | varint:
			into.SetDroppedAttributesCount(uint32(c.number()))
		case 6<<3 | fixed32:
			into.SetFlags(c.fixed32())
		default:
			return false
		}
	}
	return ok && !c.bad
}

func (d *Decoder) status(message []byte, into ptrace.Status) bool {
	c := cursor{message: message}
	for c.more() {
		switch c.tag() {
		case 2<<3 | length:
			into.SetMessage(d.values.string(c.bytes()))
		case 3<<3 | varint:
			into.SetCode(ptrace.StatusCode(c.number()))
		default:
			return false
		}
	}
	return !c.bad
}
