// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package cardinalityprocessor

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/processor"
	"go.opentelemetry.io/collector/processor/processorhelper"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
	"go.uber.org/zap"

	"github.com/godwit-otel/godwit/internal/handback"
	"github.com/godwit-otel/godwit/internal/inspect"
	"github.com/godwit-otel/godwit/processor/cardinalityprocessor/internal/metadata"
	"github.com/godwit-otel/godwit/processor/cardinalityprocessor/internal/stats"
)

type cardinalityProcessor struct {
	cfg     *Config
	dryRun  bool
	tenants []tenantSource

	metadataKeys []string // that what is made is sent with
	next         consumer.Metrics
	roads        roads // instead of next, if it is shared
	logger       *zap.Logger
	limiter      *limiter
	overflow     *overflow

	aggregator *aggregator

	telemetry *metadata.TelemetryBuilder
	book      *stats.Book // nil without statistics
	events    events
	glimpse   glimpse
	tap       inspect.Tap // around what it does

	pointsIn, pointsPassed, pointsTaken, pointsMade atomic.Int64

	batches atomic.Uint64

	scratch sync.Pool

	now func() time.Time

	rules  sync.RWMutex // held by batches while they decide
	policy *policy
	hash   hasher

	rulesLoaded  bool // these four belong to whoever loads rules
	rulesContent []byte
	rulesErr     error
	rulesBad     atomic.Bool
	rulesFault   atomic.Pointer[string]
	rulesApplied atomic.Int64
	rulesFailed  atomic.Int64

	id          component.ID
	storage     *keyedStorage
	storageErr  error // of the last save
	flushing    sync.Mutex
	delivery    delivery // of the last flush
	poured      delivery // of what was aggregated, the last time
	saveFailure atomic.Int64

	unregister func() // of what is shown
	cancel     context.CancelFunc
	done       sync.WaitGroup
}

func newProcessor(cfg *Config, set processor.Settings, next consumer.Metrics) (*cardinalityProcessor, error) {
	telemetry, err := metadata.NewTelemetryBuilder(set.TelemetrySettings)
	if err != nil {
		return nil, fmt.Errorf("cannot set up telemetry: %w", err)
	}
	p := &cardinalityProcessor{
		cfg:     cfg,
		dryRun:  cfg.Mode == modeDryRun,
		tenants: newTenantSources(cfg.Tenant.From),

		metadataKeys: sortedKeys(cfg.Tenant.MetadataKeys),

		next:      next,
		logger:    set.Logger,
		limiter:   newLimiter(cfg.Memory.MaxGroups, cfg.Memory.MaxSeries),
		overflow:  newOverflow(int64(cfg.Memory.OverflowStateMiB)<<20, cfg.IdleTimeout, time.Now()),
		policy:    newPolicy(cfg, 1, nil),
		hash:      newHasher(newKey()),
		id:        set.ID,
		telemetry: telemetry,
		now:       time.Now,
		cancel:    func() {},

		aggregator: newAggregator(int64(cfg.Memory.AggregateStateMiB)<<20, cfg.IdleTimeout),

		unregister: func() {},
	}
	p.aggregator.bind(p.policy.aggregates, time.Now())
	p.limiter.patience = int64(cfg.IdleTimeout / 2) // so that all of a newcomer's value still counts if it has waited in vain
	p.scratch.New = func() any { return &batch{} }
	p.limiter.groups.apart = len(cfg.Tenant.From) > 0
	if cfg.Statistics.Enabled {
		p.book = stats.NewBook(time.Now(), p.hash.text)
		p.limiter.watched = true
	}
	if err := p.observe(); err != nil {
		telemetry.Shutdown()
		return nil, fmt.Errorf("cannot set up telemetry: %w", err)
	}
	return p, nil
}

const (
	// sweptAtOnce is how much work a sweep may be: that of more than a few thousand slots would be felt by who shares the
	// processor.
	sweptAtOnce = 4096
	// sweepsPerEpoch is how often there is a sweep at least: to wake up costs more than shards with hardly anything in them.
	sweepsPerEpoch = 16
)

