// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package otlpstreamexporter

import (
	"slices"
	"time"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/trace"

	"github.com/godwit-otel/godwit/internal/otlpstream"
)

// The helper makes the span of a request, and ends it when the request is acknowledged or dropped. The functions below
// add what the helper does not know. If nobody records the span, they do nothing and allocate nothing.

const (
	resultAcked = "acked"
	resultKept  = "kept" // in the queue on disk
)

// propagates reports whether requests carry their trace's context: as unary ones do, if the Collector's propagators
// include W3C's.
func propagates() bool {
	return slices.Contains(otel.GetTextMapPropagator().Fields(), "traceparent")
}

// traceContext is the parent of the receiver's span: the span of the request.
func (p *delivery) traceContext() otlpstream.TraceContext {
	sc := p.span.SpanContext()
	if !sc.IsValid() {
		return otlpstream.TraceContext{}
	}
	return otlpstream.NewTraceContext(sc.TraceID(), sc.SpanID(), byte(sc.TraceFlags()))
}

func (p *delivery) noteDestination(name string) {
	if p.span.IsRecording() {
		p.span.SetAttributes(attribute.String("destination", name), attribute.Int("bytes", len(p.data)))
	}
}

// noteStreamed records that it is sent on the stream of a slot, and the ID that the receiver's span has.
func (p *delivery) noteStreamed(slot int, id, attempt uint64) {
	if p.span.IsRecording() {
		p.span.SetAttributes(attribute.Int("stream", slot))
		p.span.AddEvent("sent", trace.WithAttributes(attribute.Int64("id", int64(id)), attribute.Int64("attempt", int64(attempt))))
	}
}

func (p *delivery) noteUnary(attempt uint64) {
	if p.span.IsRecording() {
		p.span.AddEvent("sent", trace.WithAttributes(attribute.Int64("attempt", int64(attempt))))
	}
}

func (p *delivery) noteRetry(delay time.Duration, why error) {
	if p.span.IsRecording() {
		p.span.AddEvent("retry", trace.WithAttributes(attribute.String("delay", delay.String()), attribute.String("error", why.Error())))
	}
}

func (p *delivery) noteStreamLost(why error) {
	if p.span.IsRecording() {
		p.span.AddEvent("stream lost", trace.WithAttributes(attribute.String("error", why.Error())))
	}
}

// noteLate records that it is sent again because no answer came.
func (p *delivery) noteLate(waited time.Duration) {
	if p.span.IsRecording() {
		p.span.AddEvent("unanswered", trace.WithAttributes(attribute.String("waited", waited.String())))
	}
}

func (p *delivery) noteDivided(limit int64) {
	if p.span.IsRecording() {
		p.span.AddEvent("divided", trace.WithAttributes(attribute.Int64("limit", limit)))
	}
}

// noteResult records that it was acknowledged, or why not.
func (p *delivery) noteResult(result string) {
	if p.span.IsRecording() {
		p.span.SetAttributes(attribute.String("result", result))
	}
}
