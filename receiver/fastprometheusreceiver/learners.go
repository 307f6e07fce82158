// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package fastprometheusreceiver

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/godwit-otel/godwit/internal/memlimit"
)

const (
	// learnersFactor is how many learners, by processors, go on when there is no more room.
	learnersFactor = 2
	// learningTurn is how long one of these keeps its place: one whose page comes slowly may not keep others waiting.
	learningTurn = 200 * time.Millisecond
	// heldLineBytes is what a line takes that is held.
	heldLineBytes = 56
)

// learningShare is how much of the memory lines may take that are held until their pages have ended.
var learningShare = memlimit.Share{Part: 128, Least: 2 << 20, Most: 8 << 20}

// learners bounds what pages hold that come in parts and are not those that were expected. Each line that is read of such a page is held
// until the page's end has come; of one that is known, next to nothing is. After a start, or a rollout, all targets of a kind come at
// once. Once they hold more than there is room for, a few go on and the bodies of the others wait with their senders; nearly always
// the few make known what the others have.
type learners struct {
	most int64 // bytes

	mu      sync.Mutex
	held    int64
	free    int        // places beyond that
	waiting []*learner // the first for the longest time
}

// A learner is a page that holds lines. Its zero value holds none.
type learner struct {
	home     *learners
	held     int64
	goesOn   chan struct{} // while it waits
	isPlaced bool
	turn     *time.Timer
}

func newLearners(processors int, most int64) *learners {
	return &learners{most: most, free: learnersFactor * processors}
}

// hold notes how many lines a page holds.
func (l *learner) hold(lines int) {
	h := l.home
	h.mu.Lock()
	defer h.mu.Unlock()
	h.held += heldLineBytes*int64(lines) - l.held
	l.held = heldLineBytes * int64(lines)
}

// wait returns when the page may go on, and tells whether it may within a limit.
func (l *learner) wait(ctx context.Context, limit time.Duration) bool {
	h := l.home
	h.mu.Lock()
	if l.goesOn = make(chan struct{}); l.isPlaced {
		close(l.goesOn)
	} else {
		h.waiting = append(h.waiting, l)
		h.fill()
	}
	h.mu.Unlock()
	late := time.NewTimer(limit)
	defer late.Stop()
	select {
	case <-l.goesOn:
		return true
	default:
	}
	select {
	case <-l.goesOn:
		return true
	case <-late.C:
	case <-ctx.Done():
	}
	return false
}

// fill lets those go on for whom there is room.
func (h *learners) fill() {
	for len(h.waiting) > 0 && (h.held <= h.most || h.free > 0) {
		l := h.waiting[0]
		h.waiting = h.waiting[1:]
		if h.held > h.most {
			h.free--
			l.isPlaced = true
			l.turn = time.AfterFunc(learningTurn, l.giveUpPlace)
		}
		close(l.goesOn)
	}
}

func (l *learner) giveUpPlace() {
	l.home.mu.Lock()
	defer l.home.mu.Unlock()
	l.leavePlace()
}

func (l *learner) leavePlace() {
	if l.isPlaced {
		l.isPlaced = false
		l.turn.Stop()
		l.home.free++
		l.home.fill()
	}
}

// end gives back what the page has held.
func (l *learner) end() {
	h := l.home
	if h == nil {
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.waiting = slices.DeleteFunc(h.waiting, func(other *learner) bool { return other == l })
	h.held -= l.held
	l.held = 0
	l.leavePlace()
	h.fill()
}