// start restores the snapshot, reads the rules file, and begins to sweep, a few shards at a time and all in the time of an
// epoch, and to flush.
func (p *cardinalityProcessor) start(ctx context.Context, host component.Host) error {
	if p.cfg.Storage != nil {
		if err := p.restore(ctx, host); err != nil {
			return err
		}
	}
	if p.cfg.RulesFile != "" {
		if err := p.loadRules(); err != nil {
			return err
		}
	} else {
		p.apply(p.cfg)
	}
	// From the start, so that the first one shows as a rate.
	p.telemetry.ProcessorCardinalityOverflowFailedPoints.Add(ctx, 0)
	p.unregister = inspect.Register(host, p.source())
	background, cancel := context.WithCancel(context.Background())
	p.cancel = cancel
	p.done.Go(func() { p.sweeps(background) })
	p.done.Go(func() { p.flushes(background) })
	p.done.Go(func() { p.pours(background) })
	if p.storage != nil {
		p.done.Go(func() { every(background, p.cfg.SnapshotInterval, func() { p.snapshot(background) }) })
	}
	if p.cfg.RulesFile != "" {
		p.done.Go(func() { every(background, p.cfg.RulesPollInterval, p.pollRules) })
	}
	return nil
}

// restore opens the storage, and goes on with what is there. When that fails it must not be written to either.
func (p *cardinalityProcessor) restore(ctx context.Context, host component.Host) error {
	of := pipelineOf(host)
	if p.cfg.Shared {
		of = ""
	}
	client, err := openStorage(ctx, host, *p.cfg.Storage, p.id, of)
	if err != nil {
		return err
	}
	if p.storage, err = openKeyed(ctx, client, p.hash.key); err == nil {
		p.hash = newHasher(p.storage.key)
		err = p.load(ctx)
	}
	if err != nil {
		p.storage = nil
		return errors.Join(err, client.Close(ctx))
	}
	return nil
}

func every(ctx context.Context, interval time.Duration, f func()) {
	ticker := time.NewTicker(interval)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
			f()
		}
	}
}

// snapshot saves, and tells when that begins to fail or works again.
func (p *cardinalityProcessor) snapshot(ctx context.Context) {
	err := p.save(ctx)
	if ctx.Err() != nil { // shutting down, which saves once more
		return
	}
	if err != nil {
		p.saveFailure.Add(1)
	}
	if err != nil && p.storageErr == nil {
		p.logger.Error("Cannot save the snapshot", zap.Error(err))
	} else if err == nil && p.storageErr != nil {
		p.logger.Info("The snapshot is saved again")
	}
	p.storageErr = err
}

func (p *cardinalityProcessor) sweeps(ctx context.Context) {
	pace := p.cfg.IdleTimeout / idleEpochs / time.Duration(p.limiter.shards()) // of one shard
	sweep := time.NewTimer(pace)
	defer sweep.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-sweep.C:
			sweep.Reset(pace * time.Duration(p.sweepSome(p.limiter.shards()/sweepsPerEpoch)))
		}
	}
}

// sweepSome sweeps as many shards as take little time together, and returns their number.
func (p *cardinalityProcessor) sweepSome(atMost int) (shards int) {
	for work := 0; shards < atMost && work < sweptAtOnce; shards++ {
		work += p.sweep()
	}
	return shards
}

// sweep lets the time pass that one shard stands for, and returns how much work that was.
func (p *cardinalityProcessor) sweep() (work int) {
	before := p.limiter.now().epoch()
	work = p.limiter.sweep()
	now := p.limiter.now().epoch()
	if now == before {
		return work
	}
	p.watchRules()
	if now%fairEpochs == 0 {
		p.share()
	}
	if now%idleEpochs != 0 {
		return work
	}
	if p.book != nil {
		p.book.Turn(p.now())
	}
	p.rules.RLock()
	defer p.rules.RUnlock()
	for _, l := range p.policy.limits {
		l.demand.turn()
	}
	return work
}

