// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package otlpstreamexporter

import (
	"context"
	"sync"
	"time"
)

// line lets requests through one after the other, by their numbers. The queue hands them out in order, but to many
// goroutines, and which of these is the first to go on is anybody's guess.
type line struct {
	mu   sync.Mutex
	last uint64 // number given out
	// next is who may go on; passed are those behind it that have given up their turn before it came.
	next    uint64
	passed  map[uint64]struct{}
	waiting map[uint64]chan struct{}
	// claimed are those that somebody has come with.
	claimed map[uint64]struct{}
	// patience is how long one may hold up others that nobody has come with: see wait.
	patience time.Duration
}

func newLine() *line {
	return &line{
		next: 1, passed: map[uint64]struct{}{}, waiting: map[uint64]chan struct{}{},
		claimed: map[uint64]struct{}{}, patience: 5 * time.Second,
	}
}

// join returns the next number, from 1.
func (l *line) join() uint64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.last++
	return l.last
}

// wait returns when the number's turn has come, or with the error of ctx. A queue on disk that is opened with more than it
// may hold reads requests, gives them numbers by that, and drops them: for such a number nobody waits for ever.
func (l *line) wait(ctx context.Context, number uint64) error {
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

// skip passes for the next where nobody has come with its number since it was seen the last time.
func (l *line) skip(seen uint64) (next uint64) {
	l.mu.Lock()
	next = l.next
	_, claimed := l.claimed[next]
	l.mu.Unlock()
	if next == seen && !claimed {
		l.pass(next)
	}
	return next
}

// pass lets the next go on. A number may pass more than once, and before its turn.
func (l *line) pass(number uint64) {
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
