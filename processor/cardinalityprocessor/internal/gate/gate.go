// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

// Package gate decides about batches, point by point, and applies its decisions when the batch is accepted.
//
// A [Gate] has all that outlives a batch: the state of series in packages of their own, and here
//
//	Rules      the rules in force, which a batch holds still while it decides
//	Snapshot   saves that state, and restores it
//	familiar   pages that came before, and may pass as a whole
//	Telemetry  what measurements are added to
//
// A [Batch] has all that belongs to one call: what it reads, decides and removes, and its effects.
package gate

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.uber.org/zap"

	"github.com/godwit-otel/godwit/internal/handback"
	"github.com/godwit-otel/godwit/processor/cardinalityprocessor/internal/aggregate"
	"github.com/godwit-otel/godwit/processor/cardinalityprocessor/internal/ident"
	"github.com/godwit-otel/godwit/processor/cardinalityprocessor/internal/metadata"
	"github.com/godwit-otel/godwit/processor/cardinalityprocessor/internal/overflow"
	"github.com/godwit-otel/godwit/processor/cardinalityprocessor/internal/policy"
	"github.com/godwit-otel/godwit/processor/cardinalityprocessor/internal/series"
	"github.com/godwit-otel/godwit/processor/cardinalityprocessor/internal/stats"
	"github.com/godwit-otel/godwit/processor/cardinalityprocessor/internal/store"
)

// Gate decides what passes. It has the state of all series, and the rules. It knows nothing of pipelines.
type Gate struct {
	Cfg    *policy.Config
	DryRun bool
	Logger *zap.Logger
	Now    func() time.Time

	id           component.ID
	idle         time.Duration
	tenants      tenantSources
	metadataKeys []string // that are sent with what is made

	Rules      Rules
	Hash       ident.Hasher
	Limiter    *series.Limiter
	Overflow   *overflow.Overflow
	Aggregator *aggregate.Aggregator
	Familiar   familiar    // pages
	Book       *stats.Book // nil without statistics
	Snapshot   Snapshot

	Telemetry Telemetry
	Points    Points
	Events    events

	batches atomic.Uint64
	scratch sync.Pool
}

// Points count what becomes of points.
type Points struct{ In, Passed, Taken, Made atomic.Int64 }

// New returns a gate for a configuration, without restored state.
func New(cfg *policy.Config, id component.ID, set component.TelemetrySettings) (*Gate, error) {
	telemetry, err := metadata.NewTelemetryBuilder(set)
	if err != nil {
		return nil, err
	}
	g := &Gate{
		Cfg:     cfg,
		id:      id,
		DryRun:  cfg.Mode == policy.ModeDryRun,
		idle:    cfg.IdleTimeout,
		tenants: newTenantSources(cfg.Tenant.From),

		metadataKeys: sortedKeys(cfg.Tenant.MetadataKeys),

		Logger:     set.Logger,
		Limiter:    series.New(cfg.Memory.MaxGroups, cfg.Memory.MaxSeries),
		Overflow:   overflow.New(int64(cfg.Memory.OverflowStateMiB)<<20, cfg.IdleTimeout, time.Now()),
		Aggregator: aggregate.New(int64(cfg.Memory.AggregateStateMiB)<<20, cfg.IdleTimeout),
		Hash:       ident.NewHasher(store.NewKey()),
		Telemetry:  Telemetry{TelemetryBuilder: telemetry},
		Now:        time.Now,
	}
	g.Aggregator.Tenants = len(cfg.Tenant.From) > 0
	g.Snapshot.gate = g
	g.Rules.Policy = policy.New(cfg, 1, nil, policy.NewInstance(id.String(), ""))
	g.Rules.aggregations = aggregate.NewRules(cfg, g.Rules.Policy)
	g.Aggregator.Bind(g.Rules.aggregations, time.Now())
	g.Familiar.limiter, g.Familiar.pages = g.Limiter, map[uint64]*page{}
	g.Limiter.Patience = int64(cfg.IdleTimeout / 2) // so that all of a new series' value still counts after it has waited in vain
	g.scratch.New = func() any { return &Batch{} }
	g.Limiter.Groups.Apart = len(cfg.Tenant.From) > 0
	if cfg.Statistics.Enabled {
		g.Book = stats.NewBook(time.Now(), g.Hash.Text)
		g.Book.Now, g.Limiter.Watched = g.Limiter.Now, true
		g.Book.OnChoice = func() { g.Limiter.Losses.Add(1) } // so that pages with its series are looked up
	}
	g.Name("")
	return g, nil
}

// NewBatch returns the working memory for a batch from the pipeline road, "" for the only one. Conclude must be called
// for it.
func (g *Gate) NewBatch(road string) *Batch {
	b := g.scratch.Get().(*Batch)
	b.road = road
	return b
}

// Decide decides about a batch by the rules in force at its beginning, and releases them even if the data makes it
// panic. It reports whether any resource was removed.
func (g *Gate) Decide(ctx context.Context, b *Batch, md pmetric.Metrics, loan *handback.Loan) (removed bool) {
	defer b.dropReferences()
	g.Rules.RLock()
	defer g.Rules.RUnlock()
	b.begin(ctx, g)
	b.lend(loan)
	if b.words == nil {
		return b.walk(md)
	}
	if b.isWorded(md) { // fast path: nothing to do but let it pass
		return false
	}
	removed = b.walk(md)
	b.leaveWords()
	return removed
}

// DecideMade is Decide for data made by the processor, which does not count as incoming.
func (g *Gate) DecideMade(ctx context.Context, b *Batch, md pmetric.Metrics) {
	b.made = true
	g.Decide(ctx, b, md, nil)
	b.came, b.gone, b.added = 0, 0, 0
}

// Conclude ends a batch: it applies the effects if the batch was accepted, and discards them otherwise.
func (g *Gate) Conclude(ctx context.Context, b *Batch, accepted bool) {
	if b.g == nil { // Decide was not called
		accepted = false
	}
	if accepted {
		b.handBack()
		g.commit(ctx, b)
	} else {
		g.discard(&b.effects)
	}
	b.reset()
	g.scratch.Put(b)
}
