// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package memo

import "sync/atomic"

// slots is a hash table from which nothing is removed. Readers do not wait for those who add.
type slots[T any] struct {
	all  []slot[T] // a power of two, a third of it free
	used int       // guarded by those who add
}

// slot is written once: first the hash, then the thing; it is read in the opposite order.
type slot[T any] struct {
	hash  uint64
	thing atomic.Pointer[T]
}

const fewSlots = 64

// newSlots makes room for n things.
func newSlots[T any](n int) *slots[T] {
	size := fewSlots
	for 3*n > 2*size {
		size *= 2
	}
	return &slots[T]{all: make([]slot[T], size)}
}

func (s *slots[T]) find(hash uint64, is func(*T) bool) *T {
	mask := uint64(len(s.all) - 1)
	for i := hash & mask; ; i = (i + 1) & mask {
		o := &s.all[i]
		v := o.thing.Load()
		if v == nil {
			return nil
		}
		if o.hash == hash && is(v) {
			return v
		}
	}
}

func (s *slots[T]) full() bool { return 3*(s.used+1) > 2*len(s.all) }

func (s *slots[T]) put(hash uint64, v *T) {
	mask := uint64(len(s.all) - 1)
	i := hash & mask
	for s.all[i].thing.Load() != nil {
		i = (i + 1) & mask
	}
	s.used++
	s.all[i].hash = hash
	s.all[i].thing.Store(v)
}

// grown returns a larger copy.
func (s *slots[T]) grown() *slots[T] {
	n := newSlots[T](2 * s.used)
	for i := range s.all {
		if v := s.all[i].thing.Load(); v != nil {
			n.put(s.all[i].hash, v)
		}
	}
	return n
}
