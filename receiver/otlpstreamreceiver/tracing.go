// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package otlpstreamreceiver

import (
	"context"
	"slices"

	"go.opentelemetry.io/collector/receiver/receiverhelper"
	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/trace"

	"github.com/godwit-otel/godwit/internal/otlpstream"
)

// propagates reports whether the Collector's propagators include W3C's. Otherwise traces begin anew here.
func propagates() bool {
	return slices.Contains(otel.GetTextMapPropagator().Fields(), "traceparent")
}

// traced returns the context of a request and its reporter. If the client sends a span for the request, that is its
// parent; otherwise it has none, since the stream's own span lasts as long as the stream.
func (s *session) traced(ctx context.Context, request *otlpstream.Request) (context.Context, *receiverhelper.ObsReport) {
	if !s.r.propagates || request.Trace.IsZero() {
		return ctx, s.obs
	}
	traceID, spanID, flags := request.Trace.Parts()
	parent := trace.NewSpanContext(trace.SpanContextConfig{TraceID: traceID, SpanID: spanID, TraceFlags: trace.TraceFlags(flags)})
	if !parent.IsValid() {
		return ctx, s.obs
	}
	return trace.ContextWithRemoteSpanContext(ctx, parent), s.parented
}

// describe adds to the span of a request what the Collector's helper does not know: its stream and ID, as in the
// exporter's span.
func describe(ctx context.Context, request *otlpstream.Request) {
	span := trace.SpanFromContext(ctx)
	if !span.IsRecording() {
		return
	}
	span.SetAttributes(attribute.Int("bytes", len(request.Data)))
	if request.ID != 0 {
		span.SetAttributes(attribute.Int64("id", int64(request.ID)), attribute.Int64("attempt", int64(request.Attempt)))
	}
}
