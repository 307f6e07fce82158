// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package otlpstreamexporter

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/config/configgrpc"
	"go.opentelemetry.io/collector/config/configoptional"
	"go.opentelemetry.io/collector/config/configretry"
	"go.opentelemetry.io/collector/exporter"
	"go.opentelemetry.io/collector/exporter/exporterhelper"
	"go.opentelemetry.io/collector/exporter/exporterhelper/xexporterhelper"
	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/pdata/pprofile"
	"go.opentelemetry.io/collector/pdata/ptrace"
	"go.uber.org/zap"
	"golang.org/x/sync/semaphore"

	"github.com/godwit-otel/godwit/exporter/otlpstreamexporter/internal/account"
	"github.com/godwit-otel/godwit/exporter/otlpstreamexporter/internal/transport"
	"github.com/godwit-otel/godwit/internal/origin"
	"github.com/godwit-otel/godwit/internal/otlpstream"
)

// errShutdown is temporary, so that a queue on disk keeps the request.
var errShutdown = errors.New("the exporter is shut down")

// destination is one server, or a group of servers behind one address, with all the state there is about it. Its
// helper has the queue, and for each request in flight a goroutine that waits in push.
type destination struct {
	*streamExporter

	name   string
	client configgrpc.ClientConfig
	set    exporter.Settings

	account account.Account
	tally   *tally
	helper  component.Component
	// enqueue gives the helper the request that a context carries.
	enqueue func(context.Context) error

	transport  transport.Transport
	identity   string // of its slots' names, for servers to know them by
	propagates bool   // the trace's context, with each request on a stream
	gate       gate
	progress   progress // on all streams
	modes      modes
	fallback   *fallback
	health     health
	complaints complaints
	line       *line // where requests are sent in order, else nil
	joining    sync.Mutex
	keepsOrder atomic.Bool   // the server does, on a stream, as the last one has told
	greeted    chan struct{} // closed when the first one has
	greet      func()
	common     *lane
	lanes      lanes

	requests, bytes *semaphore.Weighted
	maxMessage      atomic.Int64 // what the server said last; 0 is no limit
	lastBatch       atomic.Int64 // the size of the last request that was merged, with a little more
	slowAcks        bool         // as the log says

	// ctx ends when deliveries are given up; quit is closed, after that, to end what watches over them.
	ctx    context.Context
	giveUp context.CancelFunc
	quit   chan struct{}
	ending atomic.Bool // it is being shut down
	// cut ends what the slots still do then.
	cut     context.Context
	cutOff  context.CancelFunc
	running sync.WaitGroup
}

func newDestination(ctx context.Context, e *streamExporter, endpoint EndpointConfig) (*destination, error) {
	d := &destination{
		streamExporter: e,
		name:           endpoint.Name,
		client:         endpoint.Client,
		set:            e.settings(endpoint.Name),
		tally:          newTally(e, endpoint.Name),
		gate:           gate{multiplier: e.cfg.Retry.Multiplier, ceiling: e.cfg.Retry.MaxInterval},
		modes:          modes{mode: e.cfg.Mode, reprobe: e.cfg.ReprobeInterval},
		requests:       semaphore.NewWeighted(int64(e.cfg.InFlight.Requests)),
		bytes:          semaphore.NewWeighted(e.cfg.InFlight.Bytes),
		fallback:       newFallback(endpoint.Client.Compression),
		quit:           make(chan struct{}),
		identity:       newIdentity(),
	}
	d.ctx, d.giveUp = context.WithCancel(context.Background())
	d.cut, d.cutOff = context.WithCancel(context.Background())
	d.lanes = lanes{byOrigin: map[origin.Origin]*lane{}, left: make(chan struct{}, 1)}
	if e.cfg.Ordered {
		d.line, d.greeted = newLine(), make(chan struct{})
		d.greet = sync.OnceFunc(func() { close(d.greeted) })
	}
	d.common = d.newLane("")
	return d, d.newHelper(ctx)
}

