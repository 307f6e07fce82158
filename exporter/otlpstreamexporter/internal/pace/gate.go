// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

// Package pace says when something may be sent again: after a failure, and when the other side asks for a pause.
package pace

import (
	"context"
	"sync"
	"time"
)

// Gate holds back everything that is sent to a destination, for as long as the destination asks.
type Gate struct {
	Multiplier float64 // factor by which each closing is longer
	Ceiling    time.Duration

	mu      sync.Mutex
	until   time.Time
	strikes int
}

// Hold closes the gate for the delay. It grows each time the gate had opened and nothing was acknowledged before it
// closed again, up to the ceiling. It returns how much longer the gate is closed now.
func (g *Gate) Hold(delay time.Duration, now time.Time) time.Duration {
	g.mu.Lock()
	defer g.mu.Unlock()
	if now.After(g.until) {
		g.until = now
		g.strikes++
	}
	grown := float64(delay)
	for range g.strikes - 1 {
		grown = min(grown*max(1, g.Multiplier), float64(max(g.Ceiling, delay)))
	}
	longer := now.Add(time.Duration(grown)).Sub(g.until)
	if longer <= 0 {
		return 0
	}
	g.until = g.until.Add(longer)
	return longer
}

// Succeeded resets the count of failures.
func (g *Gate) Succeeded() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.strikes = 0
}

// Left is how much longer it is closed.
func (g *Gate) Left(now time.Time) time.Duration {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.until.Sub(now)
}

// Wait returns when the gate is open, or with the error of ctx.
func (g *Gate) Wait(ctx context.Context) error {
	for {
		left := g.Left(time.Now())
		if left <= 0 {
			return nil
		}
		if err := Sleep(ctx, left); err != nil {
			return err
		}
	}
}

// Sleep returns after d, or with the error of ctx.
func Sleep(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
