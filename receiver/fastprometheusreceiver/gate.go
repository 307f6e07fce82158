// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package fastprometheusreceiver

import (
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"
)

// probeInterval is how often a scrape is let through while the pipeline refuses metrics.
const probeInterval = time.Second

// A gate keeps scrapes from being made for nothing. Once the pipeline has refused metrics, most likely for want of
// memory, no more than a probe each probeInterval passes until one is taken. Lots are drawn for it: schedules are
// regular, so the first to come would be the same target each time, and nothing would be known of the others.
type gate struct {
	start    time.Time
	refusing atomic.Bool

	mu      sync.Mutex
	ends    time.Duration // of this interval, since start: the wall clock may be set, and nobody would ask for hours
	came    int           // scrapes that were to be made in this interval
	without int           // intervals one after the other in which nobody won
	lots    int           // one of so many wins; none when 0
}

func newGate() *gate { return &gate{start: time.Now()} }

// admit reports whether a scrape may be made.
func (g *gate) admit() bool {
	if !g.refusing.Load() {
		return true
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if now := time.Since(g.start); now >= g.ends {
		if g.lots > 0 {
			g.without++
		}
		g.lots = max(1, g.came>>max(0, g.without-1)) // as many come again, and soon one of them must win
		g.came, g.ends = 0, now+probeInterval
	}
	g.came++
	if g.lots == 0 || rand.IntN(g.lots) > 0 { //nolint:gosec // it is no secret
		return false
	}
	g.lots, g.without = 0, 0
	return true
}

// refused reports whether the gate has just closed.
func (g *gate) refused() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.refusing.Swap(true) {
		return false
	}
	g.ends, g.came, g.without, g.lots = time.Since(g.start)+probeInterval, 0, 0, 0
	return true
}

// taken reports whether the gate has just opened.
func (g *gate) taken() bool {
	return g.refusing.Load() && g.refusing.Swap(false)
}