// share ends a round of adaptive limits.
func (p *cardinalityProcessor) share() {
	p.rules.RLock()
	policy := p.policy
	p.rules.RUnlock()
	for l, n := range p.limiter.share(policy) {
		p.telemetry.ProcessorCardinalityShedSeries.Add(context.Background(), int64(n), l.measured)
	}
}

// shutdown sends what is left, and saves once more.
func (p *cardinalityProcessor) shutdown(ctx context.Context) error {
	p.unregister()
	p.cancel()
	p.done.Wait()
	p.pour(ctx, p.aggregator.all(p.now())) // first, for limits may add it to the overflow
	p.flush(ctx)
	p.telemetry.Shutdown()
	if p.storage == nil {
		return nil
	}
	err := p.save(ctx)
	if !p.dryRun {
		err = errors.Join(err, p.saveLedger(ctx, err == nil), p.closeFeeders(ctx))
	}
	err = errors.Join(err, p.storage.Close(ctx))
	p.storage = nil
	return err
}

// process lets through what is admitted. What that does beside waits for the verdict of the next consumer, unless there is
// nobody who will tell.
func (p *cardinalityProcessor) process(ctx context.Context, md pmetric.Metrics) (pmetric.Metrics, error) {
	var b *batch
	var loan *handback.Loan
	if c := passageOf(ctx); c != nil {
		b, loan = c.batch, handback.LoanOf(c.Context, md)
	} else {
		b = p.scratch.Get().(*batch)
		defer func() { p.conclude(ctx, b, true) }()
	}
	b.came = int64(md.DataPointCount())
	seen := p.tap.Before(md)
	removed := p.decide(ctx, b, md, loan)
	b.letGo()
	seen.After(md)
	if removed && md.ResourceMetrics().Len() == 0 {
		return md, processorhelper.ErrSkipProcessingData
	}
	return md, nil
}

// decide goes by the rules that are in force when it begins, and does not keep them whatever the data makes of it.
func (p *cardinalityProcessor) decide(ctx context.Context, b *batch, md pmetric.Metrics, loan *handback.Loan) (removed bool) {
	p.rules.RLock()
	defer p.rules.RUnlock()
	b.begin(ctx, p)
	b.lend(loan)
	return b.walk(md)
}