func (d *destination) newHelper(ctx context.Context) error {
	options := []exporterhelper.Option{
		exporterhelper.WithStart(d.start),
		exporterhelper.WithShutdown(d.close),
		exporterhelper.WithTimeout(exporterhelper.TimeoutConfig{}),
		// The destination retries; all that is left for the helper is what is undelivered when it shuts down. A
		// queue on disk keeps exactly what the helper was about to retry then.
		exporterhelper.WithRetry(configretry.BackOffConfig{
			Enabled: true, InitialInterval: time.Hour, MaxInterval: time.Hour, Multiplier: 1,
		}),
	}
	if queue := d.cfg.queue(); queue != nil {
		settings := xexporterhelper.QueueBatchSettings{Encoding: d.encoding()}
		if queue.Batch.HasValue() {
			d.batches(&settings, queue.Batch.Get().Partition.MetadataKeys)
		}
		options = append(options, xexporterhelper.WithQueueBatch(configoptional.Some(exporterhelper.QueueBatchConfig{
			Sizer:           queue.Sizer,
			QueueSize:       queue.QueueSize,
			BlockOnOverflow: queue.BlockOnOverflow,
			StorageID:       queue.Storage,
			NumConsumers:    d.cfg.InFlight.Requests,
			Batch:           queue.Batch,
		}), settings))
	}
	switch d.signal {
	case otlpstream.Traces:
		helper, err := xexporterhelper.NewTracesRequest(ctx, d.set, carried[ptrace.Traces], d.push, options...)
		d.helper = helper
		d.enqueue = func(ctx context.Context) error { return helper.ConsumeTraces(ctx, ptrace.NewTraces()) }
		return err
	case otlpstream.Metrics:
		helper, err := xexporterhelper.NewMetricsRequest(ctx, d.set, carried[pmetric.Metrics], d.push, options...)
		d.helper = helper
		d.enqueue = func(ctx context.Context) error { return helper.ConsumeMetrics(ctx, pmetric.NewMetrics()) }
		return err
	case otlpstream.Profiles:
		helper, err := xexporterhelper.NewProfilesRequest(ctx, d.set, carried[pprofile.Profiles], d.push, options...)
		d.helper = helper
		d.enqueue = func(ctx context.Context) error { return helper.ConsumeProfiles(ctx, pprofile.NewProfiles()) }
		return err
	default:
		helper, err := xexporterhelper.NewLogsRequest(ctx, d.set, carried[plog.Logs], d.push, options...)
		d.helper = helper
		d.enqueue = func(ctx context.Context) error { return helper.ConsumeLogs(ctx, plog.NewLogs()) }
		return err
	}
}

// start connects. The helper calls it before there is anything to send.
func (d *destination) start(ctx context.Context, host component.Host) error {
	t, err := transport.New(ctx, d.cfg.Transport, d.transportSettings(), host)
	if err != nil {
		return err
	}
	d.transport = t
	d.propagates = propagates()
	d.health.host = host
	d.common.start()
	d.running.Go(d.watch)
	return nil
}

// transportSettings are what the transport has to know.
func (d *destination) transportSettings() *transport.Settings {
	return &transport.Settings{
		Signal: d.signal, Client: d.client, HTTP: d.cfg.HTTP.client(), URL: d.cfg.HTTP.endpoint(d.signal),
		Connections: d.cfg.Connections, Alone: d.cfg.Rebalance.Scope == scopeConnection, Requests: d.cfg.InFlight.Requests,
		Reconnect: d.cfg.Retry.MaxInterval, Caps: d.caps(), Identity: d.identity,
		Build: d.set.BuildInfo, Telemetry: d.set.TelemetrySettings, Wire: &d.tally.wire,
	}
}

// caps are what streams are opened with.
func (d *destination) caps() otlpstream.Caps {
	if d.cfg.Ordered {
		return otlpstream.AllCaps | otlpstream.CapOrdered
	}
	return otlpstream.AllCaps
}

// take is offer for a destination that is the only one: what it refuses is still the caller's.
func (d *destination) take(ctx context.Context, memory *otlpstream.Memory, items int) error {
	err := d.offer(ctx, memory, items)
	// Without a queue an error is the outcome of a delivery, and counted there.
	if err != nil && d.cfg.queue() != nil {
		d.account.Refuse(items)
	}
	return err
}

