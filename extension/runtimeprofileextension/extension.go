// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package runtimeprofileextension

import (
	"context"
	"io/fs"
	"runtime/debug"
	"sync"
	"time"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/extension"
	"go.opentelemetry.io/collector/extension/extensioncapabilities"
	"go.uber.org/zap"

	"github.com/godwit-otel/godwit/extension/runtimeprofileextension/internal/metadata"
	"github.com/godwit-otel/godwit/internal/inspect"
)

var (
	_ extension.Extension                         = (*runtimeProfile)(nil)
	_ extensioncapabilities.ConfigSnapshotWatcher = (*runtimeProfile)(nil)
	_ extensioncapabilities.PipelineWatcher       = (*runtimeProfile)(nil)
)

type runtimeProfile struct {
	cfg    *Config
	id     component.ID
	set    component.TelemetrySettings
	logger *zap.Logger
	root   fs.FS // / except in tests

	telemetry *metadata.TelemetryBuilder
	cancel    context.CancelFunc
	done      sync.WaitGroup
	ready     chan struct{}
	pages     binaryPages // released by run, read by metrics
	file      *executable
	giveBack  func() // collects garbage, and returns free memory to the system

	unregister func() // of the inspection

	mu          sync.Mutex
	lease       *lease // nil unless started
	planner     planner
	budget      budget
	budgetFault string // the last error logged
	limiter     limiter
	complaint   string // the last disagreement logged
	last        sample
	gcRatio     float64
}

func newExtension(cfg *Config, set component.TelemetrySettings, root fs.FS) *runtimeProfile {
	file := &executable{}
	return &runtimeProfile{
		cfg:     cfg,
		set:     set,
		logger:  set.Logger,
		root:    root,
		planner: newPlanner(cfg),
		ready:   make(chan struct{}, 1),
		pages:   binaryPages{logger: set.Logger, unmap: file.release},
		file:    file,

		giveBack:   debug.FreeOSMemory,
		unregister: func() {},
	}
}

// Start takes the runtime's knobs and sets them, so that everything that starts later runs under the profile.
func (e *runtimeProfile) Start(_ context.Context, host component.Host) error {
	lease, err := takeLease()
	if err != nil {
		return err
	}
	if err := e.startTelemetry(); err != nil {
		lease.release()
		return err
	}
	e.mu.Lock()
	e.lease = lease
	e.last = readSample()
	e.mu.Unlock()
	for _, knob := range lease.fromEnv() {
		e.logger.Info("Not changed: set in the environment", zap.String("variable", knob))
	}
	e.refresh()
	e.warnOfLittle()

	ctx, cancel := context.WithCancel(context.Background())
	e.cancel = cancel
	e.done.Go(func() { e.run(ctx) })
	e.unregister = inspect.Register(host, e.inspection())
	return nil
}

// warnOfLittle tells who gives the process less memory than any configuration withstands bad peers with.
func (e *runtimeProfile) warnOfLittle() {
	e.mu.Lock()
	defer e.mu.Unlock()
	if most := e.budget.cgroup; most > 0 && most < leastBudget {
		e.logger.Warn("The memory limit is so low that clients or targets can end the process: raise it",
			zap.Int64("memory_budget", most), zap.Int64("least", leastBudget))
	}
}