func (p *cardinalityProcessor) observe() error {
	return errors.Join(
		p.observeFullest(),
		p.telemetry.RegisterProcessorCardinalityAdmittedSeriesCallback(func(_ context.Context, o metric.Int64Observer) error {
			o.Observe(p.limiter.admitted.Load())
			return nil
		}),
		p.telemetry.RegisterProcessorCardinalityAggregateMembersCallback(func(_ context.Context, o metric.Int64Observer) error {
			_, feeders := p.aggregator.sizes()
			p.observeRules(o, feeders)
			return nil
		}),
		p.telemetry.RegisterProcessorCardinalityAggregateSeriesCallback(func(_ context.Context, o metric.Int64Observer) error {
			made, _ := p.aggregator.sizes()
			p.observeRules(o, made)
			return nil
		}),
		p.telemetry.RegisterProcessorCardinalityAggregateStateCallback(func(_ context.Context, o metric.Int64Observer) error {
			o.Observe(p.aggregator.used.Load())
			return nil
		}),
		p.telemetry.RegisterProcessorCardinalityContendedGroupsCallback(func(_ context.Context, o metric.Int64Observer) error {
			p.rules.RLock()
			defer p.rules.RUnlock()
			for l, n := range p.limiter.groups.contended(p.policy.limits) {
				o.Observe(int64(n), l.measured)
			}
			return nil
		}),
		p.telemetry.RegisterProcessorCardinalityEndedSeriesCallback(func(_ context.Context, o metric.Int64Observer) error {
			o.Observe(p.limiter.ended.Load())
			return nil
		}),
		p.telemetry.RegisterProcessorCardinalityExpiredSeriesCallback(func(_ context.Context, o metric.Int64Observer) error {
			o.Observe(p.limiter.expired.Load())
			return nil
		}),
		p.telemetry.RegisterProcessorCardinalityMemoryCallback(func(_ context.Context, o metric.Int64Observer) error {
			o.Observe(p.memory())
			return nil
		}),
		p.telemetry.RegisterProcessorCardinalityOverflowSeriesCallback(func(_ context.Context, o metric.Int64Observer) error {
			outputs, _, _ := p.overflow.sizes()
			o.Observe(int64(outputs))
			return nil
		}),
		p.telemetry.RegisterProcessorCardinalityOverflowMembersCallback(func(_ context.Context, o metric.Int64Observer) error {
			_, members, _ := p.overflow.sizes()
			o.Observe(int64(members))
			return nil
		}),
		p.telemetry.RegisterProcessorCardinalityOverflowStateCallback(func(_ context.Context, o metric.Int64Observer) error {
			_, _, used := p.overflow.sizes()
			o.Observe(used)
			return nil
		}),
		p.telemetry.RegisterProcessorCardinalityRejectedSeriesCallback(func(_ context.Context, o metric.Int64Observer) error {
			p.rules.RLock()
			defer p.rules.RUnlock()
			for _, l := range p.policy.limits {
				o.Observe(int64(l.demand.estimate()+0.5), l.measured)
			}
			return nil
		}),
		p.telemetry.RegisterProcessorCardinalityRuleSilenceCallback(func(_ context.Context, o metric.Int64Observer) error {
			p.rules.RLock()
			defer p.rules.RUnlock()
			now := p.now()
			for _, l := range p.policy.rules() {
				o.Observe(int64(l.alive.silent(now).Seconds()), l.measured)
			}
			return nil
		}),
		p.telemetry.RegisterProcessorCardinalityRulesAppliedCallback(func(_ context.Context, o metric.Int64Observer) error {
			o.Observe(p.rulesApplied.Load())
			return nil
		}),
		p.telemetry.RegisterProcessorCardinalityRulesFailedCallback(func(_ context.Context, o metric.Int64Observer) error {
			o.Observe(p.rulesFailed.Load())
			return nil
		}),
		p.telemetry.RegisterProcessorCardinalityRulesBadCallback(func(_ context.Context, o metric.Int64Observer) error {
			bad := int64(0)
			if p.rulesBad.Load() {
				bad = 1
			}
			o.Observe(bad)
			return nil
		}),
		p.telemetry.RegisterProcessorCardinalitySnapshotFailuresCallback(func(_ context.Context, o metric.Int64Observer) error {
			o.Observe(p.saveFailure.Load())
			return nil
		}),
		p.telemetry.RegisterProcessorCardinalitySeriesCallback(func(_ context.Context, o metric.Int64Observer) error {
			p.rules.RLock()
			defer p.rules.RUnlock()
			p.limiter.groups.observe(func(rule string, t tally) {
				o.Observe(int64(t.members), p.policy.measured(rule))
			})
			return nil
		}),
		p.telemetry.RegisterProcessorCardinalityGroupsCallback(func(_ context.Context, o metric.Int64Observer) error {
			p.rules.RLock()
			defer p.rules.RUnlock()
			p.limiter.groups.observe(func(rule string, t tally) {
				o.Observe(int64(t.groups), p.policy.measured(rule))
			})
			return nil
		}),
	)
}

// observeRules observes a number for each rule.
func (p *cardinalityProcessor) observeRules(o metric.Int64Observer, by map[string]int64) {
	p.rules.RLock()
	defer p.rules.RUnlock()
	for rule, n := range by {
		o.Observe(n, p.policy.measured(rule))
	}
}

// lossOptions are the attributes of each loss.
var lossOptions = func() (all [losses]metric.MeasurementOption) {
	for i, name := range lossNames {
		all[i] = metric.WithAttributeSet(attribute.NewSet(attribute.String("reason", name)))
	}
	return all
}()
