// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

// Package exemplars remembers which exemplars were sent.
package exemplars

import (
	"sync"

	"github.com/godwit-otel/godwit/exporter/remotewriteexporter/internal/encode/store"
)

const (
	// maxLastExemplars limits what is remembered: 2 MiB.
	maxLastExemplars = 1 << 18
	// nearby is how many entries are tried before one is replaced.
	nearby = 8
)

// Sent remembers the last exemplar of each series, to send it once. A target shows the same one until there is another:
// in most scrapes, most series have no new one. Prometheus does not store or forward repetitions either. Exemplars that
// do not fit are sent again, which does no harm.
type Sent struct {
	mu      sync.Mutex
	entries []lastExemplar // a power of two
	used    int
}

// lastExemplar is the last exemplar of a series. Both fields are hashes; that of the place also determines the entry.
// One in a few billion new exemplars is taken for a repetition.
type lastExemplar struct{ place, content uint32 }

// Repeats reports whether this exemplar was the last one at its place, and remembers it.
func (x *Sent) Repeats(of, what uint64) bool {
	place, content := max(store.Fold(of), 1), store.Fold(store.Mix(0, what)) // zero is none
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.used >= len(x.entries)/2 && len(x.entries) < maxLastExemplars {
		x.grow()
	}
	e := x.find(place)
	if e.place == place && e.content == content {
		return true
	}
	if e.place == 0 {
		x.used++
	}
	*e = lastExemplar{place, content}
	return false
}

// Forget forgets all: each last exemplar is sent once more.
func (x *Sent) Forget() {
	x.mu.Lock()
	defer x.mu.Unlock()
	clear(x.entries)
	x.used = 0
}

// find returns the entry of a place, a free one, or that of another place to be replaced.
func (x *Sent) find(place uint32) *lastExemplar {
	mask := uint32(len(x.entries) - 1)
	for i := range uint32(nearby) {
		if e := &x.entries[(place+i)&mask]; e.place == place || e.place == 0 {
			return e
		}
	}
	return &x.entries[(place+place>>29)&mask]
}

func (x *Sent) grow() {
	old := x.entries
	x.entries, x.used = make([]lastExemplar, max(2*len(old), 64)), 0
	for _, o := range old {
		if o.place == 0 {
			continue
		}
		e := x.find(o.place)
		if e.place == 0 {
			x.used++
		}
		*e = o
	}
}
