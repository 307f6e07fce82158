// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package otlpstreamexporter

import (
	"context"
	cryptorand "crypto/rand"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/consumer/consumererror"
	"go.opentelemetry.io/collector/exporter"
	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/pdata/pprofile"
	"go.opentelemetry.io/collector/pdata/ptrace"
	"go.opentelemetry.io/otel/attribute"
	"go.uber.org/zap"

	"github.com/godwit-otel/godwit/exporter/otlpstreamexporter/internal/encode"
	"github.com/godwit-otel/godwit/exporter/otlpstreamexporter/internal/metadata"
	"github.com/godwit-otel/godwit/exporter/otlpstreamexporter/internal/server"
	"github.com/godwit-otel/godwit/exporter/otlpstreamexporter/internal/tally"
	"github.com/godwit-otel/godwit/exporter/otlpstreamexporter/internal/transport"
	"github.com/godwit-otel/godwit/internal/handback"
	"github.com/godwit-otel/godwit/internal/inspect"
	"github.com/godwit-otel/godwit/internal/otlpstream"
	"github.com/godwit-otel/godwit/internal/redact"
)

// streamExporter is the exporter of one signal. It encodes its input once; its destinations do the rest.
type streamExporter struct {
	cfg       *Config
	set       exporter.Settings
	signal    otlpstream.Signal
	telemetry *metadata.TelemetryBuilder
	epoch     uint64
	encoder   *encode.Encoder

	dests []*destination
	stop  sync.Once
	err   error

	tap        inspect.Tap
	refused    atomic.Int64 // requests that no queue had room for
	unobserve  func() error // the accounts
	unregister func()       // of what is shown
}

func newExporter(ctx context.Context, cfg *Config, set exporter.Settings, signal otlpstream.Signal) (*streamExporter, error) {
	if cfg.Transport == transport.HTTP { // which has no streams
		unary := *cfg
		unary.Mode, cfg = server.Unary, &unary
	}
	set.Logger = redact.Logger(set.Logger)
	telemetry, err := metadata.NewTelemetryBuilder(set.TelemetrySettings)
	if err != nil {
		return nil, fmt.Errorf("cannot set up telemetry: %w", err)
	}
	encoder, err := encode.New()
	if err != nil {
		return nil, err
	}
	e := &streamExporter{
		cfg: cfg, set: set, signal: signal, telemetry: telemetry, epoch: newEpoch(), encoder: encoder,
		unobserve: func() error { return nil }, unregister: func() {},
	}
	for _, endpoint := range cfg.destinations() {
		d, err := newDestination(ctx, e, endpoint)
		if err != nil {
			return nil, errors.Join(fmt.Errorf("cannot set up destination %q: %w", endpoint.Name, err), encoder.Close())
		}
		e.dests = append(e.dests, d)
	}
	cfg.ending.join()
	return e, nil
}

// settings returns the settings of a destination. If there are several, each has its own ID, for its queue on disk and
// its metrics.
func (e *streamExporter) settings(name string) exporter.Settings {
	set := e.set
	if len(e.cfg.Endpoints) > 0 {
		set.ID = component.NewIDWithName(set.ID.Type(), set.ID.Name()+"@"+name)
		set.Logger = set.Logger.With(zap.String("destination", name))
	}
	return set
}

// tally makes the counters of a destination. Their attributes tell exporters and signals apart, too: all of a process
// share the metrics.
func (e *streamExporter) tally(destination string) *tally.Tally {
	return tally.New(e.telemetry.ExporterOtlpstreamAckLatency,
		attribute.String("exporter", e.set.ID.String()),
		attribute.String("data_type", e.signal.String()),
		attribute.String("destination", destination))
}

// Capabilities declares that data is not modified.
func (*streamExporter) Capabilities() consumer.Capabilities {
	return consumer.Capabilities{MutatesData: false}
}

// Start starts the exporter.
func (e *streamExporter) Start(ctx context.Context, host component.Host) error {
	e.sayUnused()
	left := e.left(ctx, host)
	for _, d := range e.dests {
		if err := d.queue.Start(ctx, host); err != nil {
			return err
		}
	}
	for _, from := range left {
		if err := e.deliverFrom(ctx, host, from); err != nil {
			return err
		}
	}
	if err := e.observe(); err != nil {
		return err
	}
	e.unregister = inspect.Register(host, e.inspection())
	return nil
}

