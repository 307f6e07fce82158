// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package gate

import (
	"context"
	"time"

	"go.uber.org/zap"

	"github.com/godwit-otel/godwit/processor/cardinalityprocessor/internal/aggregate"
	"github.com/godwit-otel/godwit/processor/cardinalityprocessor/internal/fair"
	"github.com/godwit-otel/godwit/processor/cardinalityprocessor/internal/moment"
	"github.com/godwit-otel/godwit/processor/cardinalityprocessor/internal/policy"
	"github.com/godwit-otel/godwit/processor/cardinalityprocessor/internal/series"
)

// WatchRules records which limits have series, and logs rules that have been silent for long.
func (g *Gate) WatchRules() {
	g.Rules.RLock()
	rules := g.Policy
	g.Rules.RUnlock()
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

// Memory is the memory of all tables.
func (g *Gate) Memory() int64 {
	n := g.Limiter.Series.Bytes() + g.Limiter.Values.Bytes()
	if g.Book != nil {
		n += int64(g.Book.Bytes())
	}
	return n
}

// Sweep advances the time by the share of one shard, and returns how much work that was.
func (g *Gate) Sweep() (work int) {
	before := g.Limiter.Now().Epoch()
	work = g.Limiter.Sweep()
	now := g.Limiter.Now().Epoch()
	if now == before {
		return work
	}
	g.Familiar.forget(g.Limiter.Now())
	g.WatchRules()
	if now%fair.RoundEpochs == 0 {
		g.share()
	}
	if now%moment.IdleEpochs != 0 {
		return work
	}
	if g.Book != nil {
		g.Book.Turn(g.Now())
	}
	g.Rules.RLock()
	defer g.Rules.RUnlock()
	for _, l := range g.Policy.Limits {
		l.Demand.Turn()
	}
	return work
}

// share ends a round of adaptive limits.
func (g *Gate) share() {
	g.Rules.RLock()
	policy := g.Policy
	g.Rules.RUnlock()
	for l, n := range g.Limiter.Share(policy) {
		g.Telemetry.ProcessorCardinalityShedSeries.Add(context.Background(), int64(n), l.Measured)
	}
}

// Apply replaces the rules between two batches, which do not wait for them to be compiled. All series keep their
// places.
func (g *Gate) Apply(cfg *policy.Config) {
	next, now := g.Policy.Next(cfg), g.Now()
	next.Begin(now)
	aggregations := aggregate.NewRules(cfg, next)
	g.Rules.Lock()
	defer g.Rules.Unlock()
	g.Aggregator.Bind(aggregations, now)
	g.Policy, g.aggregations = next, aggregations
}
