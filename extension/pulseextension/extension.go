// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package pulseextension

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/extension"
	"go.opentelemetry.io/collector/extension/extensioncapabilities"
	"go.uber.org/zap"

	"github.com/godwit-otel/godwit/internal/selftelemetry"
)

var (
	_ extension.Extension                         = (*pulse)(nil)
	_ extensioncapabilities.ConfigSnapshotWatcher = (*pulse)(nil)
	_ extensioncapabilities.PipelineWatcher       = (*pulse)(nil)
)

// pulse is driven by the Collector in this order, each call after the other:
// Start, NotifyConfigSnapshot, Ready, NotReady, Shutdown.
type pulse struct {
	cfg    *Config
	logger *zap.Logger
	read   func(ctx context.Context, page string) (*selftelemetry.Snapshot, error)

	endpoint    string
	endpointErr error // why there is no endpoint

	cancel context.CancelFunc
	done   sync.WaitGroup
}

func newPulse(cfg *Config, logger *zap.Logger) *pulse {
	p := &pulse{cfg: cfg, logger: logger, read: selftelemetry.Read, cancel: func() {}}
	p.endpoint, p.endpointErr = selftelemetry.Endpoint(nil) // the default, in a host that tells no configuration
	return p
}

// Start does nothing: there is nothing to see before the pipelines run.
func (*pulse) Start(context.Context, component.Host) error { return nil }

// NotifyConfigSnapshot learns where this Collector serves its own metrics.
func (p *pulse) NotifyConfigSnapshot(_ context.Context, snapshot extensioncapabilities.ConfigSnapshot) error {
	p.endpoint, p.endpointErr = selftelemetry.Endpoint(snapshot.Effective())
	return nil
}

// Ready logs where to look, and starts the clock.
func (p *pulse) Ready() error {
	for _, title := range slices.Sorted(maps.Keys(p.cfg.Look)) {
		p.logger.Info("where to look: " + title + ": " + p.cfg.Look[title])
	}
	if p.cfg.MetricsEndpoint != "" {
		p.endpoint, p.endpointErr = p.cfg.MetricsEndpoint, nil
	}
	switch {
	case p.cfg.First == 0 && p.cfg.Interval == 0:
	case p.endpointErr != nil:
		p.logger.Warn("cannot tell what is flowing: this Collector serves no metrics of its own", zap.Error(p.endpointErr))
	default:
		ctx, cancel := context.WithCancel(context.Background())
		p.cancel = cancel
		p.done.Go(func() { p.run(ctx) })
	}
	return nil
}

// NotReady changes nothing: what drains is worth a line too.
func (*pulse) NotReady() error { return nil }

// Shutdown stops the clock, and a reading in progress.
func (p *pulse) Shutdown(context.Context) error {
	p.cancel()
	p.done.Wait()
	return nil
}

// run logs what flowed between two readings. The first reading is only a
// beginning: after a reload the process has CPU time from before.
func (p *pulse) run(ctx context.Context) {
	w := &watch{logger: p.logger}
	look := func(patient bool) (logged bool) {
		page, err := p.read(ctx, p.endpoint)
		return ctx.Err() == nil && w.see(page, err, patient) // shutting down is no reason to complain
	}
	deadline := time.Now().Add(cmp.Or(p.cfg.Interval, defaultPatience))
	look(true)
	if p.cfg.First > 0 {
		p.awaitFirst(ctx, look, deadline)
	}
	for p.cfg.Interval > 0 && rest(ctx, p.cfg.Interval) {
		look(false)
	}
}

// awaitFirst looks until there is a first line to log: the first scrape of a
// pipeline may take its time. At the deadline nothing moving is news, too.
func (p *pulse) awaitFirst(ctx context.Context, look func(patient bool) bool, deadline time.Time) {
	for wait := p.cfg.First; rest(ctx, wait); wait = min(max(p.cfg.First, minInterval), time.Until(deadline)) {
		early := time.Now().Before(deadline)
		if logged := look(early); logged || !early {
			return
		}
	}
}

func rest(ctx context.Context, d time.Duration) (rested bool) {
	select {
	case <-ctx.Done():
		return false
	case <-time.After(d):
		return true
	}
}
