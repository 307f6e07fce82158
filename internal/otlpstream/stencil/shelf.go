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
	// costOfStencil and costOfRoot are their costs in addition to the text, including their places in maps.
	costOfStencil = 128
	costOfRoot    = 128
	// Ages are counted in steps of length age. A root not used for oldest steps may be removed; such roots are looked
	// for when memory is short, at most every between steps.
	age     = 30 * time.Second
	oldest  = 10
	between = 2
	// patience is how many times in a row a resource's metrics may differ from the last time. After that, only every
	// once-th of them is learned.
	patience = 8
	once     = 16
)

// stencil is the encoded metrics of resources, all of a ResourceMetrics but the resource itself, with zeros where there are numbers.
type stencil struct {
	text  []byte
	key   uint64
	roots int // how many roots have it; guarded by the lock
}

func (s *stencil) cost() int64 { return int64(costOfStencil + len(s.text)) }

// root is a resource, by its hash.
type root struct {
	stencil atomic.Pointer[stencil]
	used    atomic.Int64 // age at which it was last used
	misses  atomic.Int64 // how many in a row
}

// shelf keeps for each resource the stencil of its last metrics. When it is full, only roots that have not been used
// for some minutes make room: resources that come in a cycle too long to fit must not push out the ones there are, or
// none would be known when it comes again.
type shelf struct {
	limit int64
	seed  maphash.Seed
	begun time.Time

	mu     sync.RWMutex
	used   int64
	byText map[uint64]*stencil
	roots  map[uint64]*root
	looked int64 // when it last looked for roots to remove
}

func newShelf(limit int64) *shelf {
	return &shelf{limit: limit, seed: maphash.MakeSeed(), begun: time.Now(), byText: map[uint64]*stencil{}, roots: map[uint64]*root{}}
}

func (s *shelf) size() int64 {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.used
}

// now returns the current age, from 1.
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

// known returns the root of an encoded resource and the stencil of its last metrics, nil if they are not known.
func (s *shelf) known(head []byte, now int64) (*root, *stencil) {
	r := s.root(head, now)
	if r == nil {
		return nil, nil
	}
	return r, r.stencil.Load()
}

// hit records that the metrics of a resource matched their stencil.
func (r *root) hit() {
	if r.misses.Load() != 0 {
		r.misses.Store(0)
	}
}

// missed records that the metrics of a resource did not match. It returns nil if it is not worth learning them.
func (s *shelf) missed(head []byte, now int64) *root {
	r := s.root(head, now)
	if r == nil {
		if r = s.meet(head, now); r == nil {
			return nil
		}
	}
	switch n := r.misses.Add(1); {
	case n <= patience || n%once == 0:
	case n == patience+1: // they differ each time
		s.mu.Lock()
		defer s.mu.Unlock()
		s.point(r, nil)
		return nil
	default:
		return nil
	}
	return r
}

// meet adds the root of a resource, if there is room for one.
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

// keep stores a text as the stencil of a resource's metrics. The text remains the caller's.
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

// point makes a root point to a stencil, or to none. The lock is held.
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

// room makes room, and reports whether it could. The lock is held.
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
