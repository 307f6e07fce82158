// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package otlpstreamexporter

import (
	"context"
	"errors"
	"fmt"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
)

// observe lets accounts and tallies be read as metrics.
func (e *streamExporter) observe() error {
	each := func(value func(*destination) int64) metric.Int64Callback {
		return func(_ context.Context, o metric.Int64Observer) error {
			for _, d := range e.dests {
				o.Observe(value(d), d.tally.option)
			}
			return nil
		}
	}
	items := func(value func(balance) int64) metric.Int64Callback {
		return each(func(d *destination) int64 { return value(d.account.snapshot()) })
	}
	t := e.telemetry
	err := errors.Join(
		t.RegisterExporterOtlpstreamReceivedItemsCallback(items(func(b balance) int64 { return b.received })),
		t.RegisterExporterOtlpstreamQueuedItemsCallback(items(func(b balance) int64 { return b.queued })),
		t.RegisterExporterOtlpstreamPendingItemsCallback(items(func(b balance) int64 { return b.pending })),
		t.RegisterExporterOtlpstreamAckedItemsCallback(items(func(b balance) int64 { return b.acked })),
		t.RegisterExporterOtlpstreamInFlightRequestsCallback(items(func(b balance) int64 { return b.requests })),
		t.RegisterExporterOtlpstreamInFlightBytesCallback(items(func(b balance) int64 { return b.bytes })),
		t.RegisterExporterOtlpstreamDroppedItemsCallback(e.observeDropped),
		t.RegisterExporterOtlpstreamStreamingCallback(each(func(d *destination) int64 {
			if d.modes.streaming() {
				return 1
			}
			return 0
		})),
		t.RegisterExporterOtlpstreamDividedRequestsCallback(each(func(d *destination) int64 { return d.tally.divided.Load() })),
		t.RegisterExporterOtlpstreamResentRequestsCallback(each(func(d *destination) int64 { return d.tally.resent.Load() })),
		t.RegisterExporterOtlpstreamRetryableFailuresCallback(each(func(d *destination) int64 { return d.tally.retryable.Load() })),
		t.RegisterExporterOtlpstreamUnexpectedAcksCallback(each(func(d *destination) int64 { return d.tally.unexpected.Load() })),
		t.RegisterExporterOtlpstreamStreamsOpenedCallback(each(func(d *destination) int64 { return d.tally.opened.Load() })),
		t.RegisterExporterOtlpstreamStreamsClosedCallback(e.observeClosed),
		t.RegisterExporterOtlpstreamThrottledTimeCallback(func(_ context.Context, o metric.Float64Observer) error {
			for _, d := range e.dests {
				o.Observe(time.Duration(d.tally.throttledFor.Load()).Seconds(), d.tally.option)
			}
			return nil
		}),
	)
	if err != nil {
		return fmt.Errorf("cannot set up telemetry: %w", err)
	}
	return nil
}

func (e *streamExporter) observeDropped(_ context.Context, o metric.Int64Observer) error {
	for _, d := range e.dests {
		for reason, n := range d.account.snapshot().dropped {
			if n > 0 {
				o.Observe(n, d.tally.with(attribute.String("reason", dropReason(reason).String())))
			}
		}
	}
	return nil
}

func (e *streamExporter) observeClosed(_ context.Context, o metric.Int64Observer) error {
	for _, d := range e.dests {
		for reason := range d.tally.closed {
			if n := d.tally.closed[reason].Load(); n > 0 {
				o.Observe(n, d.tally.with(attribute.String("reason", endReason(reason).String())))
			}
		}
	}
	return nil
}
