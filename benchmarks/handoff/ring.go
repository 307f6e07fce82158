// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package handoff

import (
	"runtime"
	"sync"
	"sync/atomic"
	"time"
)

// cacheLine separates fields that different cores write.
const cacheLine = 64

// Ring is a bounded queue of many producers and one consumer. A producer claims a slot by its number, fills it and
// marks it as full, without a lock. An idle consumer sets how many items it needs, and is woken once when there are so
// many.
type Ring[T any] struct {
	slots []slot[T]
	mask  uint64
	wake  chan struct{}

	_    [cacheLine]byte
	tail atomic.Uint64 // the next slot to claim
	_    [cacheLine]byte
	// needed is the number of items that the consumer waits for, 0 while it is awake.
	needed atomic.Uint64
	_      [cacheLine]byte
	head   atomic.Uint64 // the next slot to empty; only the consumer changes it
	_      [cacheLine]byte

	// waiting is the number of producers that wait for a full ring.
	waiting atomic.Int64
	mu      sync.Mutex
	room    *sync.Cond
}

type slot[T any] struct {
	// turn is the slot's number when it may be filled, and one more when it is full.
	turn atomic.Uint64
	item T
	_    [cacheLine - 16]byte
}

// NewRing returns a ring; capacity must be a power of two.
func NewRing[T any](capacity int) *Ring[T] {
	r := &Ring[T]{slots: make([]slot[T], capacity), mask: uint64(capacity - 1), wake: make(chan struct{}, 1)}
	r.room = sync.NewCond(&r.mu)
	for i := range r.slots {
		r.slots[i].turn.Store(uint64(i))
	}
	return r
}

// Put adds an item. It waits while the ring is full.
func (r *Ring[T]) Put(item T) {
	for !r.offer(item) {
		r.mu.Lock()
		r.waiting.Add(1)
		for r.full() {
			r.signal(r.needed.Load()) // however many it waits for, no more will fit
			r.room.Wait()
		}
		r.waiting.Add(-1)
		r.mu.Unlock()
	}
}

func (r *Ring[T]) full() bool { return r.tail.Load()-r.head.Load() > r.mask }

func (r *Ring[T]) offer(item T) bool {
	for {
		n := r.tail.Load()
		s := &r.slots[n&r.mask]
		turn := s.turn.Load()
		if turn < n {
			return false // the item of the previous round is still in it
		}
		if turn > n || !r.tail.CompareAndSwap(n, n+1) {
			continue // another producer was faster
		}
		s.item = item
		s.turn.Store(n + 1)
		if need := r.needed.Load(); need > 0 && n+1-r.head.Load() >= need {
			r.signal(need)
		}
		return true
	}
}

// signal wakes the consumer, unless another producer does.
func (r *Ring[T]) signal(need uint64) {
	if need > 0 && r.needed.CompareAndSwap(need, 0) {
		r.wake <- struct{}{} // there is one signal per sleep, and the channel has room for it
	}
}

// Take waits until there are need items or the time has passed, then moves the available items to buf. It returns their
// number.
func (r *Ring[T]) Take(buf []T, need int, patience *time.Timer) (n int) {
	for {
		if n = r.drain(buf); n > 0 {
			return n
		}
		r.needed.Store(uint64(need))
		if r.tail.Load()-r.head.Load() >= uint64(need) {
			// Enough items came before the producers could see needed. A producer that was about to signal has done so,
			// or will not.
			if !r.needed.CompareAndSwap(uint64(need), 0) {
				<-r.wake
			}
			runtime.Gosched() // a slot may be claimed but not filled yet
			continue
		}
		select {
		case <-r.wake:
		case <-patience.C:
			if !r.needed.CompareAndSwap(uint64(need), 0) {
				<-r.wake
			}
			return r.drain(buf)
		}
	}
}

func (r *Ring[T]) drain(buf []T) (n int) {
	head := r.head.Load()
	var none T
	for n < len(buf) {
		s := &r.slots[head&r.mask]
		if s.turn.Load() != head+1 {
			break
		}
		buf[n], s.item = s.item, none
		s.turn.Store(head + uint64(len(r.slots)))
		head++
		n++
	}
	if n == 0 {
		return 0
	}
	r.head.Store(head)
	if r.waiting.Load() > 0 {
		r.mu.Lock()
		r.room.Broadcast()
		r.mu.Unlock()
	}
	return n
}
