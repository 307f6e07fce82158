// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package fastprometheusreceiver

import (
	"context"
	"sync"
	"time"
)

const (
	// learnersFactor bounds the learners, by processors.
	learnersFactor = 2
	// learningTurn is how long a learner keeps its place: one whose page drips in holds little, and may not keep others waiting.
	learningTurn = time.Second
)

// learners bounds the pages that are read in parts while nothing of their kind is known. Each line that is read of such a page is held
// until the page's end has come; of one that is known, next to nothing is. After a start all targets of a kind come at once: the few
// that have a place make known what the others have, who begin when that is done, and whose bodies wait with their senders.
type learners struct {
	mu      sync.Mutex
	free    int
	waiting []*learner // the first for the longest time
}

// A learner has a place.
type learner struct {
	home    *learners
	granted chan struct{}
	turn    *time.Timer
	hasLeft bool
}

func newLearners(processors int) *learners { return &learners{free: learnersFactor * processors} }

// take returns a learner with a place, or nil when there is none within a limit.
func (h *learners) take(ctx context.Context, limit time.Duration) *learner {
	l := &learner{home: h, granted: make(chan struct{}, 1)}
	h.mu.Lock()
	if h.free > 0 {
		h.free--
		l.granted <- struct{}{}
	} else {
		h.waiting = append(h.waiting, l)
	}
	h.mu.Unlock()
	late := time.NewTimer(limit)
	defer late.Stop()
	select {
	case <-l.granted:
		l.turn = time.AfterFunc(learningTurn, l.leave)
		return l
	case <-late.C:
	case <-ctx.Done():
	}
	l.leave()
	return nil
}

// leave gives the place to the next, if that was not done.
func (l *learner) leave() {
	if l == nil {
		return
	}
	h := l.home
	h.mu.Lock()
	defer h.mu.Unlock()
	if l.hasLeft {
		return
	}
	l.hasLeft = true
	if l.turn != nil {
		l.turn.Stop()
	}
	for i, other := range h.waiting {
		if other == l { // it never had one
			h.waiting = append(h.waiting[:i], h.waiting[i+1:]...)
			return
		}
	}
	if len(h.waiting) == 0 {
		h.free++
		return
	}
	h.waiting[0].granted <- struct{}{}
	h.waiting = h.waiting[1:]
}
