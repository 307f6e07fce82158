// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"slices"
	"sync/atomic"
	"time"
)

// Liveness is when a rule began to be in force, and when it last matched anything, to a second while it does. A rule that
// matches nothing, because what it was written for is gone, or because of a slip in its pattern, protects nobody and looks
// as if it did.
//
// Known series pass without a look at rules. A rule that has series matches them, for without being matched again they
// would have expired; so it is enough to look at points that take the slow path, and now and then at who has series.
type Liveness struct {
	begun, Matched atomic.Int64

	Told bool // that it is silent; whoever sweeps knows
}

// LongSilence is what is told of. Metrics tell of any.
const LongSilence = 24 * time.Hour

// Match notes that something was matched.
func (l *Liveness) Match(now int64) {
	if since := now - l.Matched.Load(); since >= int64(time.Second) || since < 0 { // or the clock went back
		l.Matched.Store(now)
	}
}

// Silent is how long nothing has been matched.
func (l *Liveness) Silent(now time.Time) time.Duration {
	return max(0, time.Duration(now.UnixNano()-max(l.begun.Load(), l.Matched.Load())))
}

// Begin begins the time of limits that are new.
func (p *Policy) Begin(now time.Time) {
	p.Begun = now.UnixNano()
	for _, l := range p.Limits {
		l.Alive.begun.CompareAndSwap(0, now.UnixNano())
	}
}

// Rules are the limits that somebody wrote a match for, and which are in force.
func (p *Policy) Rules() []*Limit {
	return slices.DeleteFunc(slices.Clone(p.Limits), func(l *Limit) bool {
		return l.implied || l.Alive.begun.Load() == 0
	})
}
