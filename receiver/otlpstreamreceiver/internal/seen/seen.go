// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

// Package seen remembers which requests of a client the pipeline has accepted, so that none is passed on twice.
package seen

import (
	"context"
	"sync"
	"time"

	"github.com/godwit-otel/godwit/internal/otlpstream"
)

// seenNumbers is how many requests of a client's slot are remembered: nothing is known about earlier ones.
const seenNumbers = 4096

// Slot is what is known about the requests of one slot of a client, over all streams that it ever has: which ones the
// pipeline has accepted, and which it is working on. A request that is resent because its answer was lost keeps its
// number.
type Slot struct {
	mu      sync.Mutex
	highest uint64
	taken   [seenNumbers / 64]uint64 // for the numbers up to highest
	working map[uint64]chan struct{}

	// Guarded by the lock of the clients: how many streams there are, and when the last one ended.
	streams int
	used    time.Time
}

// Begin records that a request is being worked on, and returns a function to call with the result. If the same request
// is being worked on already, it waits for that; it returns nil if the pipeline has accepted it.
func (s *Slot) Begin(ctx context.Context, id uint64) (end func(taken bool)) {
	for {
		s.mu.Lock()
		if s.has(id) {
			s.mu.Unlock()
			return nil
		}
		other := s.working[id]
		if other == nil {
			s.working[id] = make(chan struct{})
			s.mu.Unlock()
			return func(taken bool) { s.end(id, taken) }
		}
		s.mu.Unlock()
		select {
		case <-other:
		case <-ctx.Done():
			return func(bool) {} // the receiver stops, and the pipeline will refuse it
		}
	}
}

func (s *Slot) end(id uint64, taken bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	close(s.working[id])
	delete(s.working, id)
	if taken {
		s.note(id)
	}
}

func (s *Slot) has(id uint64) bool {
	return id <= s.highest && s.highest-id < seenNumbers && s.taken[id/64%uint64(len(s.taken))]&(1<<(id%64)) != 0
}

func (s *Slot) note(id uint64) {
	switch {
	case id > s.highest && id-s.highest >= seenNumbers:
		clear(s.taken[:])
		s.highest = id
	case id > s.highest:
		for s.highest < id {
			s.highest++
			s.taken[s.highest/64%uint64(len(s.taken))] &^= 1 << (s.highest % 64)
		}
	case s.highest-id >= seenNumbers:
		return
	}
	s.taken[id/64%uint64(len(s.taken))] |= 1 << (id % 64)
}

// Clients are the slots of clients, by the name that clients give them.
type Clients struct {
	Most int // 0 remembers none

	mu     sync.Mutex
	byName map[clientKey]*Slot
}

type clientKey struct {
	signal otlpstream.Signal
	name   string
}

// Enter returns what is known about a slot, for a new stream. It is nil if nobody is remembered, if the client has no
// name for it, or if all remembered slots have streams. For a new one, the one that is unused for longest is forgotten.
func (c *Clients) Enter(signal otlpstream.Signal, name string) *Slot {
	const longest = 64
	if c.Most == 0 || name == "" || len(name) > longest {
		return nil
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	key := clientKey{signal, name}
	s := c.byName[key]
	if s == nil {
		if len(c.byName) >= c.Most && !c.forget() {
			return nil
		}
		s = &Slot{working: map[uint64]chan struct{}{}}
		if c.byName == nil {
			c.byName = map[clientKey]*Slot{}
		}
		c.byName[key] = s
	}
	s.streams++
	return s
}

func (c *Clients) forget() bool {
	var oldest clientKey
	var since time.Time
	for key, s := range c.byName {
		if s.streams == 0 && (since.IsZero() || s.used.Before(since)) {
			oldest, since = key, s.used
		}
	}
	delete(c.byName, oldest)
	return !since.IsZero()
}

// Leave records that a stream of a slot has ended; nil is ignored.
func (c *Clients) Leave(s *Slot) {
	if s == nil {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	s.streams--
	s.used = time.Now()
}
