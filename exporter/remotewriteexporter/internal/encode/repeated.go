// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package encode

import (
	"encoding/binary"
	"hash/maphash"
	"sync"

	"go.opentelemetry.io/collector/pdata/pmetric"
)

const (
	// maxLastExemplars bounds what is remembered: 2 MiB.
	maxLastExemplars = 1 << 18
	// nearby is how many entries may be another's before one is replaced.
	nearby = 8
)

// lastExemplars remembers the last exemplar of each series, to send it once. A target shows the same one until there is
// another: in most scrapes of most series, nothing is new. Prometheus does not store such a repetition, and does not
// write it to anybody. What is not remembered for want of room is sent again, which harms nobody.
type lastExemplars struct {
	mu      sync.Mutex
	entries []lastExemplar // a power of two
	used    int
}

// lastExemplar is what was last in a place, an exemplar's among those of a series. Both are hashes, of which that of the place also says
// where to look: one in a few billions of new exemplars is taken for one that was there.
type lastExemplar struct{ place, content uint32 }

// repeats says whether this exemplar was in its place before, and remembers it.
func (x *lastExemplars) repeats(of, what uint64) bool {
	place, content := max(fold(of), 1), fold(mix(0, what)) // zero is none
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

// forget forgets all: what was sent last is sent once more.
func (x *lastExemplars) forget() {
	x.mu.Lock()
	defer x.mu.Unlock()
	clear(x.entries)
	x.used = 0
}

// ForgetExemplars says that exemplars may not have come where they were to go, after all: each that a series shows is taken for new
// once more. They are remembered as they are encoded, and what becomes of that is only known later.
func (e *Encoder) ForgetExemplars() { e.sent.forget() }

// find returns the entry of a place, an empty one for it, or that of another to be replaced.
func (x *lastExemplars) find(place uint32) *lastExemplar {
	mask := uint32(len(x.entries) - 1)
	for i := range uint32(nearby) {
		if e := &x.entries[(place+i)&mask]; e.place == place || e.place == 0 {
			return e
		}
	}
	return &x.entries[(place+place>>29)&mask]
}

func (x *lastExemplars) grow() {
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

// placeOfExemplar is that of the i-th one of a point, of a series of the resource at hand.
func (w *walk) placeOfExemplar(s *series, i int) uint64 {
	return mix(maphash.Comparable(w.e.seed, deltaKey{s, w.s.labels}), uint64(i))
}

// contentOf is a hash of an exemplar. One of no time has got that of its point, each time another, which says nothing.
func (w *walk) contentOf(x pmetric.Exemplar, value uint64, time, pointTime int64) uint64 {
	if time == pointTime {
		time = 0
	}
	trace, span := x.TraceID(), x.SpanID()
	h := mix(mix(0, value), uint64(time))
	h = mix(mix(h, binary.LittleEndian.Uint64(trace[:8])), binary.LittleEndian.Uint64(trace[8:]))
	return w.e.hashMap(mix(h, binary.LittleEndian.Uint64(span[:])), x.FilteredAttributes())
}
