// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package gate

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"go.uber.org/zap"

	"github.com/godwit-otel/godwit/processor/cardinalityprocessor/internal/aggregate"
	"github.com/godwit-otel/godwit/processor/cardinalityprocessor/internal/policy"
	"github.com/godwit-otel/godwit/processor/cardinalityprocessor/internal/series"
)

// Rules are the rules in force. Batches hold the lock while they decide, so that rules only change between two of them.
type Rules struct {
	sync.RWMutex

	Policy       *policy.Policy
	aggregations []*aggregate.Rule // rules with aggregate

	Applied, Failed atomic.Int64           // changes of the file that they come from
	Fault           atomic.Pointer[string] // why the file as it is cannot be used; nil if it can
}

// Current returns the policy in force.
func (r *Rules) Current() *policy.Policy {
	r.RLock()
	defer r.RUnlock()
	return r.Policy
}

// Apply replaces the rules between two batches, which do not wait for them to be compiled. All series keep their
// places.
func (g *Gate) Apply(cfg *policy.Config) {
	next, now := g.Rules.Policy.Next(cfg), g.Now()
	next.Begin(now)
	aggregations := aggregate.NewRules(cfg, next)
	g.Rules.Lock()
	defer g.Rules.Unlock()
	g.Aggregator.Bind(aggregations, now)
	g.Rules.Policy, g.Rules.aggregations = next, aggregations
}

// share ends a round of adaptive limits.
func (g *Gate) share() {
	for l, n := range g.Limiter.Share(g.Rules.Current()) {
		g.Telemetry.ProcessorCardinalityShedSeries.Add(context.Background(), int64(n), l.Measured)
	}
}

// WatchRules records which limits have series, and logs rules that have been silent for long.
func (g *Gate) WatchRules() {
	rules := g.Rules.Current()
	now := g.Now()
	g.Limiter.Groups.Observe(func(rule string, t series.Tally) {
		if l := rules.Named[rule]; l != nil && t.Members > 0 {
			l.Alive.Match(now.UnixNano())
		}
	})
	for _, l := range rules.Rules() {
		silent := l.Alive.Silent(now) >= policy.LongSilence
		if silent && !l.Alive.Told {
			g.Events.Add(now, "rule_silent", l.Name, "has matched nothing for "+policy.LongSilence.String())
			g.Logger.Warn("A rule matches nothing", zap.String("rule", l.Name), zap.Duration("for", policy.LongSilence))
		}
		l.Alive.Told = silent
	}
}

// note records that a limit rejected points, and logs when it begins to.
func (g *Gate) note(l *policy.Limit, points, now int64) {
	l.Demand.Points.Add(points)
	if last := l.Demand.Last.Swap(now); now-last > int64(g.idle) {
		g.Events.Add(time.Unix(0, now), "first_rejection", l.Name, "points found no room")
	}
}
