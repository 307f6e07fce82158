// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

// Package order sends requests in the order of the queue.
package order

import (
	"context"
	"sync"
	"sync/atomic"
	"time"
)

// Line lets requests through one after the other, by number. The queue hands them out in order, but to many goroutines,
// which continue in any order.
type Line struct {
	mu   sync.Mutex
	last uint64 // the last number given out
	// next is the number that may continue; passed are later ones that have given up their turn already.
	next    uint64
	passed  map[uint64]struct{}
	waiting map[uint64]chan struct{}
	// claimed are the numbers that somebody waits with.
	claimed map[uint64]struct{}
	// patience is how long a number that nobody waits with may hold up others: see Wait.
	patience time.Duration

	kept atomic.Bool   // the server keeps the order of a stream, as the last one has said
	told chan struct{} // closed when the first server has said so or not
	tell func()
}

// NewLine returns an empty line.
func NewLine() *Line {
	told := make(chan struct{})
	return &Line{
		told: told, tell: sync.OnceFunc(func() { close(told) }),
		next: 1, passed: map[uint64]struct{}{}, waiting: map[uint64]chan struct{}{},
		claimed: map[uint64]struct{}{}, patience: 5 * time.Second,
	}
}

// Tell records whether a server keeps the order of requests on a stream.
func (l *Line) Tell(kept bool) {
	l.kept.Store(kept)
	l.tell()
}

// Told is closed after the first Tell.
func (l *Line) Told() <-chan struct{} { return l.told }

// Kept reports whether the next request may follow on the stream before this one is answered.
func (l *Line) Kept() bool { return l.kept.Load() }

// Join returns the next number, from 1.
func (l *Line) Join() uint64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.last++
	return l.last
}

// Wait returns when it is the number's turn, or with the error of ctx. A queue on disk that is opened with more than it
// may hold reads requests, which gives them numbers, and drops them: nobody ever waits with such a number.
func (l *Line) Wait(ctx context.Context, number uint64) error {
	l.mu.Lock()
	l.claimed[number] = struct{}{}
	if number <= l.next {
		l.mu.Unlock()
		return nil
	}
	turn := make(chan struct{})
	l.waiting[number] = turn
	l.mu.Unlock()
	for seen := uint64(0); ; {
		late := time.NewTimer(l.patience)
		select {
		case <-turn:
			late.Stop()
			return nil
		case <-ctx.Done():
			late.Stop()
			return ctx.Err()
		case <-late.C:
			seen = l.skip(seen)
		}
	}
}

// skip skips the next number if nobody waits with it since it was last seen.
func (l *Line) skip(seen uint64) (next uint64) {
	l.mu.Lock()
	next = l.next
	_, claimed := l.claimed[next]
	l.mu.Unlock()
	if next == seen && !claimed {
		l.Pass(next)
	}
	return next
}

// Pass lets the next number continue. A number may pass more than once, and before its turn.
func (l *Line) Pass(number uint64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.waiting, number)
	if number < l.next {
		delete(l.claimed, number)
		return
	}
	l.passed[number] = struct{}{}
	for {
		if _, ok := l.passed[l.next]; !ok {
			break
		}
		delete(l.passed, l.next)
		delete(l.claimed, l.next)
		l.next++
	}
	if turn, ok := l.waiting[l.next]; ok {
		delete(l.waiting, l.next)
		close(turn)
	}
}
