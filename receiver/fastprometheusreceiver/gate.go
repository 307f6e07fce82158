// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package fastprometheusreceiver

import (
	"sync/atomic"
	"time"
)

// probeInterval is how often a scrape is let through while the pipeline refuses metrics.
const probeInterval = time.Second

// A gate keeps scrapes from being made for nothing. Once the pipeline has refused metrics, most likely for want of
// memory, only a probe each probeInterval passes until one is taken. Receivers with few targets never notice: they have
// no more than a scrape each second anyway.
type gate struct {
	start     time.Time
	refusing  atomic.Bool
	nextProbe atomic.Int64 // nanoseconds since start: the wall clock may be set, and nobody would ask for hours
}

func newGate() *gate { return &gate{start: time.Now()} }

// admit reports whether a scrape may be made.
func (g *gate) admit() bool {
	if !g.refusing.Load() {
		return true
	}
	next, now := g.nextProbe.Load(), time.Since(g.start)
	return int64(now) >= next && g.nextProbe.CompareAndSwap(next, int64(now+probeInterval))
}

// refused reports whether the gate has just closed.
func (g *gate) refused() bool {
	if g.refusing.Swap(true) {
		return false
	}
	g.nextProbe.Store(int64(time.Since(g.start) + probeInterval))
	return true
}

// taken reports whether the gate has just opened.
func (g *gate) taken() bool {
	return g.refusing.Load() && g.refusing.Swap(false)
}
