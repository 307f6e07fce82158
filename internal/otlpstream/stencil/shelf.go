// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package stencil

import (
	"bytes"
	"hash/maphash"
	"sync"
	"sync/atomic"
	"time"
)

const (
	// costOfStencil and costOfRoot are what they take beside the text, with their places in maps.
	costOfStencil = 128
	costOfRoot    = 128
	// ages are counted in steps. What has not been used for so many may go, and is looked for no more often than every few.
	age     = 30 * time.Second
	oldest  = 10
	between = 2
	// patience is how often in a row metrics may be others than the last time until they are looked at once in so many times.
	patience = 8
	once     = 16
)

// stencil is the encoded metrics of resources, all of a ResourceMetrics but the resource itself, with zeros where there are numbers.
type stencil struct {
	text  []byte
	key   uint64
	roots int // that have it; the lock guards it
}

func (s *stencil) cost() int64 { return int64(costOfStencil + len(s.text)) }

// root is a resource, by its hash.
type root struct {
	stencil atomic.Pointer[stencil]
	used    atomic.Int64 // when it last was, as ages count
	misses  atomic.Int64 // in a row
}

// shelf keeps for each resource what its metrics were last. When it is full, only what has not been used for some minutes makes room: what comes
// in turns and does not all fit must not push out what is there, or nothing would be known when it comes again.
type shelf struct {
	limit int64
	seed  maphash.Seed
	begun time.Time

	mu     sync.RWMutex
	used   int64
	byText map[uint64]*stencil
	roots  map[uint64]*root
	looked int64 // when it was last looked for what may go
}

func newShelf(limit int64) *shelf {
	return &shelf{limit: limit, seed: maphash.MakeSeed(), begun: time.Now(), byText: map[uint64]*stencil{}, roots: map[uint64]*root{}}
}

func (s *shelf) size() int64 {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.used
}

// now is the time as ages count, from 1.
func (s *shelf) now() int64 { return int64(time.Since(s.begun)/age) + 1 }

func (s *shelf) root(head []byte, now int64) *root {
	key := maphash.Bytes(s.seed, head)
	s.mu.RLock()
	r := s.roots[key]
	s.mu.RUnlock()
	if r != nil && r.used.Load() != now {
		r.used.Store(now)
	}
	return r
}

// known returns what is known of an encoded resource, and what its metrics were last, nil if that is not known.
func (s *shelf) known(head []byte, now int64) (*root, *stencil) {
	r := s.root(head, now)
	if r == nil {
		return nil, nil
	}
	return r, r.stencil.Load()
}

// hit records that the metrics of a resource were what they had been.
func (r *root) hit() {
	if r.misses.Load() != 0 {
		r.misses.Store(0)
	}
}

// missed records that the metrics of a resource, are not known as they are. It returns nil where it is not worth it to learn them.
func (s *shelf) missed(head []byte, now int64) *root {
	r := s.root(head, now)
	if r == nil {
		if r = s.meet(head, now); r == nil {
			return nil
		}
	}
	switch n := r.misses.Add(1); {
	case n <= patience || n%once == 0:
	case n == patience+1: // they are others each time
		s.mu.Lock()
		defer s.mu.Unlock()
		s.point(r, nil)
		return nil
	default:
		return nil
	}
	return r
}

// meet makes the root of a resource, if there is room for one.
func (s *shelf) meet(head []byte, now int64) *root {
	s.mu.Lock()
	defer s.mu.Unlock()
	key := maphash.Bytes(s.seed, head)
	if r := s.roots[key]; r != nil {
		return r
	}
	if !s.room(costOfRoot, now) {
		return nil
	}
	r := &root{}
	r.used.Store(now)
	s.used += costOfRoot
	s.roots[key] = r
	return r
}

// keep records that a text, which stays the caller's, is what the metrics of a resource are.
func (s *shelf) keep(r *root, text []byte) {
	key := maphash.Bytes(s.seed, text)
	s.mu.Lock()
	defer s.mu.Unlock()
	if known := s.byText[key]; known != nil {
		if bytes.Equal(known.text, text) {
			s.point(r, known)
		}
		return
	}
	s.point(r, nil)
	if !s.room(int64(costOfStencil+len(text)), s.now()) {
		return
	}
	made := &stencil{text: bytes.Clone(text), key: key}
	s.used += made.cost()
	s.byText[key] = made
	s.point(r, made)
}

// point has a root point to a stencil, or to none. The lock is held.
func (s *shelf) point(r *root, to *stencil) {
	was := r.stencil.Load()
	if was == to {
		return
	}
	if to != nil {
		to.roots++
	}
	r.stencil.Store(to)
	if was == nil {
		return
	}
	if was.roots--; was.roots == 0 {
		s.used -= was.cost()
		delete(s.byText, was.key)
	}
}

// room makes room, if it can. The lock is held.
func (s *shelf) room(cost, now int64) bool {
	if s.used+cost > s.limit && now-s.looked >= between {
		s.looked = now
		for key, r := range s.roots {
			if now-r.used.Load() > oldest {
				s.point(r, nil)
				s.used -= costOfRoot
				delete(s.roots, key)
			}
		}
	}
	return s.used+cost <= s.limit
}
