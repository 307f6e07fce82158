// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package cardinalityprocessor

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/pipeline"
	"go.opentelemetry.io/collector/processor"
	"go.uber.org/zap"

	"github.com/godwit-otel/godwit/internal/handback"
	"github.com/godwit-otel/godwit/internal/inspect"
	"github.com/godwit-otel/godwit/processor/cardinalityprocessor/internal/gate"
	"github.com/godwit-otel/godwit/processor/cardinalityprocessor/internal/ident"
	"github.com/godwit-otel/godwit/processor/cardinalityprocessor/internal/insight"
	"github.com/godwit-otel/godwit/processor/cardinalityprocessor/internal/moment"
	"github.com/godwit-otel/godwit/processor/cardinalityprocessor/internal/store"
)

// cardinalityProcessor is a gate in its pipelines: it advances the gate's time, and sends what is made there.
type cardinalityProcessor struct {
	*gate.Gate

	cfg   *Config
	id    component.ID
	next  consumer.Metrics
	roads roads       // used instead of next if it is shared
	tap   inspect.Tap // observes incoming and outgoing batches

	rulesLoaded  bool // the next three fields are guarded by the loader of rules
	rulesContent []byte
	rulesErr     error

	storageErr error // of the last save
	flushing   sync.Mutex
	delivery   delivery // of the last flush
	poured     delivery // of the last aggregates

	unregister func() // of the inspection
	cancel     context.CancelFunc
	done       sync.WaitGroup
}

func newProcessor(cfg *Config, set processor.Settings, next consumer.Metrics) (*cardinalityProcessor, error) {
	g, err := gate.New(cfg, set.ID, set.TelemetrySettings)
	if err != nil {
		return nil, fmt.Errorf("cannot set up telemetry: %w", err)
	}
	return &cardinalityProcessor{
		Gate: g, cfg: cfg, id: set.ID, next: next, cancel: func() {}, unregister: func() {},
	}, nil
}

const (
	// sweptAtOnce limits the work of one sweep: more than a few thousand slots would delay batches on the same
	// processor.
	sweptAtOnce = 4096
	// sweepsPerEpoch is the least number of sweeps in an epoch: waking up costs more than visiting nearly empty shards.
	sweepsPerEpoch = 16
)

// start restores the snapshot, reads the rules file, and starts to flush and to sweep: a few shards at a time, all of
// them in an epoch.
func (p *cardinalityProcessor) start(ctx context.Context, host component.Host) error {
	of := pipelineOf(host)
	if p.cfg.Shared {
		of = ""
	}
	p.Name(of)
	if p.cfg.Storage != nil {
		if err := p.restore(ctx, host, of); err != nil {
			return err
		}
	}
	if p.cfg.RulesFile != "" {
		if err := p.loadRules(); err != nil {
			return err
		}
	} else {
		p.Apply(p.cfg)
	}
	if err := p.Observe(); err != nil {
		return fmt.Errorf("cannot set up telemetry: %w", err)
	}
	// From the start, so that the first increase shows as a rate.
	p.Telemetry.ProcessorCardinalityOverflowFailedPoints.Add(ctx, 0, p.Telemetry.Own)
	p.unregister = inspect.Register(host, p.source())
	background, cancel := context.WithCancel(context.Background())
	p.cancel = cancel
	p.done.Go(func() { p.sweeps(background) })
	p.done.Go(func() { p.flushes(background) })
	p.done.Go(func() { p.pours(background) })
	if p.Snapshot.Storage != nil {
		p.done.Go(func() { every(background, p.cfg.SnapshotInterval, func() { p.snapshot(background) }) })
	}
	if p.cfg.RulesFile != "" {
		p.done.Go(func() { every(background, p.cfg.RulesPollInterval, p.pollRules) })
	}
	return nil
}

