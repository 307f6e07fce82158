// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

// Package workqueue has a queue that contains each item at most once.
package workqueue

import (
	"sync"
)

// TypedQueueConfig names a queue.
type TypedQueueConfig[T comparable] struct {
	Name string
}

// A Typed queue returns items in the order in which they were added. An item that is added again while it waits stays
// in its place. An item that is added again while it is processed waits until that is done.
type Typed[T comparable] struct {
	mu      sync.Mutex
	news    sync.Cond // signalled when something waits, or the queue has ended
	waiting []T
	dirty   map[T]struct{} // items that wait, or will wait once they are done
	working map[T]struct{}
	ended   bool
}

// NewTypedWithConfig makes an empty queue.
func NewTypedWithConfig[T comparable](TypedQueueConfig[T]) *Typed[T] {
	q := &Typed[T]{dirty: map[T]struct{}{}, working: map[T]struct{}{}}
	q.news.L = &q.mu
	return q
}

// Add adds an item.
func (q *Typed[T]) Add(item T) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if _, ok := q.dirty[item]; ok || q.ended {
		return
	}
	q.dirty[item] = struct{}{}
	if _, ok := q.working[item]; !ok {
		q.waiting = append(q.waiting, item)
		q.news.Signal()
	}
}

// Get waits for an item. ended is true if the queue has ended and is empty.
func (q *Typed[T]) Get() (item T, ended bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for len(q.waiting) == 0 && !q.ended {
		q.news.Wait()
	}
	if len(q.waiting) == 0 {
		return item, true
	}
	item = q.waiting[0]
	if q.waiting = q.waiting[1:]; len(q.waiting) == 0 {
		q.waiting = nil // free the memory of the longest queue
	}
	q.working[item] = struct{}{}
	delete(q.dirty, item)
	return item, false
}

// Done marks an item as processed.
func (q *Typed[T]) Done(item T) {
	q.mu.Lock()
	defer q.mu.Unlock()
	delete(q.working, item)
	if _, ok := q.dirty[item]; ok {
		q.waiting = append(q.waiting, item)
		q.news.Signal()
	}
}

// ShutDown ends the queue: nothing can be added any more.
func (q *Typed[T]) ShutDown() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.ended = true
	q.news.Broadcast()
}
