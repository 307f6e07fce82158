// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package encode

import (
	"runtime/debug"
	"sync/atomic"
)

// Reason is why something was not sent.
type Reason string

// The reasons there are.
const (
	ReasonTemporality   Reason = "temporality"    // neither cumulative nor, unless enabled, delta
	ReasonName          Reason = "name"           // no valid metric name can be made
	ReasonLabel         Reason = "label"          // no valid label name can be made
	ReasonEmpty         Reason = "empty"          // a point of no value, or a metric of no type
	ReasonTime          Reason = "time"           // a point of no time
	ReasonScale         Reason = "scale"          // an exponential histogram too coarse for a native one
	ReasonBuckets       Reason = "buckets"        // a histogram whose buckets contradict themselves
	ReasonDeltaOrder    Reason = "delta_order"    // a delta point older than its predecessor
	ReasonDeltaLimit    Reason = "delta_limit"    // a delta series too many
	ReasonDuplicate     Reason = "duplicate"      // a second point of a series at the same time
	ReasonTenants       Reason = "tenants"        // a tenant too many
	ReasonTenantName    Reason = "tenant_name"    // a tenant that no header can name
	ReasonCustomBuckets Reason = "custom_buckets" // a histogram of custom buckets for a receiver of 1.0
	ReasonTooLarge      Reason = "too_large"      // a single sample over the size of a request
	ReasonRelabelled    Reason = "relabelled"     // a sample whose series rules drop: nobody wants it
	ReasonRules         Reason = "rules"          // a sample whose series rules leave no valid name or label
	ReasonPanic         Reason = "panic"          // it met a defect of this program
)

// Telemetry learns what was left out. Its methods are called from many goroutines, with locks held: they must not
// block, nor call the Encoder.
type Telemetry interface {
	// Dropped counts n data points, or samples of one, that were not sent.
	Dropped(reason Reason, n int)
	// First follows the first Dropped of each reason but ReasonRelabelled and names a metric: material for one line in the log.
	First(reason Reason, metric string)
	// Panicked tells of a defect: with what n points were lost, and where.
	Panicked(cause any, stack []byte, n int)
}

// Stats is the state of the caches.
type Stats struct {
	Series    int // data points recognised by place or hash, a histogram counting as one
	Resources int
	Symbols   int
	Tenants   int
	Deltas    int
	Hits      uint64 // data points recognised
	Misses    uint64 // data points translated
	Moves     uint64 // hits found by hash, because they did not follow their last neighbour
	Evictions uint64
}

type counters struct {
	hits, misses, moves, evictions atomic.Uint64
}

// Stats may be called at any time.
func (e *Encoder) Stats() Stats {
	s := Stats{
		Hits:      e.counters.hits.Load(),
		Misses:    e.counters.misses.Load(),
		Moves:     e.counters.moves.Load(),
		Evictions: e.counters.evictions.Load(),
		Symbols:   e.symbols.size(),
		Deltas:    e.deltas.size(),
	}
	e.mu.RLock()
	defer e.mu.RUnlock()
	e.tableMu.Lock()
	defer e.tableMu.Unlock()
	s.Series, s.Resources, s.Tenants = e.listed, e.resources, len(e.tenants)
	return s
}

// survive is deferred around what foreign data goes through. A defect that some data meets costs that data, not the
// process and all that others have in its memory. What was being made is left to the garbage collector: it may be half done.
func (e *Encoder) survive(lost func(cause any) int) {
	cause := recover()
	if cause == nil {
		return
	}
	n := lost(cause)
	e.telemetry.Panicked(cause, debug.Stack(), n)
	e.telemetry.Dropped(ReasonPanic, n)
}

func (e *Encoder) dropped(reason Reason, metric string, n int) {
	if n == 0 {
		return
	}
	e.telemetry.Dropped(reason, n)
	if reason == ReasonRelabelled {
		return
	}
	e.firstsMu.Lock()
	known := e.firsts[reason]
	e.firsts[reason] = true
	e.firstsMu.Unlock()
	if !known {
		e.telemetry.First(reason, metric)
	}
}