// offer queues encoded data, and leaves it to the caller what becomes of the account if that fails.
func (d *destination) offer(ctx context.Context, memory *otlpstream.Memory, items int) error {
	d.account.Receive(items)
	memory.Retain()
	r := &request{data: memory.Bytes(), memory: memory, items: items, epoch: d.epoch, dest: d}
	if queue := d.cfg.queue(); d.line != nil && queue != nil && queue.Storage == nil {
		d.joining.Lock() // numbers are in the order of the queue
		defer d.joining.Unlock()
		r.number = d.line.join()
	}
	err := d.enqueue(carrying(ctx, r))
	if err != nil && r.number > 0 {
		d.line.pass(r.number)
	}
	if err != nil && d.cfg.queue() != nil {
		memory.Release() // the queue has not taken it
	}
	return err
}

// push sees a request through. The helper calls it from as many goroutines as there may be requests in flight.
func (d *destination) push(ctx context.Context, r xexporterhelper.Request) error {
	req := r.(*request)
	req.dest = d
	req.enter()
	if req.grown {
		const more = 16 // one part in so many
		d.lastBatch.Store(int64(len(req.data) + len(req.data)/more))
	}
	if d.line != nil {
		if req.number == 0 { // without a queue
			req.number = d.line.join()
		}
		defer d.line.pass(req.number)
	}
	err := d.deliver(ctx, req)
	if err == nil {
		req.memory.Release() // nobody comes back for it
	}
	return err
}

// throttle lets nothing through to the destination for the delay.
func (d *destination) throttle(delay time.Duration) {
	longer := d.gate.hold(delay, time.Now())
	if longer > 0 {
		d.tally.throttled(longer)
	}
}

// watch sends requests again that the server does not answer, and ends streams that it does not close.
func (d *destination) watch() {
	tick := time.NewTicker(max(d.cfg.AckTimeout/20, time.Millisecond))
	defer tick.Stop()
	for {
		select {
		case now := <-tick.C:
			for _, s := range d.slots() {
				s.expire(now)
			}
			d.sweep(now)
			d.compareAcks()
		case <-d.quit:
			return
		}
	}
}

// compareAcks says so when requests may be sent again whose answers would only have taken a little longer.
func (d *destination) compareAcks() {
	const enough, margin = 100, 10
	acks := d.tally.acks.snapshot()
	slow := acks.Count >= enough && margin*acks.P99 > d.cfg.AckTimeout
	if slow && !d.slowAcks {
		d.set.Logger.Warn("`ack_timeout` is short against what answers take: set it to ten times that, or requests may be sent twice",
			zap.Duration("ack_timeout", d.cfg.AckTimeout), zap.Duration("p99", acks.P99))
	}
	d.slowAcks = slow
}

// shutdown stops the helper, which drains its queue for as long as push takes: so the time limit has to come from here.
func (d *destination) shutdown(ctx context.Context) error {
	if d.cfg.Shutdown.WaitForAcks {
		t := time.AfterFunc(d.cfg.ending.begin(d.cfg.Shutdown.Timeout), d.giveUp)
		defer t.Stop()
		defer context.AfterFunc(ctx, d.giveUp)()
		d.ending.Store(true)
		if !d.health.well() {
			d.rest()
		}
	} else {
		d.giveUp()
	}
	return d.helper.Shutdown(ctx)
}

// rest begins nothing more where the server is away and a queue on disk keeps what is not sent: only what is on its way is waited
// for, so that it does not arrive twice.
func (d *destination) rest() {
	if d.stored() {
		d.account.Rest(d.giveUp)
	}
}

// stored tells whether there is a queue on disk.
func (d *destination) stored() bool {
	queue := d.cfg.queue()
	return queue != nil && queue.Storage != nil
}

// close ends the streams: first as the protocol has it, and what is left a moment later by force. The helper calls it
// when nothing is in flight any more.
func (d *destination) close(context.Context) error {
	const moment = time.Second
	d.giveUp()
	t := time.AfterFunc(moment, d.cutOff)
	d.quitLanes()
	close(d.quit)
	d.running.Wait()
	t.Stop()
	d.cutOff()
	if b := d.account.Balance(); b.Dropped[account.Shutdown] > 0 {
		d.set.Logger.Warn("Shut down before everything was acknowledged", zap.Int64("dropped_items", b.Dropped[account.Shutdown]))
	}
	if d.transport == nil {
		return nil
	}
	return d.transport.Close()
}
