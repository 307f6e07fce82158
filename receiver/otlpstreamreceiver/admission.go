// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package otlpstreamreceiver

import (
	"sync"
	"time"

	"github.com/godwit-otel/godwit/internal/otlpstream"
	"github.com/godwit-otel/godwit/receiver/otlpstreamreceiver/internal/decode"
)

const tooMuchInFlight = "too much is in flight"

// A client that is refused waits for as long as it should take until there is room, within these bounds: long enough
// to recover, short enough for its queue.
const (
	minDelay = 100 * time.Millisecond
	maxDelay = 30 * time.Second
)

// admission bounds the bytes in flight, and knows how long they stay. What is full now has drained after that time,
// however fast data comes. Decoded, what is in flight is no more than decode.Usual for each byte here.
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
		return a.patience(now), false
	}
	if a.used == 0 {
		a.progress = now
	}
	a.used += n
	return 0, true
}

// extend is acquire for n bytes more of what has held bytes already.
func (a *admission) extend(held, n int, now time.Time) (wait time.Duration, ok bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.used > held && a.used+n > a.limit {
		return a.patience(now), false
	}
	a.used += n
	return 0, true
}

// patience is how long to wait. Where nothing has moved for a while, it may not move for as long again.
func (a *admission) patience(now time.Time) time.Duration {
	return min(max(minDelay, a.stay, now.Sub(a.progress)), maxDelay)
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

// hold is what one request that was let in has of it.
type hold struct {
	of    *admission
	bytes int
	since time.Time
	// refused tells that the request was let in for its bytes, and that there was no room for what it is decoded to.
	refused bool
}

// makeRoom takes what a request needs that takes up so much memory decoded; an error asks its client to come again. Nil has all the
// room there is.
func (h *hold) makeRoom(weight int) error {
	if h == nil {
		return nil
	}
	n := decode.Charge(weight) - h.bytes
	if n <= 0 {
		return nil
	}
	wait, ok := h.of.extend(h.bytes, n, time.Now())
	if !ok {
		h.refused = true
		return otlpstream.Busy(tooMuchInFlight, wait).Err()
	}
	h.bytes += n
	return nil
}

func (h *hold) release() { h.of.release(h.bytes, h.since, time.Now()) }
