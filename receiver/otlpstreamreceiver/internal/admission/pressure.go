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

// Pressure keeps requests of a signal out, undecoded, for a while after memory_limiter has refused one. To decode what is
// refused then takes the very memory that is short.
type Pressure struct {
	closed atomic.Bool // that nobody who is let in need take the lock

	mu    sync.Mutex
	delay time.Duration
	until time.Time
}

// LeastPressure and MostPressure are how long requests are kept out. memory_limiter looks at the memory once in a while, a second
// mostly. From the shortest time on, it doubles with each request that was let in and refused.
const (
	LeastPressure = 100 * time.Millisecond
	MostPressure  = 5 * time.Second
)

// Refused records that memory_limiter has refused a request, and returns how long its client is to wait.
func (p *Pressure) Refused(now time.Time) time.Duration {
	p.mu.Lock()
	if !now.Before(p.until) { // else it was let in before
		p.delay = min(max(2*p.delay, LeastPressure), MostPressure)
		p.until = now.Add(p.delay)
		p.closed.Store(true)
	}
	p.mu.Unlock()
	return p.Left(now)
}

// Taken records that a request was taken: there is memory again.
func (p *Pressure) Taken() {
	if !p.closed.Load() {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.delay, p.until = 0, time.Time{}
	p.closed.Store(false)
}

// Left is how long a client is to wait, 0 where requests are let in. It is longer for some, so that they do not come back
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

// MemoryLimited is what memory_limiter says, which has no type that others could know.
const MemoryLimited = "data refused due to high memory usage"

// Limited reports whether a memory limiter has its part in an error.
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
