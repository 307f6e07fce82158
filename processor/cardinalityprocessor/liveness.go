// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package cardinalityprocessor

import (
	"slices"
	"sync/atomic"
	"time"

	"go.uber.org/zap"
)

// liveness is when a rule began to be in force, and when it last matched anything, to a second while it does. A rule that
// matches nothing, because what it was written for is gone, or because of a slip in its pattern, protects nobody and looks
// as if it did.
//
// Known series pass without a look at rules. A rule that has series matches them, for without being matched again they
// would have expired; so it is enough to look at points that take the slow path, and now and then at who has series.
type liveness struct {
	begun, matched atomic.Int64

	told bool // that it is silent; whoever sweeps knows
}

// longSilence is what is told of. Metrics tell of any.
const longSilence = 24 * time.Hour

func (l *liveness) match(now int64) {
	if since := now - l.matched.Load(); since >= int64(time.Second) || since < 0 { // or the clock went back
		l.matched.Store(now)
	}
}

// silent is how long nothing has been matched.
func (l *liveness) silent(now time.Time) time.Duration {
	return max(0, time.Duration(now.UnixNano()-max(l.begun.Load(), l.matched.Load())))
}

// begin begins the time of limits that are new.
func (p *policy) begin(now time.Time) {
	p.begun = now.UnixNano()
	for _, l := range p.limits {
		l.alive.begun.CompareAndSwap(0, now.UnixNano())
	}
}

// watchRules notes which limits have series, and tells of rules that have been silent for long.
func (p *cardinalityProcessor) watchRules() {
	p.rules.RLock()
	policy := p.policy
	p.rules.RUnlock()
	now := p.now()
	p.limiter.groups.observe(func(rule string, t tally) {
		if l := policy.named[rule]; l != nil && t.members > 0 {
			l.alive.match(now.UnixNano())
		}
	})
	for _, l := range policy.rules() {
		silent := l.alive.silent(now) >= longSilence
		if silent && !l.alive.told {
			p.events.add(now, "rule_silent", l.name, "has matched nothing for "+longSilence.String())
			p.logger.Warn("A rule matches nothing", zap.String("rule", l.name), zap.Duration("for", longSilence))
		}
		l.alive.told = silent
	}
}

// rules are the limits that somebody wrote a match for, and which are in force.
func (p *policy) rules() []*limit {
	return slices.DeleteFunc(slices.Clone(p.limits), func(l *limit) bool {
		return l.implied || l.alive.begun.Load() == 0
	})
}

// witness notes which limits match a point that is decided about without them.
func (x *sighting) witness() {
	for _, l := range x.limits {
		if l.match.matchPoint(&x.owner, x.attributes) {
			l.alive.match(x.now)
		}
	}
}
