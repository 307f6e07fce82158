// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package gate

import (
	"github.com/godwit-otel/godwit/processor/cardinalityprocessor/internal/fair"
	"github.com/godwit-otel/godwit/processor/cardinalityprocessor/internal/moment"
)

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
	for _, l := range g.Rules.Policy.Limits {
		l.Demand.Turn()
	}
	return work
}
