// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package remotewriteexporter

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"path/filepath"
	"sync"
	"sync/atomic"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/config/confighttp"
	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/exporter"
	"go.opentelemetry.io/collector/extension/xextension/storage"
	"go.uber.org/zap"

	"github.com/godwit-otel/godwit/internal/handback"
	"github.com/godwit-otel/godwit/internal/inspect"
	"github.com/godwit-otel/godwit/internal/memlimit"
	"github.com/godwit-otel/godwit/internal/redact"

	"github.com/godwit-otel/godwit/exporter/remotewriteexporter/internal/block"
	"github.com/godwit-otel/godwit/exporter/remotewriteexporter/internal/queue"
	"github.com/godwit-otel/godwit/exporter/remotewriteexporter/internal/send"
)

// remoteWrite is the exporter. Data goes from the intake, which encodes it, into the queue. From there senders take it,
// as many for each destination as there may be shards.
type remoteWrite struct {
	cfg          *Config
	set          exporter.Settings
	telemetry    *telemetry
	intake       *intake
	queue        *queue.Queue
	destinations []*send.Destination
	resolver     resolver

	taken, turnedDown atomic.Int64 // points from the pipeline
	tap               inspect.Tap  // shows metrics that come

	mu         sync.Mutex // guards the fields below
	stopped    bool
	stored     string             // the place of the queue; empty if it is in memory
	unregister func()             // of what is shown
	cancel     context.CancelFunc // ends the senders
	senders    sync.WaitGroup
}

var _ handback.Settler = (*remoteWrite)(nil)

func newExporter(cfg *Config, set exporter.Settings, keys Keys) (*remoteWrite, error) {
	set.Logger = redact.Logger(set.Logger)
	t, err := newTelemetry(set)
	if err != nil {
		return nil, err
	}
	in, err := newIntake(cfg, keys, t)
	if err != nil {
		return nil, err
	}
	return &remoteWrite{cfg: cfg, set: set, telemetry: t, intake: in, resolver: net.DefaultResolver}, nil
}

// Capabilities declares that metrics are not modified.
func (*remoteWrite) Capabilities() consumer.Capabilities { return consumer.Capabilities{} }

// ReleasesMetrics declares that no metrics are kept once they are consumed, whatever the configuration: they are
// encoded before ConsumeMetrics returns, even if that waits for the queue, and the encoder copies what it remembers.
func (*remoteWrite) ReleasesMetrics() error { return nil }

// SettlesParts declares that attributes which were left out of points are filled in before they are read.
func (*remoteWrite) SettlesParts() {}

// ReturnsBatches declares that parts of a batch are returned once they are encoded.
func (*remoteWrite) ReturnsBatches() {}

// Start opens the queue and starts to send what is in it.
func (e *remoteWrite) Start(ctx context.Context, host component.Host) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.telemetry.host = host
	clients := e.cfg.clients()
	for i := range clients {
		e.telemetry.addDestination(clients[i].client.Endpoint)
	}
	client, where, err := e.storage(ctx, host)
	if err != nil {
		return err
	}
	e.stored = where
	e.sizeQueues(clients, client != nil, memlimit.Available())
	q, err := queue.Open(ctx, queue.Config{
		Destinations:  identities(clients),
		Policy:        queue.Policy{OnFull: onFull[e.cfg.Queue.OnFull]}, // of batches
		Own:           policies(clients),
		Apart:         e.intake.routing.apart(),
		Batches:       e.cfg.Queue.MaxBatches,
		Tenants:       e.cfg.Tenant.most(),
		Senders:       e.cfg.Shards.Max,
		Storage:       client,
		Legacy:        left.take(e.set.ID, identities(clients)),
		Dropped:       e.queueDropped,
		Lost:          e.telemetry.lost,
		StorageFailed: e.telemetry.storageFailed,
	})
	if err != nil {
		if client != nil {
			err = errors.Join(err, client.Close(ctx))
		}
		return err
	}
	var destinations []*send.Destination
	for i := range clients {
		d, err := e.newDestination(ctx, host, &clients[i], e.telemetry.destinations[i])
		if err != nil {
			return errors.Join(err, q.Close(ctx))
		}
		destinations = append(destinations, d)
	}
	e.queue, e.destinations = q, destinations
	if err := e.telemetry.observe(e); err != nil {
		return errors.Join(err, q.Close(ctx))
	}

	run, cancel := context.WithCancel(context.Background())
	e.cancel = cancel
	for i := range destinations {
		for range e.cfg.Shards.Max {
			e.senders.Go(func() { e.send(run, i) })
		}
	}
	e.intake.start(q, destinations, client != nil)
	e.logElsewhere()
	e.unregister = inspect.Register(host, e.inspection())
	return nil
}

