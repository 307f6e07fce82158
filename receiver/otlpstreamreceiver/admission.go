// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package otlpstreamreceiver

import (
	"sync"
	"time"
)

// A client that is refused waits for as long as it should take until there is room, within these bounds: long enough
// to recover, short enough for its queue.
const (
	minDelay = 100 * time.Millisecond
	maxDelay = 30 * time.Second
)

// admission bounds the bytes in flight, and knows how long they stay. What is full now has drained after that time,
// however fast data comes.
type admission struct {
	limit int

	mu   sync.Mutex
	used int
	// stay is how long requests stay, on a moving average.
	stay time.Duration
	// progress is when any was released last, or taken after there was none.
	progress time.Time
}

// acquire takes n bytes, or tells how long to wait. What is alone is always taken, however large.
func (a *admission) acquire(n int, now time.Time) (wait time.Duration, ok bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.used > 0 && a.used+n > a.limit {
		// Where nothing has moved for a while, it may not move for as long again.
		return min(max(minDelay, a.stay, now.Sub(a.progress)), maxDelay), false
	}
	if a.used == 0 {
		a.progress = now
	}
	a.used += n
	return 0, true
}

// release gives back n bytes that were taken then.
func (a *admission) release(n int, then, now time.Time) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.used -= n
	a.stay += (now.Sub(then) - a.stay) / 8
	a.progress = now
}

func (a *admission) inFlight() int {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.used
}
