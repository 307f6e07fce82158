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

	"github.com/godwit-otel/godwit/internal/redact"
	"github.com/godwit-otel/godwit/internal/selftelemetry"
)

var (
	_ extension.Extension                         = (*pulse)(nil)
	_ extensioncapabilities.ConfigSnapshotWatcher = (*pulse)(nil)
	_ extensioncapabilities.PipelineWatcher       = (*pulse)(nil)
)

// pulse is the extension. The Collector calls its methods in this order, one after the other: Start,
// NotifyConfigSnapshot, Ready, NotReady, Shutdown.
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
	p := &pulse{cfg: cfg, logger: redact.Logger(logger), read: selftelemetry.Read, cancel: func() {}}
	p.endpoint, p.endpointErr = selftelemetry.Endpoint(nil) // the default, for hosts that do not report a configuration
	return p
}

// Start does nothing: before the pipelines run, nothing flows.
func (*pulse) Start(context.Context, component.Host) error { return nil }

// NotifyConfigSnapshot determines where this Collector serves its own metrics.
func (p *pulse) NotifyConfigSnapshot(_ context.Context, snapshot extensioncapabilities.ConfigSnapshot) error {
	p.endpoint, p.endpointErr = selftelemetry.Endpoint(snapshot.Effective())
	return nil
}

// Ready logs where to look, and starts to read the metrics.
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

// NotReady does nothing, so that lines continue while the pipelines drain.
func (*pulse) NotReady() error { return nil }

// Shutdown stops reading, including a request in progress.
func (p *pulse) Shutdown(context.Context) error {
	p.cancel()
	p.done.Wait()
	return nil
}

// run logs what flowed between two readings. The first reading only serves as a start, because after a reload the
// process has CPU time from before.
func (p *pulse) run(ctx context.Context) {
	w := &watch{logger: p.logger}
	look := func(patient bool) (logged bool) {
		page, err := p.read(ctx, p.endpoint)
		return ctx.Err() == nil && w.see(page, err, patient) // an error of a shutdown is not reported
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

// awaitFirst repeats readings until there is a first line to log, because the first scrape of a pipeline may take some
// time. At the deadline, it also logs that nothing moves.
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
