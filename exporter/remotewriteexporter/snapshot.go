// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package remotewriteexporter

import (
	"maps"
	"sync/atomic"
	"time"
)

// Snapshot is the state of an exporter at a moment, for people to look at.
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
	Version      string // of the protocol now spoken
	Encoding     string
	Fallback     int // formats better than that which were turned down
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

// busy sums up the time that requests took.
type busy struct{ nanos atomic.Int64 }

func (b *busy) add(d time.Duration) { b.nanos.Add(int64(d)) }

// take returns the seconds of requests per second since the last take, which was interval ago.
func (b *busy) take(interval time.Duration) float64 {
	return float64(b.nanos.Swap(0)) / float64(interval)
}
