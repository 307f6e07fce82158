// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package otlpstreamreceiver

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"time"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/component/componentstatus"
	"go.opentelemetry.io/collector/receiver"
	"go.opentelemetry.io/otel/metric"
	"go.uber.org/zap"
	"google.golang.org/grpc"

	"github.com/godwit-otel/godwit/internal/inspect"
	"github.com/godwit-otel/godwit/internal/memlimit"
	"github.com/godwit-otel/godwit/internal/otlpstream"
	"github.com/godwit-otel/godwit/receiver/otlpstreamreceiver/internal/admission"
	"github.com/godwit-otel/godwit/receiver/otlpstreamreceiver/internal/arrivals"
	"github.com/godwit-otel/godwit/receiver/otlpstreamreceiver/internal/memory"
	"github.com/godwit-otel/godwit/receiver/otlpstreamreceiver/internal/seen"
)

// otlpReceiver is the receiver of all signals: its servers, and what they share.
type otlpReceiver struct {
	cfg      *Config
	settings receiver.Settings

	counts    *counts
	pipelines pipelines
	places    places
	memory    memory.Memory
	arrivals  *arrivals.Arrivals
	clients   seen.Clients
	requests  sync.Pool // of *otlpstream.Request, whose Buffer is reused
	// propagates reports whether traces continue from clients to the pipelines.
	propagates bool

	// Shorter in tests.
	noticeInterval, sendTimeout, pingEvery, pingPatience time.Duration

	grpc     *grpc.Server
	http     *http.Server
	grpcAddr string
	httpAddr string
	frames   *otlpstream.Frames
	servers  sync.WaitGroup

	// hardStop ends when streams take too long to drain.
	hardStop context.Context
	kill     context.CancelFunc

	unregister func() // of the inspection
}

func newReceiver(cfg *Config, set receiver.Settings) (*otlpReceiver, error) {
	counts, err := newCounts(set)
	if err != nil {
		return nil, err
	}
	r := &otlpReceiver{
		cfg: cfg, settings: set,
		counts:    counts,
		pipelines: pipelines{admission: admission.Admission{Limit: cfg.InFlight.Bytes}},
		places:    newPlaces(cfg.Streams.Max),
		memory:    memory.Memory{Limit: cfg.Streams.Memory},
		arrivals:  arrivals.New(roomForArrivals(cfg, memlimit.Available())),

		noticeInterval: noticeInterval, sendTimeout: cfg.DrainTimeout, pingEvery: pingEvery, pingPatience: pingPatience,

		unregister: func() {},
	}
	if cfg.Deduplicate.Enabled {
		r.clients.Most = cfg.Deduplicate.MaxSlots
	}
	r.hardStop, r.kill = context.WithCancel(context.Background())
	return r, nil
}

// Start starts the servers. They serve requests from then on.
func (r *otlpReceiver) Start(ctx context.Context, host component.Host) error {
	if r.pipelines.metrics != nil {
		r.pipelines.again.decide(host, r.settings)
	}
	err := r.counts.telemetry.RegisterReceiverOtlpstreamReuseCallback(func(_ context.Context, o metric.Int64Observer) error {
		o.Observe(r.pipelines.again.used(), r.counts.measured())
		return nil
	})
	if err != nil {
		return fmt.Errorf("cannot set up telemetry: %w", err)
	}
	err = r.counts.telemetry.RegisterReceiverOtlpstreamInFlightBytesCallback(func(_ context.Context, o metric.Int64Observer) error {
		o.Observe(int64(r.pipelines.admission.InFlight()), r.counts.measured())
		return nil
	})
	if err != nil {
		return fmt.Errorf("cannot set up telemetry: %w", err)
	}
	r.propagates = propagates()
	if r.cfg.Protocols.GRPC.HasValue() {
		err = r.startGRPC(ctx, host)
	}
	if err == nil && r.cfg.Protocols.HTTP.HasValue() {
		err = r.startHTTP(ctx, host)
	}
	if err != nil {
		return errors.Join(err, r.Shutdown(ctx))
	}
	r.unregister = inspect.Register(host, r.inspection())
	r.settings.Logger.Info("Receiving OTLP", zap.String("grpc", r.grpcAddr), zap.String("http", r.httpAddr))
	return nil
}

// Shutdown accepts no new requests, answers pending ones, lets clients end their streams, and aborts what has not ended
// when the drain timeout has passed or ctx has ended.
func (r *otlpReceiver) Shutdown(ctx context.Context) error {
	if !r.places.stop() {
		return nil
	}
	r.unregister()
	defer r.counts.telemetry.Shutdown()
	ctx, cancel := context.WithTimeout(ctx, r.cfg.DrainTimeout)
	defer cancel()
	var httpErr, cutErr error
	var drained sync.WaitGroup
	if r.grpc != nil {
		drained.Go(r.grpc.GracefulStop)
	}
	if r.http != nil {
		drained.Go(func() { httpErr = r.http.Shutdown(ctx) })
	}
	drained.Go(r.places.streams.Wait)

	done := make(chan struct{})
	go func() { drained.Wait(); close(done) }()
	select {
	case <-done:
	case <-ctx.Done():
		r.settings.Logger.Warn("Aborting the requests that did not finish in time", zap.Duration("drain_timeout", r.cfg.DrainTimeout))
		r.kill()
		if r.grpc != nil {
			r.grpc.Stop()
		}
		if r.http != nil {
			cutErr = r.http.Close()
		}
		<-done
	}
	r.kill()
	r.servers.Wait()
	if r.frames != nil {
		r.frames.Close()
	}
	if err := errors.Join(httpErr, cutErr); err != nil {
		return fmt.Errorf("cannot finish the requests in flight: %w", err)
	}
	return nil
}

func (r *otlpReceiver) fatal(host component.Host, err error) {
	componentstatus.ReportStatus(host, componentstatus.NewFatalErrorEvent(err))
}

// greet returns the limits of a stream and the server's capabilities for it. The session releases the memory in the
// limits.
func (r *otlpReceiver) greet(signal otlpstream.Signal, client otlpstream.Caps, maxMessage int) (otlpstream.Limits, otlpstream.Caps) {
	keep, caps := r.memory.Grant(signal, client)
	return otlpstream.Limits{
		Requests: r.cfg.InFlight.RequestsPerStream, Bytes: r.cfg.InFlight.BytesPerStream, MaxMessage: maxMessage, Keep: keep,
	}, caps
}

func (r *otlpReceiver) request() *otlpstream.Request {
	if request, ok := r.requests.Get().(*otlpstream.Request); ok {
		return request
	}
	return new(otlpstream.Request)
}

func (r *otlpReceiver) recycle(request *otlpstream.Request) {
	const maxRetained = 5 << 18 // a huge request must not hold memory for ever
	if cap(request.Buffer) <= maxRetained {
		r.requests.Put(request)
	}
}
