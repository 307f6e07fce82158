// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package send

import (
	"context"
	"sync"
	"time"
)

// Breaker opens after consecutive failures and then lets one probe through at a time.
type Breaker struct {
	// Failures is how many consecutive failures open it; 0 never does.
	Failures int
	// OpenFor is how long it stays open before a probe.
	OpenFor time.Duration
}

// gate decides when a request may be made. All shards of a destination pass through one.
type gate struct {
	cfg Breaker

	mu       sync.Mutex
	failures int
	open     bool
	probing  bool
	until    time.Time     // nothing passes before
	asked    time.Time     // nor before this, which the destination asked for
	well     time.Time     // when it last answered normally
	changed  chan struct{} // closed and replaced when a change of these may let somebody pass
}

func newGate(cfg Breaker) *gate { return &gate{cfg: cfg, changed: make(chan struct{})} }

// enter waits until a request may be made. Exactly one of leave, succeeded and failed follows.
func (g *gate) enter(ctx context.Context) error {
	for {
		if err := ctx.Err(); err != nil {
			return err
		}
		g.mu.Lock()
		wait, changed := time.Until(g.until), g.changed
		if wait <= 0 && (!g.open || !g.probing) {
			g.probing = g.open
			g.mu.Unlock()
			return nil
		}
		g.mu.Unlock()
		if wait <= 0 {
			select {
			case <-changed:
			case <-ctx.Done():
				return ctx.Err()
			}
			continue
		}
		if err := sleep(ctx, wait); err != nil {
			return err
		}
	}
}

// leave ends a request that showed nothing about the destination.
func (g *gate) leave() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.probing = false
	g.wake()
}

// succeeded ends a request that the destination answered.
func (g *gate) succeeded() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.failures, g.open, g.probing, g.well = 0, false, false, time.Now()
	g.wake()
}

// servesSome reports whether the destination answered within the longest time that the breaker stays open.
func (g *gate) servesSome() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return time.Since(g.well) < g.cfg.OpenFor
}

// servedSince reports whether the destination has answered since then.
func (g *gate) servedSince(began time.Time) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.well.After(began)
}

// failed ends a request that failed. It returns the number of consecutive failures.
func (g *gate) failed() int {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.probing = false
	g.failures++
	if g.cfg.Failures > 0 && g.failures >= g.cfg.Failures {
		g.open = true
		g.hold(g.cfg.OpenFor)
	}
	g.wake()
	return g.failures
}

// holdFor lets nothing pass for a while, as the destination asked.
func (g *gate) holdFor(d time.Duration) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.hold(d)
	g.asked = later(g.asked, d)
}

func (g *gate) hold(d time.Duration) { g.until = later(g.until, d) }

// later returns until, or d from now if that is later.
func later(until time.Time, d time.Duration) time.Time {
	if end := time.Now().Add(d); end.After(until) {
		return end
	}
	return until
}

// passes reports whether requests may be made, and the last did not fail.
func (g *gate) passes() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.failures == 0 && time.Until(g.until) <= 0
}

// askedFor is the end of the pause that the destination asked for; zero if it is over.
func (g *gate) askedFor() time.Time {
	g.mu.Lock()
	defer g.mu.Unlock()
	if time.Until(g.asked) <= 0 {
		return time.Time{}
	}
	return g.asked
}

func (g *gate) isOpen() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.open
}

func (g *gate) wake() {
	close(g.changed)
	g.changed = make(chan struct{})
}

// sleep waits for d or the end of ctx.
func sleep(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
