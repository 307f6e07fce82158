// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package otlpstreamexporter

import (
	"context"
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/config/configgrpc"
	"go.opentelemetry.io/collector/config/configoptional"
	"go.opentelemetry.io/collector/exporter"
	"go.opentelemetry.io/collector/exporter/exporterhelper"
	"go.uber.org/zap"

	"github.com/godwit-otel/godwit/exporter/otlpstreamexporter/internal/account"
	"github.com/godwit-otel/godwit/exporter/otlpstreamexporter/internal/order"
	"github.com/godwit-otel/godwit/exporter/otlpstreamexporter/internal/pace"
	"github.com/godwit-otel/godwit/exporter/otlpstreamexporter/internal/queue"
	"github.com/godwit-otel/godwit/exporter/otlpstreamexporter/internal/server"
	"github.com/godwit-otel/godwit/exporter/otlpstreamexporter/internal/tally"
	"github.com/godwit-otel/godwit/exporter/otlpstreamexporter/internal/transport"
	"github.com/godwit-otel/godwit/internal/otlpstream"
	"github.com/godwit-otel/godwit/internal/redact"
)

// errShutdown is temporary, so that a queue on disk keeps the request.
var errShutdown = errors.New("the exporter is shut down")

// destination is one server, or a group of servers behind one address, with all state about it. Its queue has, for each
// request in flight, a goroutine that waits in deliver.
type destination struct {
	*streamExporter

	name   string
	client configgrpc.ClientConfig
	set    exporter.Settings

	account account.Account
	tally   *tally.Tally
	queue   *queue.Queue
	adopted []*queue.Queue // of other destinations that were configured before

	transport  transport.Transport
	identity   string // prefix of its slots' names, as servers see them
	propagates bool   // requests on streams carry the trace's context
	server     *server.Server
	gate       pace.Gate   // to it
	progress   progress    // on all streams
	line       *order.Line // if requests are sent in order, else nil
	lanes      *lanes
	window     *window
	slowAcks   bool // as last logged

	// ctx ends when deliveries are given up; quit is closed after that, to end the goroutine that watches them.
	ctx    context.Context
	giveUp context.CancelFunc
	quit   chan struct{}
	ending atomic.Bool // it is being shut down
	// cut ends what the slots are still doing then.
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
		tally:          e.tally(endpoint.Name),
		gate:           pace.Gate{Multiplier: e.cfg.Retry.Multiplier, Ceiling: e.cfg.Retry.MaxInterval},
		window:         newWindow(e.cfg.InFlight.Requests, e.cfg.InFlight.Bytes),
		quit:           make(chan struct{}),
		identity:       newIdentity(),
	}
	d.ctx, d.giveUp = context.WithCancel(context.Background())
	d.cut, d.cutOff = context.WithCancel(context.Background())
	if e.cfg.Ordered {
		d.line = order.NewLine()
	}
	d.server = server.New(d.serverSettings())
	d.lanes = newLanes(d)
	var err error
	d.queue, err = queue.New(ctx, d.queueSettings())
	return d, err
}

// queueSettings are the settings of the queue.
func (d *destination) queueSettings() *queue.Settings {
	s := &queue.Settings{
		Exporter: d.set, Signal: d.signal,
		Unary: d.cfg.Mode == server.Unary, Keys: d.cfg.MetadataKeys, Auth: d.client.Auth.HasValue(),
		All:   len(d.cfg.MetadataKeys) == 0 && (d.client.Auth.HasValue() || len(d.client.Middlewares) > 0),
		Epoch: d.epoch, Account: &d.account, Line: d.line,
		Start: d.start, Deliver: d.deliver, Close: d.close,
	}
	if configured := d.cfg.queue(); configured != nil {
		s.Queue = configoptional.Some(exporterhelper.QueueBatchConfig{
			Sizer:           configured.Sizer,
			QueueSize:       configured.QueueSize,
			BlockOnOverflow: configured.BlockOnOverflow,
			StorageID:       configured.Storage,
			NumConsumers:    d.cfg.InFlight.Requests,
			Batch:           configured.Batch,
		})
	}
	return s
}

