// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package fastprometheusreceiver

import (
	"sync"
	"time"

	"github.com/godwit-otel/godwit/receiver/fastprometheusreceiver/internal/fetch"
)

// turn is how long a slot keeps its place, whatever its scrape does. Most pages are read and handed on in a small part
// of it.
const turn = 20 * time.Millisecond

// awayFactor limits, per processor, the pages that are being read without a place. There may be twice as many after
// pages that used to be quick have become slow.
const awayFactor = 4

// slots limits how many scrapes decompress, read and hand on pages at the same time: as many as there are processors
// have a place, so that the memory and the CPU that this takes depend on processors and not on the number of targets.
//
// No scrape keeps a place for long. After its turn it continues without: if it is reading, it asks for a place again
// before the next piece of the page; if the pipeline is taking its metrics, these count as waiting there. Both are
// limited, the first by number and the second by memory. At the limit a slot keeps its place, and new scrapes wait:
// except those of quick pages, a few more of which may begin.
type slots struct {
	waiting *backlog // in the pipeline
	most    int      // limit of slots that read without a place
	keep    int      // how many idle slots to keep

	mu       sync.Mutex
	decoders decoders
	free     int
	idle     []*slot
	queues   [3][]*slot // by rank
	grants   int
	away     int
}

// A rank is the priority for a place.
type rank int

const (
	quick rank = iota // its last page took less than a turn
	begun             // has already read some of its page
	slow              // its last page took longer, or there was none yet
)

// A slot is one scrape's.
type slot struct {
	home    *slots
	decoder *fetch.Decoder // from when it has a place until the page has been read
	timer   *time.Timer
	granted chan struct{}

	// The fields below are guarded by home.mu.
	placed  bool
	away    bool // it is reading without a place
	handing bool
	weight  int64     // of the metrics that are being handed on
	lent    bool      // these count as waiting in the pipeline
	until   time.Time // the end of its turn
}

func newSlots(processors int, waiting *backlog) *slots {
	return &slots{waiting: waiting, most: awayFactor * processors, keep: processors, free: processors, decoders: decoders{keep: processors}}
}

// take returns a slot with a place.
func (h *slots) take(r rank) *slot {
	h.mu.Lock()
	defer h.mu.Unlock()
	var s *slot
	if n := len(h.idle); n > 0 {
		s, h.idle[n-1] = h.idle[n-1], nil
		h.idle = h.idle[:n-1]
	} else {
		s = &slot{home: h, granted: make(chan struct{}, 1)}
		s.timer = time.AfterFunc(time.Hour, s.expire)
	}
	s.wait(r)
	s.decoder = h.decoders.take()
	return s
}

// wait begins a turn once there is a place.
func (s *slot) wait(r rank) {
	h := s.home
	h.queues[r] = append(h.queues[r], s)
	h.fill()
	s.sleep()
}

// sleep waits for the place.
func (s *slot) sleep() {
	h := s.home
	if !s.placed {
		h.mu.Unlock()
		<-s.granted
		h.mu.Lock()
	} else {
		<-s.granted
	}
	s.timer.Reset(turn)
}

// fill grants free places.
func (h *slots) fill() {
	for h.free > 0 {
		r, ok := h.next()
		if !ok {
			return
		}
		h.grant(r)
	}
}

// grant gives a free place to the next of a rank.
func (h *slots) grant(r rank) {
	q := h.queues[r]
	s := q[0]
	q[0] = nil
	if h.queues[r] = q[1:]; len(q) == 1 {
		h.queues[r] = q[:0] // reuse the array
	}
	h.free--
	s.placed = true
	if s.away {
		s.away = false
		h.away--
	}
	s.until = time.Now().Add(turn)
	s.granted <- struct{}{}
}

// next returns the rank that gets the next place, if there is one that may.
func (h *slots) next() (rank, bool) {
	order := [...]rank{quick, begun, slow}
	if h.grants++; h.grants%4 == 0 { // quick ones alone could block the others for ever
		order = [...]rank{begun, slow, quick}
	}
	for _, r := range order {
		if len(h.queues[r]) > 0 && (r != slow || h.away < h.most) {
			return r, true
		}
	}
	return 0, false
}

// goAway gives up the place of a slot that is reading, and reports whether it may.
func (s *slot) goAway() bool {
	h := s.home
	if h.away >= h.most && (len(h.queues[quick]) == 0 || h.away >= 2*h.most) {
		return false
	}
	s.placed, s.away = false, true
	h.away++
	h.free++
	h.fill()
	return true
}

// expire ends a turn, if that is possible without the scrape's help.
func (s *slot) expire() {
	h := s.home
	h.mu.Lock()
	defer h.mu.Unlock()
	switch left := time.Until(s.until); {
	case !s.placed:
	case left > 0: // this is already the next turn
		s.timer.Reset(left)
	case s.handing && h.waiting.enter(s.weight):
		s.placed, s.lent = false, true
		h.free++
		h.fill()
	case s.handing || !s.goAway():
		s.timer.Reset(turn)
	}
}

// pause is called between two pieces of a page. It returns when the slot has a place.
func (s *slot) pause() {
	h := s.home
	h.mu.Lock()
	defer h.mu.Unlock()
	if s.placed {
		switch {
		case time.Now().Before(s.until) || len(h.queues[quick])+len(h.queues[begun])+len(h.queues[slow]) == 0:
			return
		case s.goAway():
		case len(h.queues[begun]) > 0: // as many are away as allowed: it changes places with one of those
			s.placed, s.away = false, true
			h.away++
			h.free++
			h.grant(begun)
		default:
			return
		}
	}
	s.wait(begun)
}

// lend calls f, which hands on metrics of the given weight, and then releases the slot.
func (s *slot) lend(weight int64, f func()) {
	s.pause()
	h := s.home
	h.mu.Lock()
	s.handing, s.weight = true, weight
	s.giveDecoder()
	h.mu.Unlock()
	f()
	s.release()
}

func (s *slot) giveDecoder() {
	s.home.decoders.give(s.decoder)
	s.decoder = nil
}

// release gives the slot back.
func (s *slot) release() {
	h := s.home
	h.mu.Lock()
	defer h.mu.Unlock()
	s.timer.Stop()
	if s.placed {
		h.free++
	}
	if s.away {
		h.away--
	}
	if s.lent {
		h.waiting.leave(s.weight)
	}
	s.placed, s.away, s.handing, s.lent = false, false, false, false
	s.giveDecoder()
	if len(h.idle) < h.keep {
		h.idle = append(h.idle, s)
	}
	h.fill()
}
