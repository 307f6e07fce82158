// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package otlpstreamexporter

import (
	"time"

	"github.com/godwit-otel/godwit/exporter/otlpstreamexporter/internal/account"
	"github.com/godwit-otel/godwit/exporter/otlpstreamexporter/internal/tally"
	"github.com/godwit-otel/godwit/internal/redact"
)

// Snapshot is the state of an exporter at a moment, for display.
type Snapshot struct {
	Signal       string
	Transport    string
	Mode         string // as configured
	Destinations []DestinationSnapshot
}

// DestinationSnapshot is the state of one destination.
type DestinationSnapshot struct {
	Name     string
	Endpoint string
	// Healthy is false from a fault until the next answer, and Streaming while requests are sent one by one.
	Healthy, Streaming bool
	// MaxMessage is the size of the largest message that the server accepts, 0 if it has not announced that.
	MaxMessage int64

	// Items counts all items since the start by what happened to them. Received is the sum of all others.
	Items Items
	// InFlightRequests and InFlightBytes are sent but not acknowledged.
	InFlightRequests, InFlightBytes int64

	// Open is the number of streams that accept requests, Draining of those that are only read until they end.
	Open, Draining int
	Opened         int64
	Closed         map[string]int64 // by reason

	AckLatency     Latency
	Resent         int64 // requests
	Retryable      int64 // answers that asked for a retry
	Divided        int64 // requests sent in parts
	UnexpectedAcks int64
	// HeldFor is how much longer the destination must not be sent anything, and Throttled the total of such times.
	HeldFor, Throttled time.Duration
}

// Latency is the recent time to an answer.
type Latency struct {
	Count    int // number of answers in the percentiles
	P50, P99 time.Duration
}

// Items counts spans, data points or log records by their state.
type Items struct {
	Received, Queued, Pending, Acked int64

	Dropped map[string]int64 // by reason
}

// Snapshot returns the state of the exporter. It may be called at any time, from any goroutine.
func (e *streamExporter) Snapshot() Snapshot {
	s := Snapshot{Signal: e.signal.String(), Transport: e.cfg.Transport, Mode: e.cfg.Mode}
	for _, d := range e.dests {
		s.Destinations = append(s.Destinations, d.snapshot())
	}
	return s
}

func (d *destination) snapshot() DestinationSnapshot {
	b := d.account.Balance()
	s := DestinationSnapshot{
		Name: d.name, Endpoint: redact.URL(d.client.Endpoint),
		Healthy: d.server.IsHealthy(), Streaming: d.server.Streaming(),
		MaxMessage:       d.server.Largest(),
		Items:            Items{Received: b.Received, Queued: b.Queued, Pending: b.Pending, Acked: b.Acked, Dropped: map[string]int64{}},
		InFlightRequests: b.Requests, InFlightBytes: b.Bytes,
		Opened: d.tally.Opened.Load(), Closed: map[string]int64{},
		AckLatency:     Latency(d.tally.Acks.Snapshot()),
		Resent:         d.tally.Resent.Load(),
		Retryable:      d.tally.Retryable.Load(),
		Divided:        d.tally.Divided.Load(),
		UnexpectedAcks: d.tally.Unexpected.Load(),
		HeldFor:        max(0, d.gate.Left(time.Now())),
		Throttled:      time.Duration(d.tally.ThrottledFor.Load()),
	}
	for reason, n := range b.Dropped {
		if n > 0 {
			s.Items.Dropped[account.Reason(reason).String()] = n
		}
	}
	for reason := range d.tally.Closed {
		if n := d.tally.Closed[reason].Load(); n > 0 {
			s.Closed[tally.Ending(reason).String()] = n
		}
	}
	for _, slot := range d.lanes.all() {
		open, draining := slot.count()
		s.Open += open
		s.Draining += draining
	}
	return s
}
