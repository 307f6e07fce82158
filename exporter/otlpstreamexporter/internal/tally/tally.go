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

// Tally counts. All of it may be read at any time.
type Tally struct {
	// Option is the attributes of each measurement.
	Option metric.MeasurementOption

	Acks         Latencies
	Crowded      atomic.Int64          // requests for which no stream of their origin had a place
	Divided      atomic.Int64          // requests that were sent in parts
	Resent       atomic.Int64          // requests
	Retryable    atomic.Int64          // answers that asked to send a request again
	Opened       atomic.Int64          // streams
	Closed       [endings]atomic.Int64 // streams
	Unexpected   atomic.Int64          // answers to what nobody asked
	ThrottledFor atomic.Int64          // nanoseconds
	Wire         atomic.Int64          // bytes of all requests as they are sent
	Raw          atomic.Int64          // bytes of acknowledged requests before compression

	attributes []attribute.KeyValue
	latency    metric.Float64Histogram
}

// New returns a tally that has counted nothing. Its attributes tell it from others, and latency is where answers are recorded.
func New(latency metric.Float64Histogram, attributes ...attribute.KeyValue) *Tally {
	t := &Tally{attributes: attributes, latency: latency}
	t.Option = t.With()
	return t
}

// With is the attributes of a measurement: where it was taken, and what it is about.
func (t *Tally) With(more ...attribute.KeyValue) metric.MeasurementOption {
	return metric.WithAttributeSet(attribute.NewSet(append(more, t.attributes...)...))
}

// Acked records an answer.
func (t *Tally) Acked(ctx context.Context, after time.Duration) {
	t.latency.Record(ctx, after.Seconds(), t.Option)
	t.Acks.Record(after)
}

// Throttled records how much longer the destination is to be left alone.
func (t *Tally) Throttled(d time.Duration) { t.ThrottledFor.Add(int64(d)) }
