// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

// Package admission admits requests, or tells their clients how long to wait: by the bytes that are in flight, and by whether memory
// is short behind the receiver. It decides before any work is done for a request.
package admission

import (
	"sync"
	"time"

	"github.com/godwit-otel/godwit/internal/otlpstream"
	"github.com/godwit-otel/godwit/receiver/otlpstreamreceiver/internal/decode"
)

// TooMuchInFlight is what clients are told where there is no room.
const TooMuchInFlight = "too much is in flight"

// A client that is refused waits for as long as it should take until there is room, within these bounds: long enough to recover,
// short enough for its queue.
const (
	LeastDelay = 100 * time.Millisecond
	maxDelay   = 30 * time.Second
)

// Admission limits the bytes in flight, and knows how long they stay. What is full now has drained after that time,
// however fast data comes. Decoded, what is in flight is no more than decode.Usual for each byte here.
type Admission struct {
	Limit int

	mu   sync.Mutex
	used int
	// stay is how long requests stay, on a moving average.
	stay time.Duration
	// progress is when any was released last, or taken after there was none.
	progress time.Time
}

// Acquire takes n bytes, or tells how long to wait. What is alone is always taken, however large.
func (a *Admission) Acquire(n int, now time.Time) (held *Hold, wait time.Duration) {
	if wait, ok := a.acquire(n, now); !ok {
		return nil, wait
	}
	return &Hold{of: a, bytes: n, since: now}, 0
}

func (a *Admission) acquire(n int, now time.Time) (wait time.Duration, ok bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.used > 0 && a.used+n > a.Limit {
		return a.patience(now), false
	}
	if a.used == 0 {
		a.progress = now
	}
	a.used += n
	return 0, true
}

// extend is acquire for n bytes more of what has held bytes already.
func (a *Admission) extend(held, n int, now time.Time) (wait time.Duration, ok bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.used > held && a.used+n > a.Limit {
		return a.patience(now), false
	}
	a.used += n
	return 0, true
}

// patience is how long to wait. Where nothing has moved for a while, it may not move for as long again.
func (a *Admission) patience(now time.Time) time.Duration {
	return min(max(LeastDelay, a.stay, now.Sub(a.progress)), maxDelay)
}

// release gives back n bytes that were taken then.
func (a *Admission) release(n int, then, now time.Time) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.used -= n
	a.stay += (now.Sub(then) - a.stay) / 8
	a.progress = now
}

// InFlight is how many bytes there are.
func (a *Admission) InFlight() int {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.used
}

// Hold is what one request that was let in has of it.
type Hold struct {
	of    *Admission
	bytes int
	since time.Time
	// Refused tells that the request was let in for its bytes, and that there was no room for what it is decoded to.
	Refused bool
}

// MakeRoom takes what a request needs that takes up so much memory decoded; an error asks its client to come again. Nil has all the
// room there is.
func (h *Hold) MakeRoom(weight int) error {
	if h == nil {
		return nil
	}
	n := decode.Charge(weight) - h.bytes
	if n <= 0 {
		return nil
	}
	wait, ok := h.of.extend(h.bytes, n, time.Now())
	if !ok {
		h.Refused = true
		return otlpstream.Busy(TooMuchInFlight, wait).Err()
	}
	h.bytes += n
	return nil
}

// Release gives it all back.
func (h *Hold) Release() { h.of.release(h.bytes, h.since, time.Now()) }
