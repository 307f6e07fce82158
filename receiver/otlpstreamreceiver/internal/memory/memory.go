// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

// Package memory divides the memory that streams may keep from message to message.
package memory

import (
	"sync"

	"github.com/godwit-otel/godwit/internal/otlpstream"
)

// Caps are the receiver's capabilities when there is memory.
const Caps = otlpstream.AllCaps | otlpstream.CapOrdered

const (
	// mostHistory is the largest history of a stream: for more than a thousand similar targets.
	mostHistory = 16 << 20
	// fewStreams is the least number of streams that memory is divided among.
	fewStreams = 8
)

// Memory is what streams may keep from message to message: the windows of packed payloads, and the histories of deltas.
type Memory struct {
	Limit int

	mu      sync.Mutex
	granted int
	streams int
}

// Grant returns what a new stream may keep, and its capabilities, which follow from that. What is left is for all later
// streams, so none gets more than its share: as streams come and go, all get the same, and half is free for the next.
func (m *Memory) Grant(signal otlpstream.Signal, client otlpstream.Caps) (otlpstream.Keep, otlpstream.Caps) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.streams++
	share := (m.Limit - m.granted) / max(fewStreams, m.streams)
	keep := otlpstream.Keep{Window: otlpstream.FullWindow}
	knows := client&otlpstream.CapDelta != 0 // others cannot use a smaller window
	window := share
	if signal == otlpstream.Metrics {
		window /= 4 // a history is worth more
	}
	for knows && keep.Memory() > window && keep.Window > otlpstream.LeastWindow {
		keep.Window /= 2
	}
	if keep.Memory() > share {
		return otlpstream.Keep{Window: otlpstream.NoWindow}, Caps &^ (otlpstream.CapWindow | otlpstream.CapDelta)
	}
	caps := Caps &^ otlpstream.CapDelta
	if knows && signal == otlpstream.Metrics {
		if history := min(mostHistory, share-keep.Memory()); history >= leastHistory {
			keep.History = history
			caps = Caps
		}
	}
	m.granted += keep.Memory()
	return keep, caps
}

// leastHistory is the smallest useful history: that of one small page.
const leastHistory = 16 << 10

// Release takes back what a stream was granted.
func (m *Memory) Release(keep otlpstream.Keep) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.streams--
	m.granted -= keep.Memory()
}
