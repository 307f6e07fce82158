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
	Empty         Reason = "empty"          // a point of no value, or a metric of no type
	Time          Reason = "time"           // a point of no time
	Scale         Reason = "scale"          // an exponential histogram too coarse for a native one
	Buckets       Reason = "buckets"        // a histogram whose buckets contradict themselves
	DeltaOrder    Reason = "delta_order"    // a delta point older than its predecessor
	DeltaLimit    Reason = "delta_limit"    // a delta series too many
	Duplicate     Reason = "duplicate"      // a second point of a series at the same time
	Tenants       Reason = "tenants"        // a tenant too many
	TenantName    Reason = "tenant_name"    // a tenant that no header can name
	CustomBuckets Reason = "custom_buckets" // a histogram of custom buckets for a receiver of 1.0
	TooLarge      Reason = "too_large"      // a single sample over the size of a request
	Relabelled    Reason = "relabelled"     // a sample whose series rules drop: nobody wants it
	Rules         Reason = "rules"          // a sample whose series rules leave no valid name or label
	Panic         Reason = "panic"          // it met a defect of this program
)

// Telemetry learns what was left out. Its methods are called from many goroutines, with locks held: they must not
// block, nor call whoever counts.
type Telemetry interface {
	// Dropped counts n data points, or samples of one, that were not sent.
	Dropped(reason Reason, n int)
	// First follows the first Dropped of each reason but ReasonRelabelled and names a metric: material for one line in the log.
	First(reason Reason, metric string)
	// Panicked tells of a defect: with what n points were lost, and where.
	Panicked(cause any, stack []byte, n int)
}

// Counter counts what is left out, and names the first of each reason.
type Counter struct {
	telemetry Telemetry

	mu    sync.Mutex
	known map[Reason]bool // there was something to count
}

// New makes a counter that tells telemetry.
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

// Survive is deferred around what foreign data goes through. A defect that some data meets costs that data, not the
// process and all that others have in its memory. What was being made is left to the garbage collector: it may be half done.
func (c *Counter) Survive(lost func(cause any) int) {
	cause := recover()
	if cause == nil {
		return
	}
	n := lost(cause)
	c.telemetry.Panicked(cause, debug.Stack(), n)
	c.telemetry.Dropped(Panic, n)
}
