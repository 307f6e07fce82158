// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package cache

import "sync/atomic"

// ages tell in which generation entries were last seen, or that they have ended. A generation ends with an Expire.
type ages struct {
	generation atomic.Uint32
	endings    atomic.Int64  // about how many points have ended since the last sweep
	allEndings atomic.Uint32 // points that have ever ended
	// mostEndings is how many of these trigger a sweep: fewEndings, and one for each endedPart other points.
	mostEndings atomic.Int64
}

const (
	fewEndings = 1 << 13
	endedPart  = 3
)

// ended replaces the generation of a point whose last value was a stale marker: the next sweep removes it.
const ended = 0

func (a *ages) begin() {
	a.generation.Store(1)
	a.mostEndings.Store(fewEndings)
}

// Now is the current generation.
func (a *ages) Now() uint32 { return a.generation.Load() }

// EverEnded is the number of points that have ever ended.
func (a *ages) EverEnded() uint32 { return a.allEndings.Load() }

// see records that an entry is in use.
func (a *ages) see(seen *atomic.Uint32) {
	if g := a.generation.Load(); seen.Load() != g {
		seen.Store(g)
	}
}

// End records that an entry has ended.
func (a *ages) End(seen *atomic.Uint32) {
	if seen.Swap(ended) != ended {
		a.endings.Add(1)
		a.allEndings.Add(1)
	}
}

// wantSweep reports whether enough have ended for a sweep. It returns true to one caller only.
func (a *ages) wantSweep() bool {
	n := a.endings.Load()
	return n > a.mostEndings.Load() && a.endings.CompareAndSwap(n, 0)
}

// swept records a sweep that left the given number of points, none of them ended.
func (a *ages) swept(points int) {
	a.endings.Store(0)
	a.mostEndings.Store(int64(points)/endedPart + fewEndings)
}
