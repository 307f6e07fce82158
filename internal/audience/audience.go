// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

// Package audience reports whether anybody receives what instrumentation records. If nobody does, it need not be made.
package audience

import (
	"context"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/otel"
)

// None reports whether nobody receives what the instrumentation of a scope records about requests: its spans and
// metrics go nowhere, and there are no traces to continue.
func None(set component.TelemetrySettings, scope string) bool {
	ctx := context.Background()
	// Neither records anything: the span is not ended, and the counter is not incremented.
	_, span := set.TracerProvider.Tracer(scope).Start(ctx, "probe") //nolint:spancheck // as said
	probe, err := set.MeterProvider.Meter(scope).Int64Counter("probe")
	silent := err == nil && !probe.Enabled(ctx) && !span.SpanContext().IsValid()
	return silent && len(otel.GetTextMapPropagator().Fields()) == 0 //nolint:spancheck // neither here
}
