// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package otlpstream

import "time"

// Pending is the table of requests that are sent and not acknowledged, by ID and by age. It numbers them, too: one
// table serves a stream slot through all the streams the slot ever has, so a late answer on an old stream is never
// mistaken. It is not safe for concurrent use.
type Pending[T any] struct {
	last uint64
	byID map[uint64]*Entry[T]
	// front is a ring in order of sending: front.next was sent first.
	front Entry[T]
}

// Entry is a request in the table.
type Entry[T any] struct {
	ID    uint64
	Sent  time.Time
	Value T

	prev, next *Entry[T]
}

// NewPending returns an empty table.
func NewPending[T any]() *Pending[T] {
	p := &Pending[T]{byID: map[uint64]*Entry[T]{}}
	p.front.prev, p.front.next = &p.front, &p.front
	return p
}

// Len returns the number of requests in the table.
func (p *Pending[T]) Len() int { return len(p.byID) }

// Add gives a request its ID, one more than the last, and keeps it.
func (p *Pending[T]) Add(v T, now time.Time) *Entry[T] {
	p.last++
	e := &Entry[T]{ID: p.last, Value: v}
	p.byID[e.ID] = e
	p.link(e, now)
	return e
}

// Resent records that a request is sent again, under the same ID.
func (p *Pending[T]) Resent(e *Entry[T], now time.Time) {
	unlink(e)
	p.link(e, now)
}

// Holds reports whether the request is still in the table.
func (p *Pending[T]) Holds(e *Entry[T]) bool { return p.byID[e.ID] == e }

// Find returns a request, or nil if there is none with that ID.
func (p *Pending[T]) Find(id uint64) *Entry[T] { return p.byID[id] }

// Take removes a request and returns it, or nil if there is none with that ID.
func (p *Pending[T]) Take(id uint64) *Entry[T] {
	e := p.byID[id]
	if e != nil {
		delete(p.byID, id)
		unlink(e)
	}
	return e
}

// Oldest returns the request that was sent first, or nil.
func (p *Pending[T]) Oldest() *Entry[T] {
	if len(p.byID) == 0 {
		return nil
	}
	return p.front.next
}

// All iterates in the order of sending. The current entry may be taken or resent.
func (p *Pending[T]) All(yield func(*Entry[T]) bool) {
	last := p.front.prev
	for e := p.front.next; e != &p.front; {
		next := e.next
		if !yield(e) || e == last {
			return
		}
		e = next
	}
}

func (p *Pending[T]) link(e *Entry[T], now time.Time) {
	e.Sent = now
	e.prev, e.next = p.front.prev, &p.front
	e.prev.next, e.next.prev = e, e
}

func unlink[T any](e *Entry[T]) {
	e.prev.next, e.next.prev = e.next, e.prev
	e.prev, e.next = nil, nil
}
