// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package otlpstreamexporter

import (
	"context"
	"sync"
	"time"
)

// gate holds back everything that is sent to a destination, for as long as the destination asks.
type gate struct {
	multiplier float64
	ceiling    time.Duration

	mu      sync.Mutex
	until   time.Time
	strikes int
}

// hold closes the gate for the delay. It grows with each time that the gate opened and nothing was acknowledged
// before it closed again, up to the ceiling. The return is how much longer the gate is closed now.
func (g *gate) hold(delay time.Duration, now time.Time) time.Duration {
	g.mu.Lock()
	defer g.mu.Unlock()
	if now.After(g.until) {
		g.until = now
		g.strikes++
	}
	grown := float64(delay)
	for range g.strikes - 1 {
		grown = min(grown*max(1, g.multiplier), float64(max(g.ceiling, delay)))
	}
	longer := now.Add(time.Duration(grown)).Sub(g.until)
	if longer <= 0 {
		return 0
	}
	g.until = g.until.Add(longer)
	return longer
}

// succeeded starts the count of failures over.
func (g *gate) succeeded() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.strikes = 0
}

func (g *gate) left(now time.Time) time.Duration {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.until.Sub(now)
}

// wait returns when the gate is open, or with the error of ctx.
func (g *gate) wait(ctx context.Context) error {
	for {
		left := g.left(time.Now())
		if left <= 0 {
			return nil
		}
		if err := sleep(ctx, left); err != nil {
			return err
		}
	}
}

func sleep(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
