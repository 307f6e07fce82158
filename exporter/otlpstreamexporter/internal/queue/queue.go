// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

// Package queue keeps encoded requests until they are delivered: in memory or on disk, one by one or in batches.
//
// The queue is that of the Collector's helper. Helpers expect telemetry and encode it themselves, once for each destination. To
// avoid that, they get nothing to encode, and the request beside it.
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

// Settings are what a queue has to know.
type Settings struct {
	Exporter exporter.Settings
	Signal   otlpstream.Signal
	// Queue is none where whoever sends waits until the data is delivered.
	Queue configoptional.Optional[exporterhelper.QueueBatchConfig]

	// Unary tells that requests are sent in OTLP form. A run of another mode may have stored what is read in stream form,
	// or the other way round: it has to be sent as it is now, or the server would see no data in it.
	Unary bool
	// Keys are those of the client's metadata that are kept; without any, all are that are there, if anybody may look at them.
	Keys []string
	All  bool
	// Auth tells that an authenticator may ask who a client is.
	Auth bool

	// Epoch is the run of the exporter.
	Epoch   uint64
	Account *account.Account
	// Line gives requests their numbers where they are sent in order, else nil.
	Line *order.Line

	// Start is called before there is anything to deliver, Deliver from as many goroutines as there are consumers, and Close when
	// nothing is under way any more. Start and Close may both be nil.
	Start   component.StartFunc
	Deliver func(context.Context, *Request) error
	Close   component.ShutdownFunc
}

// Queue is that of one destination.
type Queue struct {
	Settings

	helper component.Component
	// enqueue gives the helper the request that a context carries.
	enqueue   func(context.Context) error
	joining   sync.Mutex
	lastBatch atomic.Int64 // the size of the last request that was merged, with a little more
}

// New returns a queue that is not started.
func New(ctx context.Context, settings *Settings) (*Queue, error) {
	q := &Queue{Settings: *settings}
	options := []exporterhelper.Option{
		exporterhelper.WithTimeout(exporterhelper.TimeoutConfig{}),
		// The destination retries; all that is left for the helper is what is undelivered when it shuts down. A
		// queue on disk keeps exactly what the helper was about to retry then.
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

// Start begins to deliver.
func (q *Queue) Start(ctx context.Context, host component.Host) error {
	return q.helper.Start(ctx, host)
}

// Shutdown drains the queue, for as long as deliveries take.
func (q *Queue) Shutdown(ctx context.Context) error { return q.helper.Shutdown(ctx) }

// Stored reports whether it is on disk.
func (q *Queue) Stored() bool { return q.Queue.HasValue() && q.Queue.Get().StorageID != nil }

// Take is Offer for a destination that is the only one: what it refuses is still the caller's.
func (q *Queue) Take(ctx context.Context, memory *otlpstream.Memory, items int) error {
	err := q.Offer(ctx, memory, items)
	// Without a queue an error is the outcome of a delivery, and counted there.
	if err != nil && q.Queue.HasValue() {
		q.Account.Refuse(items)
	}
	return err
}

// Offer queues encoded data, and leaves it to the caller what becomes of the account if that fails.
func (q *Queue) Offer(ctx context.Context, memory *otlpstream.Memory, items int) error {
	q.Account.Receive(items)
	memory.Retain()
	r := &Request{Data: memory.Bytes(), Memory: memory, Items: items, epoch: q.Epoch, queue: q}
	if q.Line != nil && q.Queue.HasValue() && !q.Stored() {
		q.joining.Lock() // numbers are in the order of the queue
		defer q.joining.Unlock()
		r.Number = q.Line.Join()
	}
	err := q.enqueue(carrying(ctx, r))
	if err != nil && r.Number > 0 {
		q.Line.Pass(r.Number)
	}
	if err != nil && q.Queue.HasValue() {
		memory.Release() // the queue has not taken it
	}
	return err
}

// push sees a request through.
func (q *Queue) push(ctx context.Context, request xexporterhelper.Request) error {
	r := request.(*Request)
	r.queue = q
	r.enter()
	if r.grown {
		const more = 16 // one part in so many
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
		r.Memory.Release() // nobody comes back for it
	}
	return err
}

// batchSize is how large batches are, as the last one was: nothing is copied twice then.
func (q *Queue) batchSize() int { return int(q.lastBatch.Load()) }
