// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package memo

import (
	"sync"
	"sync/atomic"
	"time"
)

const (
	// Generation is the length of a generation: what is not asked for in two of them is forgotten.
	Generation = 5 * time.Minute
	// Shortage is the length of a generation in which something found no room.
	Shortage = time.Minute
)

// Table finds things by a hash and a comparison. Finding takes no lock.
type Table[T any] struct {
	limit  int
	size   func(*T) int
	tables atomic.Pointer[generations[T]]

	// mu guards the fields below, and is held to change slots.
	mu    sync.Mutex
	newer int // bytes of the newer generation
	older int // bytes of what only the older one has
	began time.Time

	short  atomic.Bool // something had no room in this generation
	unkept atomic.Int64
}

// generations are the two tables. What is asked for is moved to the newer one.
type generations[T any] struct{ newer, older *slots[T] }

// New makes a table of things that take at most limit bytes, including the table itself. size returns the size of a
// thing.
func New[T any](limit int, size func(*T) int) *Table[T] {
	t := &Table[T]{limit: limit, size: size, began: time.Now()}
	t.tables.Store(&generations[T]{newSlots[T](0), newSlots[T](0)})
	return t
}

// Find returns the thing with a hash for which is returns true, or nil.
func (t *Table[T]) Find(hash uint64, is func(*T) bool) *T {
	g := t.tables.Load()
	if v := g.newer.find(hash, is); v != nil {
		return v
	}
	v := g.older.find(hash, is)
	if v != nil {
		t.move(hash, v)
	}
	return v
}

// slotSize is what the table takes per thing, on average.
const slotSize = 32

// Add adds a thing that was not found. If it was added concurrently, it returns that one; nil if there is no room.
func (t *Table[T]) Add(hash uint64, v *T, is func(*T) bool) *T {
	size := t.size(v) + slotSize
	t.mu.Lock()
	defer t.mu.Unlock()
	if other := t.tables.Load().newer.find(hash, is); other != nil {
		return other
	}
	if t.newer+t.older+size > t.limit {
		t.short.Store(true)
		t.unkept.Add(1)
		return nil
	}
	t.newer += size
	t.put(hash, v)
	return v
}

// Full reports that something found no room lately, so that making another thing for Add is useless.
func (t *Table[T]) Full() bool {
	if !t.short.Load() {
		return false
	}
	t.unkept.Add(1)
	return true
}

// move moves a thing of the older generation to the newer one.
func (t *Table[T]) move(hash uint64, v *T) {
	t.mu.Lock()
	defer t.mu.Unlock()
	g := t.tables.Load()
	same := func(o *T) bool { return o == v }
	if g.older.find(hash, same) == nil || g.newer.find(hash, same) != nil { // it is gone, or was moved, meanwhile
		return
	}
	size := t.size(v) + slotSize
	t.older -= size
	t.newer += size
	t.put(hash, v)
}

// put adds to the newer generation; the caller holds mu.
func (t *Table[T]) put(hash uint64, v *T) {
	g := t.tables.Load()
	if g.newer.full() {
		t.tables.Store(&generations[T]{g.newer.grown(), g.older})
		g = t.tables.Load()
	}
	g.newer.put(hash, v)
}

// Age begins a new generation if it is time. It must be called now and then.
func (t *Table[T]) Age(now time.Time) {
	t.mu.Lock()
	defer t.mu.Unlock()
	age := now.Sub(t.began)
	if age < Generation && (!t.short.Load() || age < Shortage) {
		return
	}
	g := t.tables.Load()
	t.older, t.newer, t.began = t.newer, 0, now
	t.short.Store(false)
	t.tables.Store(&generations[T]{newSlots[T](g.newer.used), g.newer})
}

// Stats returns the number of things, the bytes that they take, and how many found no room so far.
func (t *Table[T]) Stats() (things, bytes int, unkept int64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	g := t.tables.Load()
	return g.newer.used + g.older.used, t.newer + t.older, t.unkept.Load()
}
