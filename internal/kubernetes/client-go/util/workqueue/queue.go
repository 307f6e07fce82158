// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

// Package workqueue has a queue in which nothing waits twice.
package workqueue

import (
	"sync"
)

// TypedQueueConfig names a queue.
type TypedQueueConfig[T comparable] struct {
	Name string
}

// A Typed queue hands out what was added, in order. What is added again while it waits waits once. What is added again while it is worked
// on waits until that is done.
type Typed[T comparable] struct {
	mu      sync.Mutex
	news    sync.Cond // something waits, or the queue has ended
	waiting []T
	dirty   map[T]struct{} // what waits, or is to wait once it is done
	working map[T]struct{}
	ended   bool
}

// NewTypedWithConfig makes an empty queue.
func NewTypedWithConfig[T comparable](TypedQueueConfig[T]) *Typed[T] {
	q := &Typed[T]{dirty: map[T]struct{}{}, working: map[T]struct{}{}}
	q.news.L = &q.mu
	return q
}

// Add lets an item wait.
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

// Get waits for an item. It is true when the queue has ended and nothing waits.
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
		q.waiting = nil // it has grown to the longest
	}
	q.working[item] = struct{}{}
	delete(q.dirty, item)
	return item, false
}

// Done tells that an item has been worked on.
func (q *Typed[T]) Done(item T) {
	q.mu.Lock()
	defer q.mu.Unlock()
	delete(q.working, item)
	if _, ok := q.dirty[item]; ok {
		q.waiting = append(q.waiting, item)
		q.news.Signal()
	}
}

// ShutDown ends the queue: nothing is added any more.
func (q *Typed[T]) ShutDown() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.ended = true
	q.news.Broadcast()
}
