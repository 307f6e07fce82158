// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package cache

import "sync/atomic"

// ages say when entries were last seen: in which generation, each of which ends with an Expire, or that they have ended.
type ages struct {
	generation atomic.Uint32
	endings    atomic.Int64  // about how many points have ended since the last sweep
	allEndings atomic.Uint32 // counts points that have ended, ever
	// mostEndings is how many bring a sweep on: one for each endedPart points that have not, and fewEndings.
	mostEndings atomic.Int64
}

const (
	fewEndings = 1 << 13
	endedPart  = 3
)

// ended is when a point was seen whose last word was a stale marker: no sweep leaves it.
const ended = 0

func (a *ages) begin() {
	a.generation.Store(1)
	a.mostEndings.Store(fewEndings)
}

// Now is the generation.
func (a *ages) Now() uint32 { return a.generation.Load() }

// EverEnded is how many points have ended.
func (a *ages) EverEnded() uint32 { return a.allEndings.Load() }

// see notes that an entry is there.
func (a *ages) see(seen *atomic.Uint32) {
	if g := a.generation.Load(); seen.Load() != g {
		seen.Store(g)
	}
}

// End notes that an entry has ended.
func (a *ages) End(seen *atomic.Uint32) {
	if seen.Swap(ended) != ended {
		a.endings.Add(1)
		a.allEndings.Add(1)
	}
}

// wantSweep says whether so many have ended that one is due, which only one caller is told.
func (a *ages) wantSweep() bool {
	n := a.endings.Load()
	return n > a.mostEndings.Load() && a.endings.CompareAndSwap(n, 0)
}

// swept says that none of those that have ended is left, but so many points.
func (a *ages) swept(points int) {
	a.endings.Store(0)
	a.mostEndings.Store(int64(points)/endedPart + fewEndings)
}
