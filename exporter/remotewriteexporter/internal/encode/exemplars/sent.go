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
	// bucket is how many entries are side by side: a line of the CPU's cache.
	bucket = 8
)

// Sent remembers the last exemplar of each series, to send it once. A target shows the same one until there is another:
// in most scrapes, most series have no new one. Prometheus does not store or forward repetitions either. Exemplars that
// do not fit are sent again, which does no harm.
type Sent struct {
	mu      sync.Mutex
	entries []lastExemplar // buckets
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
	if x.used >= len(x.entries)/4*3 && len(x.entries) < maxLastExemplars {
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

// find returns the entry of a place, a free one, or that of another place to be replaced. A place has two buckets, and a
// new entry gets the emptier one: so three quarters of the entries may be in use, and next to none is replaced.
func (x *Sent) find(place uint32) *lastExemplar {
	one, other := x.bucket(place), x.bucket(place*0x9e3779b1)
	used, otherUsed := 0, 0
	for i := range one {
		switch {
		case one[i].place == place:
			return &one[i]
		case other[i].place == place:
			return &other[i]
		default:
		}
		if one[i].place != 0 {
			used++
		}
		if other[i].place != 0 {
			otherUsed++
		}
	}
	if otherUsed < used {
		one, used = other, otherUsed
	}
	if used < bucket {
		return &one[used]
	}
	return &one[place%bucket]
}

// bucket returns the bucket of a hash. Its first entries are in use, the others are free.
func (x *Sent) bucket(hash uint32) []lastExemplar {
	at := int(uint64(hash)*uint64(len(x.entries)/bucket)>>32) * bucket
	return x.entries[at : at+bucket : at+bucket]
}

func (x *Sent) grow() {
	old := x.entries
	n := len(old) + len(old)/4
	x.entries, x.used = make([]lastExemplar, min(max(n-n%bucket, 8*bucket), maxLastExemplars)), 0
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
