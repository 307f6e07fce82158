// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package inspect

import "time"

// Delivery is what an exporter does for its destinations.
type Delivery struct {
	Destinations []Destination
	Shards       int // how many requests are built at a time; 0 where it does not apply
	CacheSeries  int // whose encoding is remembered
	CacheHits    uint64
	CacheMisses  uint64
	// Split says that destinations share the data. Otherwise each gets all of it.
	Split bool
}

// A Destination is one place that data is sent to.
type Destination struct {
	Name        string // without credentials and query
	Protocol    string // as it is spoken now: "remote write 2.0", "otlp stream", "otlp unary"
	Transport   string // http, grpc, websocket
	Compression string
	Fallback    int // better formats that the destination turned down
	LastError   string

	Queue    Queue
	InFlight InFlight

	// Taken are samples, histograms, spans or records that were queued for it, and is the sum of Sent, Dropped and Waiting.
	Taken     int64
	Waiting   int64            // those in the queue and in flight
	Sent      int64            // those that were acknowledged
	Dropped   map[string]int64 // those that were lost, by reason
	Requests  int64
	Responses map[string]int64 // requests by status
	Retries   int64
	Resent    int64 // requests that were sent again on another stream
	RawBytes  int64 // of what was acknowledged, before compression; negative if it is not known
	WireBytes int64 // of all requests; negative if it is not known

	// AckSeconds is the sum of the times that Acks requests took to be answered.
	AckSeconds float64
	Acks       int64
	// AckP50 and AckP99 are lately, where they are known.
	AckP50, AckP99 time.Duration

	BreakerOpen    bool
	ThrottledUntil time.Time // zero unless the destination asked for a pause
	Streams        []Stream
}

// A Queue is what waits for a destination.
type Queue struct {
	Items    int64 // requests or blocks
	Bytes    int64
	Capacity int64
	Unit     string // of the capacity: bytes, items, requests
	Age      time.Duration
	OnDisk   bool
}

// InFlight is what was sent and is not acknowledged.
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

// Intake is what a receiver takes from its clients.
type Intake struct {
	Addresses     []string
	Streams       int
	MaxStreams    int
	InFlightBytes int64
	MaxInFlight   int64
	Requests      map[string]int64 // by outcome
	Last          Fault            // of a request, zero if there was none
}

// A Fault is what went wrong, and when.
type Fault struct {
	At   time.Time
	Text string
}
