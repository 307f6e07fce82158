// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package admission

import (
	"errors"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// Pressure refuses requests of a signal, undecoded, for a while after memory_limiter has refused one. Decoding a
// request that will be refused takes the very memory that is short.
type Pressure struct {
	closed atomic.Bool // so that admitted requests need not take the lock

	mu    sync.Mutex
	delay time.Duration
	until time.Time
}

// LeastPressure and MostPressure are how long requests are refused. memory_limiter measures the memory now and then, by
// default every second. From the shortest time on, it doubles with each admitted request that is refused.
const (
	LeastPressure = 100 * time.Millisecond
	MostPressure  = 5 * time.Second
)

// Refused records that memory_limiter has refused a request, and returns how long its client must wait.
func (p *Pressure) Refused(now time.Time) time.Duration {
	p.mu.Lock()
	if !now.Before(p.until) { // else it was admitted before
		p.delay = min(max(2*p.delay, LeastPressure), MostPressure)
		p.until = now.Add(p.delay)
		p.closed.Store(true)
	}
	p.mu.Unlock()
	return p.Left(now)
}

// Taken records that a request was accepted: there is memory again.
func (p *Pressure) Taken() {
	if !p.closed.Load() {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.delay, p.until = 0, time.Time{}
	p.closed.Store(false)
}

// Left is how long a client must wait, 0 if requests are admitted. It is randomized, so that clients do not come back
// together.
func (p *Pressure) Left(now time.Time) time.Duration {
	if !p.closed.Load() {
		return 0
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	left := p.until.Sub(now)
	if left <= 0 {
		return 0
	}
	return left + rand.N(p.delay/2+1) //nolint:gosec // it is no secret
}

// MemoryLimited is the text of memory_limiter's error, which has no exported type.
const MemoryLimited = "data refused due to high memory usage"

// Limited reports whether an error is from a memory limiter, also among others.
func Limited(err error) bool {
	for err != nil {
		if several, ok := err.(interface{ Unwrap() []error }); ok {
			return slices.ContainsFunc(several.Unwrap(), Limited)
		}
		inner := errors.Unwrap(err)
		if inner == nil {
			return err.Error() == MemoryLimited
		}
		err = inner
	}
	return false
}