// Shutdown restores the knobs.
func (e *runtimeProfile) Shutdown(context.Context) error {
	e.unregister()
	if e.cancel != nil {
		e.cancel()
		e.done.Wait()
	}
	if e.telemetry != nil {
		e.telemetry.Shutdown()
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.lease != nil {
		e.lease.release()
		e.lease = nil
	}
	return nil
}

// NotifyConfigSnapshot looks for a memory_limiter to compare with, and for other extensions that set GOMEMLIMIT. It is
// called after Start and before the pipelines start.
func (e *runtimeProfile) NotifyConfigSnapshot(_ context.Context, snapshot extensioncapabilities.ConfigSnapshot) error {
	conf := snapshot.Effective()
	if conf == nil {
		return nil
	}
	e.mu.Lock()
	limiter, err := findLimiter(conf, knownToLimiter(e.root, e.budget))
	e.limiter = limiter
	e.mu.Unlock()
	if id := findRival(conf); id != "" {
		e.logger.Warn("Another extension also sets GOMEMLIMIT, and the last one wins: remove it from service::extensions, or set its "+
			"gomemlimit::enabled to false. GOMAXPROCS follows the cgroup without it", zap.String("extension", id))
	}
	if err != nil { // the limiter's own error will stop the collector
		e.logger.Warn("Cannot compare with the memory_limiter", zap.Error(err))
	}
	e.refresh()
	return nil
}

// Ready starts the delay before the first release of the binary's pages.
func (e *runtimeProfile) Ready() error {
	select {
	case e.ready <- struct{}{}:
	default:
	}
	return nil
}

// NotReady does nothing: the profile applies until Shutdown.
func (*runtimeProfile) NotReady() error { return nil }

func (e *runtimeProfile) run(ctx context.Context) {
	refresh := time.NewTicker(e.cfg.RefreshInterval)
	defer refresh.Stop()
	var look <-chan time.Time // nil unless the profile adjusts GOGC more often
	roomLook := time.NewTimer(checkInterval)
	roomLook.Stop() // likewise
	defer roomLook.Stop()
	thrifty, ok := e.cfg.Profile.thrifty()
	if ok {
		ticker := time.NewTicker(thrifty.interval)
		defer ticker.Stop()
		look = ticker.C
		roomLook.Reset(checkInterval)
	}
	room := newEmptyRoom(readSample(), thrifty.returnAtOnce)
	start := time.NewTimer(releaseDelay) // and the delays after it
	start.Stop()
	defer start.Stop()
	settle := settleDelay
	var released time.Time // zero before the first release
	release := func() {
		e.pages.release()
		released = time.Now()
	}
	// Half an interval less, because ticks are not exact.
	rest := max(releaseDelay, e.cfg.RefreshInterval) - e.cfg.RefreshInterval/2
	for {
		select {
		case <-ctx.Done():
			return
		case <-look:
			e.turn()
		case <-roomLook.C:
			if room.isDue(readSample()) {
				e.giveBack()
				room.gave(readSample())
			}
			roomLook.Reset(room.wait)
		case <-refresh.C:
			e.refresh()
			if !released.IsZero() && time.Since(released) > rest {
				release()
			}
		case <-e.ready:
			if e.cfg.releaseBinaryPages() {
				start.Reset(min(releaseDelay, e.cfg.RefreshInterval))
			}
		case <-start.C:
			if settle < rest {
				start.Reset(settle)
				settle *= 2
			}
			release()
		}
	}
}

// refresh reads the budget and the runtime, and sets the knobs if the plan has changed.
func (e *runtimeProfile) refresh() {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.lease != nil {
		e.refreshBudget()
		e.turnKnobs()
	}
}

// turn is refresh with the last budget, since reading it takes about ten files.
func (e *runtimeProfile) turn() {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.lease != nil {
		e.turnKnobs()
	}
}

// turnKnobs reads the runtime, and sets the knobs if the plan has changed. The caller must hold mu.
func (e *runtimeProfile) turnKnobs() {
	now := readSample()
	if e.cfg.Profile == ProfileAuto { // it makes the kernel walk all of the memory
		now.files = e.file.resident()
	}
	e.gcRatio = now.gcRatioSince(e.last)
	e.last = now
	changed := e.lease.apply(e.planner.plan(conditions{
		budget:   e.budget,
		limiter:  e.limiter,
		envLimit: e.lease.envLimit(),
		sample:   now,
		gcRatio:  e.gcRatio,
	}))
	if changed {
		e.logKnobs()
	}
	complaint := disagreement(e.lease.now.limit, e.limiter, e.budget)
	if complaint != "" && complaint != e.complaint {
		e.logger.Warn(complaint, zap.Int64("memory_limit", e.lease.now.limit), zap.Int64("memory_budget", e.budget.total()),
			zap.Int64("soft_limit", e.limiter.soft), zap.Int64("hard_limit", e.limiter.hard))
	}
	e.complaint = complaint
}

// refreshBudget keeps the last budget if reading it fails: an incomplete one would look as if a limit had been lifted.
func (e *runtimeProfile) refreshBudget() {
	read, err := readBudget(e.root)
	fault := ""
	if err != nil {
		fault = err.Error()
	}
	if err == nil || e.budget.total() == 0 {
		e.budget = read
	}
	switch fault {
	case e.budgetFault:
	case "":
		e.logger.Info("The memory budget can be read again")
	default:
		e.logger.Warn("Cannot read the memory budget; keeping the last one",
			zap.Int64("memory_budget", e.budget.total()), zap.Error(err))
	}
	e.budgetFault = fault
}

func (e *runtimeProfile) logKnobs() {
	fields := []zap.Field{zap.String("profile", string(e.cfg.Profile)), zap.Int("gogc", e.lease.now.gogc)}
	if e.lease.now.limit != noLimit {
		fields = append(fields, zap.Int64("memory_limit", e.lease.now.limit))
	}
	if e.budget.total() > 0 {
		fields = append(fields, zap.Int64("memory_budget", e.budget.total()), zap.Bool("cgroup", e.budget.cgroup > 0))
	}
	e.logger.Info("Runtime profile applied", fields...)
}
