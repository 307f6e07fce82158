// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package memo

import (
	"sync"
	"sync/atomic"
	"time"
)

const (
	// Generation is how long one lasts: what is not asked for in two is forgotten.
	Generation = 5 * time.Minute
	// Shortage is how long one lasts where something had no room.
	Shortage = time.Minute
)

// Table finds things by a hash and a comparison. Finding takes no lock.
type Table[T any] struct {
	limit  int
	size   func(*T) int
	tables atomic.Pointer[generations[T]]

	// mu guards all below, and is held by whoever changes slots.
	mu    sync.Mutex
	newer int // bytes of the newer generation
	older int // bytes of what only the older one has
	began time.Time

	short  atomic.Bool // something had no room in this generation
	unkept atomic.Int64
}

// generations are where things are. What is asked for is moved to the newer one.
type generations[T any] struct{ newer, older *slots[T] }

// New makes a table of things that take up limit bytes at the most, together with what it needs itself to find them. size says how
// many a thing does.
func New[T any](limit int, size func(*T) int) *Table[T] {
	t := &Table[T]{limit: limit, size: size, began: time.Now()}
	t.tables.Store(&generations[T]{newSlots[T](0), newSlots[T](0)})
	return t
}

// Find returns the thing with a hash of which is says so, or nil.
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

// slotSize is what finding a thing takes, on average.
const slotSize = 32

// Add remembers a thing that was not found. If somebody else has done so meanwhile, it returns that; nil if there is no room.
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

// Full says that something had no room a while ago, so that it is not worth to make another thing for Add.
func (t *Table[T]) Full() bool {
	if !t.short.Load() {
		return false
	}
	t.unkept.Add(1)
	return true
}

// move takes a thing of the older generation into the newer one.
func (t *Table[T]) move(hash uint64, v *T) {
	t.mu.Lock()
	defer t.mu.Unlock()
	g := t.tables.Load()
	same := func(o *T) bool { return o == v }
	if g.older.find(hash, same) == nil || g.newer.find(hash, same) != nil { // it has gone, or was moved, meanwhile
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

// Age begins a new generation if it is time. Call it now and then.
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

// Stats says how many things there are, how many bytes they take up, and how many had no room so far.
func (t *Table[T]) Stats() (things, bytes int, unkept int64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	g := t.tables.Load()
	return g.newer.used + g.older.used, t.newer + t.older, t.unkept.Load()
}