func (e *remoteWrite) newDestination(ctx context.Context, host component.Host, c *namedClient, t *destinationTelemetry) (*send.Destination, error) {
	cfg := c.client
	if cfg.MaxIdleConnsPerHost == 0 {
		cfg.MaxIdleConnsPerHost = e.cfg.Shards.Max // one connection for each shard, kept open
	}
	timeout := e.cfg.Timeout
	if cfg.Timeout > 0 {
		timeout = cfg.Timeout
	}
	if cfg.ForceAttemptHTTP2 && cfg.HTTP2ReadIdleTimeout == 0 { // otherwise a connection that only swallows requests is used for a quarter of an hour
		cfg.HTTP2ReadIdleTimeout = timeout
		cfg.HTTP2PingTimeout = cmp.Or(cfg.HTTP2PingTimeout, timeout)
	}
	log := e.set.Logger.With(zap.String("destination", t.name))
	endpoint, by := discovery(cfg.Endpoint)
	cfg.Endpoint = endpoint
	client, err := e.newClient(ctx, host, c, cfg, by, log)
	if err != nil {
		return nil, err
	}
	renewTransport(client, &cfg, log, func() (*http.Client, error) {
		return e.newClient(context.Background(), host, c, cfg, by, log)
	})
	var tenants send.Tenants
	if e.cfg.Tenant.any() {
		tenants = naming{&e.cfg.Tenant}
	}
	return send.New(send.Config{
		URL:       cfg.Endpoint,
		Client:    client,
		Formats:   e.cfg.formats(c),
		Timeout:   timeout,
		Reprobe:   e.cfg.ReprobeInterval,
		Tenants:   tenants,
		UserAgent: fmt.Sprintf("%s/%s", e.set.BuildInfo.Command, e.set.BuildInfo.Version),
		Retry: send.Retry{
			InitialInterval:     e.cfg.Retry.InitialInterval,
			MaxInterval:         e.cfg.Retry.MaxInterval,
			Multiplier:          e.cfg.Retry.Multiplier,
			RandomizationFactor: e.cfg.Retry.RandomizationFactor,
			MaxElapsedTime:      e.cfg.Retry.MaxElapsedTime,
			MaxRetryAfter:       e.cfg.Retry.MaxRetryAfter,
			StatusCodes:         e.cfg.Retry.StatusCodes,
		},
		Rate:    send.Rate{Bytes: c.rate.BytesPerSecond, Samples: c.rate.SamplesPerSecond},
		Breaker: send.Breaker{Failures: e.cfg.CircuitBreaker.ConsecutiveFailures, OpenFor: e.cfg.CircuitBreaker.OpenFor},
	}, log, t), nil
}

// newClient makes an HTTP client for a destination, whose addresses are found as by says.
func (e *remoteWrite) newClient(
	ctx context.Context, host component.Host, c *namedClient, cfg confighttp.ClientConfig, by string, log *zap.Logger,
) (*http.Client, error) {
	extensions := host.GetExtensions()
	if by != "" {
		var err error
		if extensions, err = balance(&cfg, extensions, by, e.resolver); err != nil {
			return nil, fmt.Errorf("cannot use `%s`: %w", c.endpointKey, err)
		}
	}
	client, err := cfg.ToClient(ctx, extensions, e.set.TelemetrySettings)
	if err != nil {
		return nil, fmt.Errorf("cannot make the client for `%s`: %w", c.endpointKey, err)
	}
	c.authenticate(client)
	watchAuth(client, &cfg, &e.cfg.Tenant, log)
	return client, nil
}

// queueDropped records that the queue dropped a block.
func (e *remoteWrite) queueDropped(destination int, reason string, h block.Header) {
	e.telemetry.queueDropped(destination, reason, h)
	if h.Exemplars > 0 {
		e.intake.encoder.ForgetExemplars()
	}
}