// restore opens the storage, and loads the saved state. If that fails, nothing may be written to it either.
func (p *cardinalityProcessor) restore(ctx context.Context, host component.Host, of string) error {
	client, err := gate.OpenStorage(ctx, host, *p.cfg.Storage, p.id, of)
	if err != nil {
		return err
	}
	if p.Snapshot.Storage, err = store.Open(ctx, client, p.Hash.Key); err == nil {
		p.Hash = ident.NewHasher(p.Snapshot.Storage.Key)
		err = p.Snapshot.Load(ctx)
	}
	if err != nil {
		p.Snapshot.Storage = nil
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

// snapshot saves the state, and logs when that begins to fail or works again.
func (p *cardinalityProcessor) snapshot(ctx context.Context) {
	err := p.Snapshot.Save(ctx)
	if ctx.Err() != nil { // shutting down, which saves once more
		return
	}
	if err != nil {
		p.Snapshot.Failures.Add(1)
	}
	if err != nil && p.storageErr == nil {
		p.Logger.Error("Cannot save the snapshot", zap.Error(err))
	} else if err == nil && p.storageErr != nil {
		p.Logger.Info("The snapshot is saved again")
	}
	p.storageErr = err
}

func (p *cardinalityProcessor) sweeps(ctx context.Context) {
	pace := p.cfg.IdleTimeout / moment.IdleEpochs / time.Duration(p.Limiter.Shards()) // for one shard
	sweep := time.NewTimer(pace)
	defer sweep.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-sweep.C:
			sweep.Reset(pace * time.Duration(p.sweepSome(p.Limiter.Shards()/sweepsPerEpoch)))
		}
	}
}

// sweepSome sweeps as many shards as take little time together, and returns their number.
func (p *cardinalityProcessor) sweepSome(atMost int) (shards int) {
	for work := 0; shards < atMost && work < sweptAtOnce; shards++ {
		work += p.Sweep()
	}
	return shards
}

// shutdown sends what is left, and saves the state once more.
func (p *cardinalityProcessor) shutdown(ctx context.Context) error {
	p.unregister()
	p.cancel()
	p.done.Wait()
	p.pour(ctx, p.Aggregator.All(p.Now())) // first, since limits may add it to the overflow
	p.flush(ctx)
	p.Telemetry.Shutdown()
	if p.Snapshot.Storage == nil {
		return nil
	}
	err := p.Snapshot.Save(ctx)
	if !p.DryRun {
		err = errors.Join(err, p.Snapshot.SaveLedger(ctx, err == nil), p.Snapshot.CloseFeeders(ctx))
	}
	err = errors.Join(err, p.Snapshot.Storage.Close(ctx))
	p.Snapshot.Storage = nil
	return err
}

// decide removes what is not admitted, and reports whether anything is left to pass on. Its other effects wait for the
// next consumer's answer.
func (p *cardinalityProcessor) decide(ctx context.Context, b *gate.Batch, md pmetric.Metrics) bool {
	loan := handback.LoanOf(ctx, md)
	var seen *inspect.Passing
	if p.tap.IsOpen() {
		loan.Settle()
		seen = p.tap.Before(md)
	}
	removed := p.Decide(ctx, b, md, loan)
	seen.After(md)
	return !removed || md.ResourceMetrics().Len() > 0
}

// source returns what the processor shows on request.
func (p *cardinalityProcessor) source() inspect.Source {
	return inspect.Source{
		Kind: component.KindProcessor, ID: p.id, Signal: pipeline.SignalMetrics.String(), Pipeline: p.Telemetry.Pipeline,
		Flow: p.flow, Cardinality: insight.New(p.Gate), Tap: &p.tap,
	}
}

func (p *cardinalityProcessor) flow() inspect.Flow {
	in, passed, taken, made := p.Points.In.Load(), p.Points.Passed.Load(), p.Points.Taken.Load(), p.Points.Made.Load()
	return inspect.Flow{In: in, Out: passed + made, Limited: max(0, in-passed-taken)} // what is aggregated is not lost to a limit
}
