// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package otlpstreamexporter

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/config/configoptional"
	"go.opentelemetry.io/collector/config/configretry"
	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/exporter"
	"go.opentelemetry.io/collector/exporter/exporterhelper"
	"go.opentelemetry.io/collector/exporter/exporterhelper/xexporterhelper"
	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/godwit-otel/godwit/exporter/otlpstreamexporter/internal/metadata"
	"github.com/godwit-otel/godwit/internal/otlpstream"
)

var errCannotMarshal = errors.New("cannot marshal")

// streamExporter is the exporter of one signal. The helper has the queue, and for each request in flight a goroutine
// that waits in push; the destination does the rest.
type streamExporter struct {
	cfg       *Config
	set       exporter.Settings
	signal    otlpstream.Signal
	telemetry *metadata.TelemetryBuilder
	account   account
	epoch     uint64

	helper component.Component
	dest   *destination
	stop   sync.Once
	err    error
}

func newExporter(cfg *Config, set exporter.Settings, signal otlpstream.Signal) (*streamExporter, error) {
	telemetry, err := metadata.NewTelemetryBuilder(set.TelemetrySettings)
	if err != nil {
		return nil, fmt.Errorf("cannot set up telemetry: %w", err)
	}
	return &streamExporter{cfg: cfg, set: set, signal: signal, telemetry: telemetry, epoch: newEpoch()}, nil
}

func (e *streamExporter) options() []exporterhelper.Option {
	options := []exporterhelper.Option{
		exporterhelper.WithCapabilities(consumer.Capabilities{MutatesData: false}),
		exporterhelper.WithStart(e.start),
		exporterhelper.WithShutdown(e.shutdown),
		exporterhelper.WithTimeout(exporterhelper.TimeoutConfig{}),
		// The destination retries; all that is left for the helper is what is undelivered when it shuts down. A
		// queue on disk keeps exactly what the helper was about to retry then.
		exporterhelper.WithRetry(configretry.BackOffConfig{
			Enabled: true, InitialInterval: time.Hour, MaxInterval: time.Hour, Multiplier: 1,
		}),
	}
	if e.cfg.Queue.HasValue() {
		queue := e.cfg.Queue.Get()
		options = append(options, xexporterhelper.WithQueueBatch(configoptional.Some(exporterhelper.QueueBatchConfig{
			Sizer:           queue.Sizer,
			QueueSize:       queue.QueueSize,
			BlockOnOverflow: queue.BlockOnOverflow,
			StorageID:       queue.Storage,
			NumConsumers:    e.cfg.InFlight.Requests,
		}), xexporterhelper.QueueBatchSettings{Encoding: encoding{}}))
	}
	return options
}

func (e *streamExporter) start(ctx context.Context, host component.Host) error {
	transport, err := newTransport(ctx, e.cfg, e.set, host, e.signal)
	if err != nil {
		return err
	}
	e.dest = newDestination(e, transport)
	return e.observe()
}

// push sees a request through. The helper calls it from as many goroutines as there may be requests in flight.
func (e *streamExporter) push(ctx context.Context, r xexporterhelper.Request) error {
	req := r.(*request)
	if req.epoch != e.epoch {
		// An earlier run has left it in the queue on disk.
		req.epoch = e.epoch
		e.account.receive(req.items)
	}
	return e.dest.deliver(ctx, req)
}

// Start starts the exporter.
func (e *streamExporter) Start(ctx context.Context, host component.Host) error {
	return e.helper.Start(ctx, host)
}

// Shutdown waits for acknowledgements as configured and closes the connections.
func (e *streamExporter) Shutdown(ctx context.Context) error {
	e.stop.Do(func() {
		// The helper drains its queue for as long as push takes, so the time limit has to come from here.
		if e.dest != nil {
			defer e.dest.limitShutdown(ctx)()
		}
		e.err = e.helper.Shutdown(ctx)
		e.telemetry.Shutdown()
	})
	return e.err
}

// shutdown is called by the helper when nothing is in flight any more.
func (e *streamExporter) shutdown(context.Context) error {
	if e.dest == nil {
		return nil
	}
	return e.dest.close()
}

// consume keeps count of what enters the queue.
func (e *streamExporter) consume(items int, next func() error) error {
	e.account.receive(items)
	err := next()
	// Without a queue an error is the outcome of a delivery, and counted there.
	if err != nil && (e.cfg.Queue.HasValue() || errors.Is(err, errCannotMarshal)) {
		e.account.refuse(items)
	}
	return err
}

type tracesExporter struct {
	*streamExporter

	next consumer.Traces
}

func (e *tracesExporter) Capabilities() consumer.Capabilities { return e.next.Capabilities() }

// ConsumeTraces queues traces.
func (e *tracesExporter) ConsumeTraces(ctx context.Context, td ptrace.Traces) error {
	return e.consume(td.SpanCount(), func() error { return e.next.ConsumeTraces(ctx, td) })
}

type metricsExporter struct {
	*streamExporter

	next consumer.Metrics
}

func (e *metricsExporter) Capabilities() consumer.Capabilities { return e.next.Capabilities() }

// ConsumeMetrics queues metrics.
func (e *metricsExporter) ConsumeMetrics(ctx context.Context, md pmetric.Metrics) error {
	return e.consume(md.DataPointCount(), func() error { return e.next.ConsumeMetrics(ctx, md) })
}

type logsExporter struct {
	*streamExporter

	next consumer.Logs
}

func (e *logsExporter) Capabilities() consumer.Capabilities { return e.next.Capabilities() }

// ConsumeLogs queues logs.
func (e *logsExporter) ConsumeLogs(ctx context.Context, ld plog.Logs) error {
	return e.consume(ld.LogRecordCount(), func() error { return e.next.ConsumeLogs(ctx, ld) })
}
