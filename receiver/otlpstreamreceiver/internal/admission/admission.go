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

// TooMuchInFlight is the error for clients when there is no room.
const TooMuchInFlight = "too much is in flight"

// A client that is refused is told to wait until there should be room, within these limits: long enough to recover,
// short enough for its queue.
const (
	LeastDelay = 100 * time.Millisecond
	maxDelay   = 30 * time.Second
)

// Admission limits the bytes in flight, and learns how long they stay: after that time, whatever is full now has
// drained. Decoded, what is in flight takes no more than decode.Usual for each byte.
type Admission struct {
	Limit int

	mu   sync.Mutex
	used int
	// stay is a moving average of how long requests stay.
	stay time.Duration
	// progress is when a request was last released, or admitted when there was none.
	progress time.Time
}

// Acquire takes n bytes, or returns how long to wait. A request alone is always admitted, however large.
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

// extend is acquire for n further bytes of a request that holds some already.
func (a *Admission) extend(held, n int, now time.Time) (wait time.Duration, ok bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.used > held && a.used+n > a.Limit {
		return a.patience(now), false
	}
	a.used += n
	return 0, true
}

// patience returns how long to wait. If nothing has moved for a while, it may not move for as long again.
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

// Hold is what one admitted request takes.
type Hold struct {
	of    *Admission
	bytes int
	since time.Time
	// Refused says that the request was admitted by its size, but that there was no room for decoding it.
	Refused bool
}

// MakeRoom takes what decoding the request needs, given its decoded size; an error asks the client to come again. A nil
// Hold has all the room it needs.
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