// sayUnused logs keys of other exporters' configurations that have no effect here.
func (e *streamExporter) sayUnused() {
	if e.cfg.Queue.HasValue() && e.cfg.queue() == nil {
		e.set.Logger.Info("`sending_queue::wait_for_result` is set: callers wait until the data is delivered, without a queue. The other keys of `sending_queue` have no effect")
	}
	if queue := e.cfg.queue(); queue != nil && queue.NumConsumers > 0 {
		e.set.Logger.Info("`sending_queue::num_consumers` has no effect: requests on a stream need not wait for each other. See `in_flight::requests`",
			zap.Int("in_flight::requests", e.cfg.InFlight.Requests))
	}
	if len(e.cfg.Arrow) > 0 {
		e.set.Logger.Info("`arrow` has no effect: streams carry OTLP, and deltas of it. See `streams`, `rebalance::timeout` and `mode`",
			zap.Strings("keys", slices.Sorted(maps.Keys(e.cfg.Arrow))))
	}
}

// Shutdown waits for acknowledgements as configured and closes the connections.
func (e *streamExporter) Shutdown(ctx context.Context) error {
	e.stop.Do(func() {
		e.unregister()
		errs := make([]error, len(e.dests))
		var stopping sync.WaitGroup
		for i, d := range e.dests {
			stopping.Go(func() { errs[i] = d.shutdown(ctx) })
		}
		stopping.Wait()
		e.err = errors.Join(errors.Join(errs...), e.encoder.Close(), e.unobserve())
		e.telemetry.Shutdown()
		e.cfg.ending.leave()
	})
	return e.err
}

// consume hands encoded data to all destinations. It belongs to the exporter as soon as one has accepted it: returning
// an error then would only make duplicates there.
func (e *streamExporter) consume(ctx context.Context, memory *otlpstream.Memory, items int, err error) error {
	if err == nil && e.cfg.Mode != server.Unary {
		err = otlpstream.ToStream(memory.Bytes())
	}
	if err != nil {
		return consumererror.NewPermanent(fmt.Errorf("cannot marshal %d items: %w", items, err))
	}
	defer memory.Release()
	if len(e.dests) == 1 {
		err := e.dests[0].queue.Take(ctx, memory, items)
		if err != nil && e.cfg.queue() != nil {
			e.refused.Add(1)
		}
		return err
	}
	var refused []*destination
	var errs []error
	for _, d := range e.dests {
		if err := d.queue.Offer(ctx, memory, items); err != nil {
			refused, errs = append(refused, d), append(errs, err)
		}
	}
	if len(refused) == len(e.dests) {
		for _, d := range refused {
			d.account.Refuse(items)
		}
		e.refused.Add(1)
		return errors.Join(errs...)
	}
	for _, d := range refused {
		d.account.Overflow(items)
	}
	return nil
}

type tracesExporter struct{ *streamExporter }

// ConsumeTraces queues traces.
func (e *tracesExporter) ConsumeTraces(ctx context.Context, td ptrace.Traces) error {
	e.tap.Traces(td)
	memory, err := e.encoder.Traces(td)
	return e.consume(ctx, memory, td.SpanCount(), err)
}

type metricsExporter struct{ *streamExporter }

// ConsumeMetrics queues metrics.
func (e *metricsExporter) ConsumeMetrics(ctx context.Context, md pmetric.Metrics) error {
	e.tap.Metrics(md)
	var arrived []handback.Arrival
	if handback.LoanOf(ctx, md) == nil {
		arrived = handback.Arrive(md)
	}
	memory, err := e.encoder.Metrics(md)
	points := md.DataPointCount()
	handback.Return(arrived) // nothing of it is read any more
	return e.consume(ctx, memory, points, err)
}

var _ handback.Returner = (*metricsExporter)(nil)

// ReleasesMetrics declares that nothing of metrics is kept once they are consumed, whatever the configuration: they are
// first encoded into the exporter's own memory, and that is what is queued, stored, sent and sent again.
func (*metricsExporter) ReleasesMetrics() error { return nil }

// ReturnsBatches declares that what comes out of a batch is returned once it was encoded.
func (*metricsExporter) ReturnsBatches() {}

type logsExporter struct{ *streamExporter }

// ConsumeLogs queues logs.
func (e *logsExporter) ConsumeLogs(ctx context.Context, ld plog.Logs) error {
	e.tap.Logs(ld)
	memory, err := e.encoder.Logs(ld)
	return e.consume(ctx, memory, ld.LogRecordCount(), err)
}

type profilesExporter struct{ *streamExporter }

// ConsumeProfiles queues profiles.
func (e *profilesExporter) ConsumeProfiles(ctx context.Context, pd pprofile.Profiles) error {
	memory, err := e.encoder.Profiles(pd)
	return e.consume(ctx, memory, pd.SampleCount(), err)
}

// newIdentity is a random name: whoever knows it could claim what was sent.
func newIdentity() string { return cryptorand.Text() }

func newEpoch() uint64 { return rand.Uint64() } //nolint:gosec // it is no secret
