// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package remotewriteexporter

import (
	"maps"
	"sync"
	"time"
)

// Snapshot is the state of an exporter at a moment, for display.
type Snapshot struct {
	Shards       int
	CacheSeries  int
	CacheHits    uint64
	CacheMisses  uint64
	Destinations []DestinationSnapshot
}

// DestinationSnapshot is the state of one destination.
type DestinationSnapshot struct {
	Name         string
	Version      string // of the protocol in use
	Encoding     string
	Fallback     int // number of better formats that were refused
	BreakerOpen  bool
	QueueBytes   int64
	QueueSize    int64
	QueuedBlocks int
	InFlight     int
	OldestAge    time.Duration
	Outcome      Outcome
}

// Snapshot may be called at any time, from any goroutine.
func (e *remoteWrite) Snapshot() Snapshot {
	e.mu.Lock()
	defer e.mu.Unlock()
	stats := e.intake.encoder.Stats()
	s := Snapshot{
		Shards: e.intake.shards.count(), CacheSeries: stats.Series, CacheHits: stats.Hits, CacheMisses: stats.Misses,
	}
	for i, d := range e.destinations {
		queued := e.queue.Stats(i)
		fallback, format := d.Fallback()
		s.Destinations = append(s.Destinations, DestinationSnapshot{
			Name:         e.telemetry.destinations[i].name,
			Version:      format.Version.String(),
			Encoding:     format.Compression.String(),
			Fallback:     fallback,
			BreakerOpen:  d.BreakerOpen(),
			QueueBytes:   queued.Bytes,
			QueueSize:    queued.Capacity,
			QueuedBlocks: queued.Blocks,
			InFlight:     queued.Leased,
			OldestAge:    age(queued),
			Outcome:      e.telemetry.destinations[i].snapshot(),
		})
	}
	return s
}

func (d *destinationTelemetry) snapshot() Outcome {
	d.mu.Lock()
	defer d.mu.Unlock()
	o := d.outcome
	o.Dropped, o.Requests = maps.Clone(o.Dropped), maps.Clone(o.Requests)
	return o
}

// busy sums up the duration of requests.
type busy struct {
	mu       sync.Mutex
	took     time.Duration // by all requests
	settling time.Duration // by those that were accepted or refused: failures are answered sooner, or not at all
	settled  int
	latency  float64 // at the last take with such requests
}

func (b *busy) add(d time.Duration, settled bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.took += d
	if settled {
		b.settling += d
		b.settled++
	}
}

// take returns the seconds of requests per second since the last take, and how many seconds a successful request takes,
// as far as known.
func (b *busy) take(ago time.Duration) (busy, latency float64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	busy = b.took.Seconds() / ago.Seconds()
	if b.settled > 0 {
		b.latency = b.settling.Seconds() / float64(b.settled)
	}
	b.took, b.settling, b.settled = 0, 0, 0
	return busy, b.latency
}
