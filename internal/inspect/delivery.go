// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package inspect

import "time"

// Delivery is the state of an exporter's deliveries.
type Delivery struct {
	Destinations []Destination
	Shards       int // requests built at a time; 0 if not applicable
	CacheSeries  int // series whose encoding is cached
	CacheHits    uint64
	CacheMisses  uint64
	// Split means that destinations share the data. Otherwise each gets all of it.
	Split bool
}

// A Destination is one destination of an exporter.
type Destination struct {
	Name        string // without credentials and query
	Protocol    string // as currently used: "remote write 2.0", "otlp stream", "otlp unary"
	Transport   string // http, grpc, websocket
	Compression string
	Fallback    int // better formats that the destination refused
	LastError   string

	Queue    Queue
	InFlight InFlight

	// Taken counts samples, histograms, spans or records that were queued for it. It is the sum of Sent, Dropped and
	// Waiting.
	Taken     int64
	Waiting   int64            // in the queue and in flight
	Sent      int64            // acknowledged
	Dropped   map[string]int64 // lost, by reason
	Requests  int64
	Responses map[string]int64 // requests by status
	Retries   int64
	Resent    int64 // requests sent again on another stream
	RawBytes  int64 // of acknowledged requests before compression; negative if unknown
	WireBytes int64 // of all requests; negative if unknown

	// AckSeconds is the total time until the answers to Acks requests.
	AckSeconds float64
	Acks       int64
	// AckP50 and AckP99 are recent percentiles, if known.
	AckP50, AckP99 time.Duration

	BreakerOpen    bool
	ThrottledUntil time.Time // zero unless the destination asked for a pause
	Streams        []Stream
}

// A Queue is the queue of a destination.
type Queue struct {
	Items    int64 // requests or blocks
	Bytes    int64
	Capacity int64
	Unit     string // of the capacity: bytes, items, requests
	Age      time.Duration
	OnDisk   bool
}

// InFlight is what was sent but not acknowledged.
type InFlight struct {
	Requests    int64
	Bytes       int64
	MaxRequests int64
	MaxBytes    int64
}

// A Stream is one open stream to a destination.
type Stream struct {
	State   string // connecting, open, draining, waiting
	Since   time.Time
	Pending int // requests
	Acked   int64
}

// Intake is the state of a receiver's clients.
type Intake struct {
	Addresses     []string
	Streams       int
	MaxStreams    int
	InFlightBytes int64
	MaxInFlight   int64
	Requests      map[string]int64 // by outcome
	Last          Fault            // of a request, zero if there was none
}

// A Fault is an error with its time.
type Fault struct {
	At   time.Time
	Text string
}
