// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package otlpstreamexporter

import (
	"context"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
)

// endReason is why a stream ended.
type endReason uint8

const (
	endBroken endReason = iota
	endDone
	endIdle
	endSilent
	endThrottled
	endUnimplemented
	endReasons
)

func (r endReason) String() string {
	return [...]string{"broken", "done", "idle", "silent", "throttled", "unimplemented"}[r]
}

// tally counts what happens at a destination, apart from what becomes of items.
type tally struct {
	attributes []attribute.KeyValue // of every measurement
	latency    metric.Float64Histogram
	option     metric.MeasurementOption

	acks         latencies
	crowded      atomic.Int64
	divided      atomic.Int64
	resent       atomic.Int64
	retryable    atomic.Int64
	opened       atomic.Int64
	closed       [endReasons]atomic.Int64
	unexpected   atomic.Int64
	throttledFor atomic.Int64 // nanoseconds
	// wire is the bytes of all requests as they are sent, raw those of acknowledged ones before compression.
	wire, raw atomic.Int64
}

// newTally tells exporters and signals apart, too: all of a process share the metrics.
func newTally(e *streamExporter, destination string) *tally {
	t := &tally{
		attributes: []attribute.KeyValue{
			attribute.String("exporter", e.set.ID.String()),
			attribute.String("data_type", e.signal.String()),
			attribute.String("destination", destination),
		},
		latency: e.telemetry.ExporterOtlpstreamAckLatency,
	}
	t.option = t.with()
	return t
}

// with is the attributes of a measurement: where it was taken, and what it is about.
func (t *tally) with(more ...attribute.KeyValue) metric.MeasurementOption {
	return metric.WithAttributeSet(attribute.NewSet(append(more, t.attributes...)...))
}

func (t *tally) acked(ctx context.Context, after time.Duration) {
	t.latency.Record(ctx, after.Seconds(), t.option)
	t.acks.record(after)
}

func (t *tally) throttled(d time.Duration) { t.throttledFor.Add(int64(d)) }
