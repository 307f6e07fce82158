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
	// learnersFactor is how many learners per processor continue when there is no room left.
	learnersFactor = 2
	// learningTurn is how long one of these may take: a page that comes slowly must not keep others waiting.
	learningTurn = 200 * time.Millisecond
	// heldLineBytes is what a held line takes.
	heldLineBytes = 56
)

// learningShare is the share of the memory that held lines may take.
var learningShare = memlimit.Share{Part: 128, Least: 2 << 20, Most: 8 << 20}

// learners limits what pages hold that come in parts and are not as expected. Each unexpected line of such a page is
// held until the page's end; expected lines take next to nothing. After a start or a rollout, all targets of a kind
// come at once. When they hold more than there is room for, a few continue, and the others stop reading, so that their
// senders wait; nearly always, what the few learn makes the lines of the others known.
type learners struct {
	most int64 // bytes

	mu      sync.Mutex
	held    int64
	free    int        // places in excess of that
	waiting []*learner // the one that waits longest first
}

// A learner is a page that holds lines. Its zero value holds none.
type learner struct {
	home     *learners
	held     int64
	goesOn   chan struct{} // closed when it may continue; nil unless it waits
	isPlaced bool
	turn     *time.Timer
}

func newLearners(processors int, most int64) *learners {
	return &learners{most: most, free: learnersFactor * processors}
}

// hold records how many lines a page holds.
func (l *learner) hold(lines int) {
	h := l.home
	h.mu.Lock()
	defer h.mu.Unlock()
	h.held += heldLineBytes*int64(lines) - l.held
	l.held = heldLineBytes * int64(lines)
}

// wait returns when the page may continue, and reports whether that was within limit.
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

// fill lets learners continue for which there is room.
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

// end releases what the page has held.
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