// start connects. The queue calls it before there is anything to send.
func (d *destination) start(ctx context.Context, host component.Host) error {
	t, err := transport.New(ctx, d.cfg.Transport, d.transportSettings(), host)
	if err != nil {
		return err
	}
	d.transport = t
	d.propagates = propagates()
	d.server.Start(host)
	d.lanes.common.start()
	d.running.Go(d.watch)
	return nil
}

// serverSettings are the settings of the server's state.
func (d *destination) serverSettings() *server.Settings {
	return &server.Settings{
		Endpoint: redact.URL(d.client.Endpoint), Mode: d.cfg.Mode, Reprobe: d.cfg.ReprobeInterval, Compression: d.client.Compression,
		ByProxy: transport.ByProxy, Gate: &d.gate, Logger: d.set.Logger, Tally: d.tally, Over: d.ctx,
		Ill: func() {
			if d.ending.Load() {
				d.rest()
			}
		},
		AllWell: func() bool {
			return !slices.ContainsFunc(d.dests, func(other *destination) bool { return !other.server.IsHealthy() })
		},
	}
}

// transportSettings are the settings of the transport.
func (d *destination) transportSettings() *transport.Settings {
	return &transport.Settings{
		Signal: d.signal, Client: d.client, HTTP: d.cfg.HTTP.client(), URL: d.cfg.HTTP.endpoint(d.signal),
		Connections: d.cfg.Connections, Alone: d.cfg.Rebalance.Scope == scopeConnection, Renew: d.cfg.Rebalance.Timeout, Requests: d.cfg.InFlight.Requests,
		Reconnect: d.cfg.Retry.MaxInterval, Caps: d.caps(), Identity: d.identity,
		Build: d.set.BuildInfo, Telemetry: d.set.TelemetrySettings, Wire: &d.tally.Wire,
	}
}

// caps returns the capabilities with which streams are opened.
func (d *destination) caps() otlpstream.Caps {
	if d.cfg.Ordered {
		return otlpstream.AllCaps | otlpstream.CapOrdered
	}
	return otlpstream.AllCaps
}

// watch resends requests that the server does not answer, and ends streams that it does not close.
func (d *destination) watch() {
	tick := time.NewTicker(max(d.cfg.AckTimeout/20, time.Millisecond))
	defer tick.Stop()
	for {
		select {
		case now := <-tick.C:
			for _, s := range d.lanes.all() {
				s.expire(now)
			}
			d.lanes.sweep(now)
			d.compareAcks()
		case <-d.quit:
			return
		}
	}
}

// compareAcks logs when requests may be resent although their answers would only have taken a little longer.
func (d *destination) compareAcks() {
	const enough, margin = 100, 10
	acks := d.tally.Acks.Snapshot()
	slow := acks.Count >= enough && margin*acks.P99 > d.cfg.AckTimeout
	if slow && !d.slowAcks {
		d.set.Logger.Warn("`ack_timeout` is short compared with the time of answers: set it to ten times that, or requests may be sent twice",
			zap.Duration("ack_timeout", d.cfg.AckTimeout), zap.Duration("p99", acks.P99))
	}
	d.slowAcks = slow
}

// shutdown stops the queue, which drains as long as deliveries take: so the time limit is applied here.
func (d *destination) shutdown(ctx context.Context) error {
	if d.cfg.Shutdown.WaitForAcks {
		t := time.AfterFunc(d.cfg.ending.begin(d.cfg.Shutdown.Timeout), d.giveUp)
		defer t.Stop()
		defer context.AfterFunc(ctx, d.giveUp)()
		d.ending.Store(true)
		if !d.server.IsHealthy() {
			d.rest()
		}
	} else {
		d.giveUp()
	}
	var errs []error
	for _, q := range append(d.adopted, d.queue) { // its own last: it closes what the others need
		errs = append(errs, q.Shutdown(ctx))
	}
	return errors.Join(errs...)
}

// rest begins nothing more when the server is down and a queue on disk keeps unsent data: it only waits for requests in
// flight, so that these do not arrive twice.
func (d *destination) rest() {
	if d.queue.Stored() {
		d.account.Rest(d.giveUp)
	}
}

// close ends the streams: first regularly, and a moment later by force. The queue calls it when nothing is in flight
// any more.
func (d *destination) close(context.Context) error {
	const moment = time.Second
	d.giveUp()
	t := time.AfterFunc(moment, d.cutOff)
	d.lanes.quit()
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
