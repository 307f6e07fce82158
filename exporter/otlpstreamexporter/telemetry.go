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

	"github.com/godwit-otel/godwit/exporter/otlpstreamexporter/internal/account"
	"github.com/godwit-otel/godwit/exporter/otlpstreamexporter/internal/metadata"
	"github.com/godwit-otel/godwit/exporter/otlpstreamexporter/internal/tally"
)

// observe registers callbacks that report accounts and tallies as metrics.
func (e *streamExporter) observe() error {
	each := func(value func(*destination) int64) metric.Int64Callback {
		return func(_ context.Context, o metric.Int64Observer) error {
			for _, d := range e.dests {
				o.Observe(value(d), d.tally.Option)
			}
			return nil
		}
	}
	t := e.telemetry
	err := errors.Join(
		e.observeAccounts(),
		t.RegisterExporterOtlpstreamStreamingCallback(each(func(d *destination) int64 {
			if d.server.Streaming() {
				return 1
			}
			return 0
		})),
		t.RegisterExporterOtlpstreamMetadataSetsCallback(each(func(d *destination) int64 { return int64(d.lanes.origins()) })),
		t.RegisterExporterOtlpstreamCrowdedRequestsCallback(each(func(d *destination) int64 { return d.tally.Crowded.Load() })),
		t.RegisterExporterOtlpstreamDividedRequestsCallback(each(func(d *destination) int64 { return d.tally.Divided.Load() })),
		t.RegisterExporterOtlpstreamResentRequestsCallback(each(func(d *destination) int64 { return d.tally.Resent.Load() })),
		t.RegisterExporterOtlpstreamRetryableFailuresCallback(each(func(d *destination) int64 { return d.tally.Retryable.Load() })),
		t.RegisterExporterOtlpstreamUnexpectedAcksCallback(each(func(d *destination) int64 { return d.tally.Unexpected.Load() })),
		t.RegisterExporterOtlpstreamStreamsOpenedCallback(each(func(d *destination) int64 { return d.tally.Opened.Load() })),
		t.RegisterExporterOtlpstreamStreamsClosedCallback(e.observeClosed),
		t.RegisterExporterOtlpstreamThrottledTimeCallback(func(_ context.Context, o metric.Float64Observer) error {
			for _, d := range e.dests {
				o.Observe(time.Duration(d.tally.ThrottledFor.Load()).Seconds(), d.tally.Option)
			}
			return nil
		}),
	)
	if err != nil {
		return fmt.Errorf("cannot set up telemetry: %w", err)
	}
	return nil
}

// observeAccounts reads each account once for all of its metrics, so that they are consistent. Separate callbacks would
// read them at different moments.
func (e *streamExporter) observeAccounts() error {
	t := e.telemetry
	accounts, err := metadata.Meter(e.set.TelemetrySettings).RegisterCallback(func(_ context.Context, o metric.Observer) error {
		for _, d := range e.dests {
			b := d.account.Balance()
			o.ObserveInt64(t.ExporterOtlpstreamReceivedItems, b.Received, d.tally.Option)
			o.ObserveInt64(t.ExporterOtlpstreamQueuedItems, b.Queued, d.tally.Option)
			o.ObserveInt64(t.ExporterOtlpstreamPendingItems, b.Pending, d.tally.Option)
			o.ObserveInt64(t.ExporterOtlpstreamAckedItems, b.Acked, d.tally.Option)
			o.ObserveInt64(t.ExporterOtlpstreamInFlightRequests, b.Requests, d.tally.Option)
			o.ObserveInt64(t.ExporterOtlpstreamInFlightBytes, b.Bytes, d.tally.Option)
			for reason, n := range b.Dropped {
				if n > 0 {
					o.ObserveInt64(t.ExporterOtlpstreamDroppedItems, n, d.tally.With(attribute.String("reason", account.Reason(reason).String())))
				}
			}
		}
		return nil
	}, t.ExporterOtlpstreamReceivedItems, t.ExporterOtlpstreamQueuedItems, t.ExporterOtlpstreamPendingItems, t.ExporterOtlpstreamAckedItems,
		t.ExporterOtlpstreamInFlightRequests, t.ExporterOtlpstreamInFlightBytes, t.ExporterOtlpstreamDroppedItems)
	if err == nil {
		e.unobserve = accounts.Unregister
	}
	return err
}

func (e *streamExporter) observeClosed(_ context.Context, o metric.Int64Observer) error {
	for _, d := range e.dests {
		for reason := range d.tally.Closed {
			if n := d.tally.Closed[reason].Load(); n > 0 {
				o.Observe(n, d.tally.With(attribute.String("reason", tally.Ending(reason).String())))
			}
		}
	}
	return nil
}
