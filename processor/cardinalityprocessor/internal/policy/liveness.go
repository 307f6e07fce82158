// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"slices"
	"sync/atomic"
	"time"
)

// Liveness is when a rule came into force, and when it last matched anything, to the second. A rule that matches
// nothing, because its target is gone or its pattern is wrong, protects nobody but looks as if it did.
//
// Known series pass without a look at rules. A rule that has series matches them, since they would otherwise have
// expired; so it is enough to record matches on the slow path, and to check now and then which rules have series.
type Liveness struct {
	begun, Matched atomic.Int64

	Told bool // its silence was logged; used by the sweeper only
}

// LongSilence is the silence that is logged. Metrics show any.
const LongSilence = 24 * time.Hour

// Match records a match.
func (l *Liveness) Match(now int64) {
	if since := now - l.Matched.Load(); since >= int64(time.Second) || since < 0 { // or the clock was set back
		l.Matched.Store(now)
	}
}

// Silent is the time since the last match.
func (l *Liveness) Silent(now time.Time) time.Duration {
	return max(0, time.Duration(now.UnixNano()-max(l.begun.Load(), l.Matched.Load())))
}

// Begin sets the beginning of new limits.
func (p *Policy) Begin(now time.Time) {
	p.Begun = now.UnixNano()
	for _, l := range p.Limits {
		l.Alive.begun.CompareAndSwap(0, now.UnixNano())
	}
}

// Rules are the limits in force that have a match in the configuration.
func (p *Policy) Rules() []*Limit {
	return slices.DeleteFunc(slices.Clone(p.Limits), func(l *Limit) bool {
		return l.implied || l.Alive.begun.Load() == 0
	})
}