// storage opens the queue's storage, and returns its place; nil for memory.
func (e *remoteWrite) storage(ctx context.Context, host component.Host) (client storage.Client, where string, err error) {
	id := e.cfg.Queue.Storage
	switch {
	case id == nil && e.cfg.Queue.Directory != "":
		client, err = e.openDirectory(ctx)
		return client, e.ownFolder(), err
	case id == nil:
		return nil, "", nil
	case e.cfg.Queue.Directory != "":
		e.warnOfDirectory()
	}
	found, ok := host.GetExtensions()[*id]
	if !ok {
		return nil, "", fmt.Errorf("cannot find the extension %q of `queue.storage`: add it to `service.extensions`", id)
	}
	extension, ok := found.(storage.Extension)
	if !ok {
		return nil, "", fmt.Errorf("cannot use the extension %q of `queue.storage`: it is no storage", id)
	}
	client, err = e.openStorage(ctx, extension)
	if err != nil {
		return nil, "", fmt.Errorf("cannot open the storage %q of `queue.storage`: %w", id, err)
	}
	if folder, ok := folderOf(extension); ok {
		return client, filepath.Join(folder, fileStorageName(e.set.ID)), nil
	}
	return client, id.String(), nil
}

// send is the loop of one sender of a destination.
func (e *remoteWrite) send(ctx context.Context, destination int) {
	d := e.destinations[destination]
	for {
		lease, err := e.queue.Next(ctx, destination, e.together(d))
		switch {
		case errors.Is(err, queue.ErrClosed):
			return
		case err != nil:
			e.telemetry.storageFailed(err)
			continue // with another shard, if there is one
		}
		lost, err := d.Send(ctx, lease.Blocks, send.Times{Queued: lease.Queued, Deadlines: lease.Deadlines})
		later, ended := (*send.LaterError)(nil), (*send.EndedError)(nil)
		switch {
		case err == nil:
			lease.Done(lost)
		case errors.As(err, &later):
			lease.Later(later.Done, lost, later.Wait)
		case errors.As(err, &ended):
			lease.ReleaseRest(ended.Done, lost)
			return
		}
	}
}

// together limits the queued blocks that are sent as one request: to what is encoded as one.
func (e *remoteWrite) together(d *send.Destination) queue.Bound {
	b := &e.cfg.Batch
	most := queue.Bound{Samples: b.MaxSamples, Bytes: b.MaxBytes, Raw: e.intake.maxRaw}
	if raw, wire := d.Largest(); wire > 0 {
		most.Bytes, most.Raw = min(most.Bytes, wire), min(most.Raw, raw)
	}
	return most
}

// leaveRest leaves unsent data to the exporter that a reload starts under this name. If there is none, it is lost;
// since that is not known yet, it counts as lost.
func (e *remoteWrite) leaveRest() {
	rest := e.queue.Leave()
	if rest == nil {
		return
	}
	left.leave(e.set.ID, rest)
	h, blocks := rest.Header()
	e.set.Logger.Warn("shut down with data in the queue in memory: a reload continues with it, otherwise it is lost",
		zap.Int("blocks", blocks), zap.Int("samples", h.Samples), zap.Int("histograms", h.Histograms))
}

// Shutdown encodes and queues what there is, sends as much of it as the time limit allows, and leaves the rest to the
// storage or drops it.
func (e *remoteWrite) Shutdown(ctx context.Context) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.stopped {
		return nil
	}
	e.stopped = true
	defer e.telemetry.shutdown()
	if e.cancel == nil {
		return nil // never started
	}
	e.unregister()
	e.intake.stop()
	bound, cancel := context.WithTimeout(ctx, e.cfg.ShutdownTimeout)
	defer cancel()
	if !e.intake.durable {
		e.queue.Drain(bound)
	}
	// From here on, only requests in flight are waited for. Stored data can wait: no pause of a destination is sat out
	// for it.
	e.queue.Stop()
	if e.intake.durable {
		for _, d := range e.destinations {
			d.Hurry()
		}
	}
	done := make(chan struct{})
	go func() { e.senders.Wait(); close(done) }()
	select {
	case <-done:
	case <-bound.Done():
	}
	e.cancel()
	<-done
	e.leaveRest()
	e.leaveStored()
	for _, d := range e.destinations {
		d.Close()
	}
	return e.queue.Close(ctx)
}
