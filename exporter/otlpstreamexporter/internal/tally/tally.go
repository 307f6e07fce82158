// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

// Package tally counts events at a destination, apart from what becomes of items.
package tally

import (
	"context"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
)

// Ending is how a stream ended.
type Ending uint8

// The endings there are.
const (
	Broken Ending = iota
	Done
	Idle
	Silent
	Throttled
	Unimplemented
	endings
)

func (r Ending) String() string {
	return [...]string{"broken", "done", "idle", "silent", "throttled", "unimplemented"}[r]
}

// Tally has the counters. All of it may be read at any time.
type Tally struct {
	// Option is the attributes of each measurement.
	Option metric.MeasurementOption

	Acks         Latencies
	Crowded      atomic.Int64          // requests for which there was no place for a stream of their origin
	Divided      atomic.Int64          // requests that were sent in parts
	Resent       atomic.Int64          // requests
	Retryable    atomic.Int64          // answers that asked for a retry
	Opened       atomic.Int64          // streams
	Closed       [endings]atomic.Int64 // streams
	Unexpected   atomic.Int64          // answers to unknown requests
	ThrottledFor atomic.Int64          // nanoseconds
	Wire         atomic.Int64          // bytes of all requests as they are sent
	Raw          atomic.Int64          // bytes of acknowledged requests before compression

	attributes []attribute.KeyValue
	latency    metric.Float64Histogram
}

// New returns an empty tally. Its attributes identify it, and latency is where answers are recorded.
func New(latency metric.Float64Histogram, attributes ...attribute.KeyValue) *Tally {
	t := &Tally{attributes: attributes, latency: latency}
	t.Option = t.With()
	return t
}

// With returns the attributes of a measurement: those of the tally, and more.
func (t *Tally) With(more ...attribute.KeyValue) metric.MeasurementOption {
	return metric.WithAttributeSet(attribute.NewSet(append(more, t.attributes...)...))
}

// Acked counts an answer.
func (t *Tally) Acked(ctx context.Context, after time.Duration) {
	t.latency.Record(ctx, after.Seconds(), t.Option)
	t.Acks.Record(after)
}

// Throttled records how much longer the destination wants a pause.
func (t *Tally) Throttled(d time.Duration) { t.ThrottledFor.Add(int64(d)) }
