// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

// Package queue keeps encoded requests until they are delivered: in memory or on disk, one by one or in batches.
//
// The queue is the one of the Collector's helper. Helpers expect telemetry and encode it themselves, once for each
// destination. To avoid that, they get empty telemetry, with the request in the context.
package queue

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/config/configoptional"
	"go.opentelemetry.io/collector/config/configretry"
	"go.opentelemetry.io/collector/exporter"
	"go.opentelemetry.io/collector/exporter/exporterhelper"
	"go.opentelemetry.io/collector/exporter/exporterhelper/xexporterhelper"
	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/pdata/pprofile"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/godwit-otel/godwit/exporter/otlpstreamexporter/internal/account"
	"github.com/godwit-otel/godwit/exporter/otlpstreamexporter/internal/order"
	"github.com/godwit-otel/godwit/internal/otlpstream"
)

// Settings are the parameters of a queue.
type Settings struct {
	Exporter exporter.Settings
	Signal   otlpstream.Signal
	// Queue is empty if callers wait for delivery.
	Queue configoptional.Optional[exporterhelper.QueueBatchConfig]

	// Unary means that requests are sent in OTLP form. A run in another mode may have stored requests in stream form,
	// or the other way round: they must be converted to the current form, or the server would see no data in them.
	Unary bool
	// Keys are the keys of client metadata to keep. Without any, All says whether all of it is kept.
	Keys []string
	All  bool
	// Auth reports whether an authenticator may ask who a client is.
	Auth bool

	// Epoch identifies the run of the exporter.
	Epoch   uint64
	Account *account.Account
	// Line numbers requests if they are sent in order, and is nil otherwise.
	Line *order.Line

	// Start is called before anything is delivered, Deliver from as many goroutines as there are consumers, and Close
	// when no delivery is running any more. Start and Close may be nil.
	Start   component.StartFunc
	Deliver func(context.Context, *Request) error
	Close   component.ShutdownFunc
}

// Queue is the queue of one destination.
type Queue struct {
	Settings

	helper component.Component
	// enqueue passes the request in a context to the helper.
	enqueue   func(context.Context) error
	joining   sync.Mutex
	lastBatch atomic.Int64 // size of the last merged request, plus a margin
}

// New returns a queue that is not started.
func New(ctx context.Context, settings *Settings) (*Queue, error) {
	q := &Queue{Settings: *settings}
	options := []exporterhelper.Option{
		exporterhelper.WithTimeout(exporterhelper.TimeoutConfig{}),
		// The destination retries. The helper only retries what is undelivered when it shuts down, and a queue on disk
		// keeps exactly that.
		exporterhelper.WithRetry(configretry.BackOffConfig{
			Enabled: true, InitialInterval: time.Hour, MaxInterval: time.Hour, Multiplier: 1,
		}),
	}
	if q.Settings.Start != nil {
		options = append(options, exporterhelper.WithStart(q.Settings.Start), exporterhelper.WithShutdown(q.Close))
	}
	if q.Queue.HasValue() {
		options = append(options, xexporterhelper.WithQueueBatch(q.Queue, q.batches()))
	}
	switch q.Signal {
	case otlpstream.Traces:
		helper, err := xexporterhelper.NewTracesRequest(ctx, q.Exporter, carried[ptrace.Traces], q.push, options...)
		q.helper = helper
		q.enqueue = func(ctx context.Context) error { return helper.ConsumeTraces(ctx, ptrace.NewTraces()) }
		return q, err
	case otlpstream.Metrics:
		helper, err := xexporterhelper.NewMetricsRequest(ctx, q.Exporter, carried[pmetric.Metrics], q.push, options...)
		q.helper = helper
		q.enqueue = func(ctx context.Context) error { return helper.ConsumeMetrics(ctx, pmetric.NewMetrics()) }
		return q, err
	case otlpstream.Profiles:
		helper, err := xexporterhelper.NewProfilesRequest(ctx, q.Exporter, carried[pprofile.Profiles], q.push, options...)
		q.helper = helper
		q.enqueue = func(ctx context.Context) error { return helper.ConsumeProfiles(ctx, pprofile.NewProfiles()) }
		return q, err
	default:
		helper, err := xexporterhelper.NewLogsRequest(ctx, q.Exporter, carried[plog.Logs], q.push, options...)
		q.helper = helper
		q.enqueue = func(ctx context.Context) error { return helper.ConsumeLogs(ctx, plog.NewLogs()) }
		return q, err
	}
}

// Start starts delivery.
func (q *Queue) Start(ctx context.Context, host component.Host) error {
	return q.helper.Start(ctx, host)
}

// Shutdown drains the queue, for as long as deliveries take.
func (q *Queue) Shutdown(ctx context.Context) error { return q.helper.Shutdown(ctx) }

// Stored reports whether the queue is on disk.
func (q *Queue) Stored() bool { return q.Queue.HasValue() && q.Queue.Get().StorageID != nil }

// Take is Offer for the only destination: what it refuses stays with the caller.
func (q *Queue) Take(ctx context.Context, memory *otlpstream.Memory, items int) error {
	err := q.Offer(ctx, memory, items)
	// Without a queue, an error is the result of a delivery, which is counted there.
	if err != nil && q.Queue.HasValue() {
		q.Account.Refuse(items)
	}
	return err
}

// Offer queues encoded data. If that fails, the caller must adjust the account.
func (q *Queue) Offer(ctx context.Context, memory *otlpstream.Memory, items int) error {
	q.Account.Receive(items)
	memory.Retain()
	r := &Request{Data: memory.Bytes(), Memory: memory, Items: items, epoch: q.Epoch, queue: q}
	if q.Line != nil && q.Queue.HasValue() && !q.Stored() {
		q.joining.Lock() // numbers must be in the order of the queue
		defer q.joining.Unlock()
		r.Number = q.Line.Join()
	}
	err := q.enqueue(carrying(ctx, r))
	if err != nil && r.Number > 0 {
		q.Line.Pass(r.Number)
	}
	if err != nil && q.Queue.HasValue() {
		memory.Release() // the queue did not accept it
	}
	return err
}

// push delivers a request.
func (q *Queue) push(ctx context.Context, request xexporterhelper.Request) error {
	r := request.(*Request)
	r.queue = q
	r.enter()
	if r.grown {
		const more = 16 // the margin is one part in this many
		q.lastBatch.Store(int64(len(r.Data) + len(r.Data)/more))
	}
	if q.Line != nil {
		if r.Number == 0 { // without a queue
			r.Number = q.Line.Join()
		}
		defer q.Line.Pass(r.Number)
	}
	err := q.Deliver(ctx, r)
	if err == nil {
		r.Memory.Release() // it is not needed any more
	}
	return err
}

// batchSize returns the size of a batch, estimated from the last one, so that nothing is copied twice.
func (q *Queue) batchSize() int { return int(q.lastBatch.Load()) }
