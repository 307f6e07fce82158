// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

// Package loss counts what cannot be sent, by reason, and reports the first of each reason.
package loss

import (
	"runtime/debug"
	"sync"
)

// Reason is why something was not sent.
type Reason string

// The reasons there are.
const (
	Temporality   Reason = "temporality"    // neither cumulative nor, unless enabled, delta
	Name          Reason = "name"           // no valid metric name can be made
	Label         Reason = "label"          // no valid label name can be made
	Empty         Reason = "empty"          // a point without a value, or a metric without a type
	Time          Reason = "time"           // a point without a time
	Scale         Reason = "scale"          // an exponential histogram too coarse for a native one
	Buckets       Reason = "buckets"        // a histogram whose buckets contradict themselves
	DeltaOrder    Reason = "delta_order"    // a delta point older than its predecessor
	DeltaLimit    Reason = "delta_limit"    // a delta series beyond the limit
	Duplicate     Reason = "duplicate"      // a second point of a series at the same time
	Tenants       Reason = "tenants"        // a tenant beyond the limit
	TenantName    Reason = "tenant_name"    // a tenant name that cannot be a header
	CustomBuckets Reason = "custom_buckets" // a histogram of custom buckets for a receiver of 1.0
	TooLarge      Reason = "too_large"      // a single sample over the size of a request
	Relabelled    Reason = "relabelled"     // a sample whose series rules drop on purpose
	Rules         Reason = "rules"          // a sample whose series rules left without a valid name or label
	Panic         Reason = "panic"          // it triggered a bug of this program
)

// Telemetry is told what was left out. Its methods are called from many goroutines, with locks held: they must not
// block, nor call back.
type Telemetry interface {
	// Dropped counts n data points, or samples of one, that were not sent.
	Dropped(reason Reason, n int)
	// First follows the first Dropped of each reason but ReasonRelabelled and names a metric, for a line in the log.
	First(reason Reason, metric string)
	// Panicked reports a bug: the panic's value, where it happened, and how many points were lost.
	Panicked(cause any, stack []byte, n int)
}

// Counter counts what is left out, and reports the first of each reason.
type Counter struct {
	telemetry Telemetry

	mu    sync.Mutex
	known map[Reason]bool // reasons that were reported
}

// New makes a counter that reports to telemetry.
func New(telemetry Telemetry) *Counter {
	return &Counter{telemetry: telemetry, known: map[Reason]bool{}}
}

// Add counts n data points, or samples, of a metric.
func (c *Counter) Add(reason Reason, metric string, n int) {
	if n == 0 {
		return
	}
	c.telemetry.Dropped(reason, n)
	if reason == Relabelled {
		return
	}
	c.mu.Lock()
	known := c.known[reason]
	c.known[reason] = true
	c.mu.Unlock()
	if !known {
		c.telemetry.First(reason, metric)
	}
}

// Survive must be deferred around the processing of foreign data. If some data triggers a bug, only that data is lost,
// not the process and all that others have in its memory. What was being made is left to the garbage collector, since
// it may be half done.
func (c *Counter) Survive(lost func(cause any) int) {
	cause := recover()
	if cause == nil {
		return
	}
	n := lost(cause)
	c.telemetry.Panicked(cause, debug.Stack(), n)
	c.telemetry.Dropped(Panic, n)
}
