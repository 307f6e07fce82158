// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package otlpstreamexporter

import (
	"context"
	"fmt"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
)

// observe lets the account be read as metrics.
func (e *streamExporter) observe() error {
	observe := func(value func(balance) int64) func(context.Context, metric.Int64Observer) error {
		return func(_ context.Context, o metric.Int64Observer) error {
			o.Observe(value(e.account.snapshot()))
			return nil
		}
	}
	for _, err := range []error{
		e.telemetry.RegisterExporterOtlpstreamReceivedItemsCallback(observe(func(b balance) int64 { return b.received })),
		e.telemetry.RegisterExporterOtlpstreamQueuedItemsCallback(observe(func(b balance) int64 { return b.queued })),
		e.telemetry.RegisterExporterOtlpstreamPendingItemsCallback(observe(func(b balance) int64 { return b.pending })),
		e.telemetry.RegisterExporterOtlpstreamAckedItemsCallback(observe(func(b balance) int64 { return b.acked })),
		e.telemetry.RegisterExporterOtlpstreamStreamingCallback(func(_ context.Context, o metric.Int64Observer) error {
			streaming := int64(0)
			if e.dest.modes.streaming() {
				streaming = 1
			}
			o.Observe(streaming)
			return nil
		}),
		e.telemetry.RegisterExporterOtlpstreamDroppedItemsCallback(func(_ context.Context, o metric.Int64Observer) error {
			for reason, n := range e.account.snapshot().dropped {
				if n > 0 {
					o.Observe(n, metric.WithAttributeSet(attribute.NewSet(attribute.String("reason", dropReason(reason).String()))))
				}
			}
			return nil
		}),
	} {
		if err != nil {
			return fmt.Errorf("cannot set up telemetry: %w", err)
		}
	}
	return nil
}
