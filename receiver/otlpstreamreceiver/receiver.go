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
	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/consumer/xconsumer"
	"go.opentelemetry.io/collector/receiver"
	"go.opentelemetry.io/collector/receiver/receiverhelper"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
	"go.uber.org/zap"
	"google.golang.org/grpc"
	"google.golang.org/grpc/status"

	"github.com/godwit-otel/godwit/internal/inspect"
	"github.com/godwit-otel/godwit/internal/otlpstream"
	"github.com/godwit-otel/godwit/receiver/otlpstreamreceiver/internal/metadata"
)

type otlpReceiver struct {
	cfg       *Config
	settings  receiver.Settings
	telemetry *metadata.TelemetryBuilder
	obs       map[transport]*receiverhelper.ObsReport
	parented  map[transport]*receiverhelper.ObsReport // see session
	outcomes  map[outcome]*tally
	resent    map[transport]*tally
	traffic   traffic
	tap       inspect.Tap // sees what is handed on
	// propagates tells that traces go on from clients to the pipelines.
	propagates bool

	// The pipelines; nil where there is none for the signal.
	traces   consumer.Traces
	metrics  consumer.Metrics
	logs     consumer.Logs
	profiles xconsumer.Profiles

	admission admission
	memory    memory
	clients   clients
	again     again
	pressure  [otlpstream.SignalCount]pressure
	requests  sync.Pool     // of *otlpstream.Request, whose Buffer is reused
	slots     chan struct{} // places for streams
	waiting   chan struct{} // for those who wait for one

	// Tests have less patience.
	noticeInterval, placeWait, minIdle, minStay, sendTimeout, pingEvery, pingPatience time.Duration

	grpc     *grpc.Server
	http     *http.Server
	grpcAddr string
	httpAddr string

	mu       sync.Mutex
	stopped  bool
	sessions map[*session]struct{}
	streams  sync.WaitGroup // added to from outside only while not stopped

	// stopping is closed to make streams drain; hardStop ends when that took too long.
	stopping chan struct{}
	hardStop context.Context
	kill     context.CancelFunc
	servers  sync.WaitGroup
	frames   *otlpstream.Frames

	unregister func() // of what is shown
}

func newReceiver(cfg *Config, set receiver.Settings) (*otlpReceiver, error) {
	telemetry, err := metadata.NewTelemetryBuilder(set.TelemetrySettings)
	if err != nil {
		return nil, fmt.Errorf("cannot set up telemetry: %w", err)
	}
	r := &otlpReceiver{
		cfg: cfg, settings: set, telemetry: telemetry,
		admission: admission{limit: cfg.InFlight.Bytes},
		memory:    memory{limit: cfg.Streams.Memory},
		slots:     make(chan struct{}, cfg.Streams.Max),
		waiting:   make(chan struct{}, cfg.Streams.Max),
		stopping:  make(chan struct{}),
		sessions:  map[*session]struct{}{},

		noticeInterval: noticeInterval, placeWait: placeWait, minIdle: minIdle, minStay: minStay, sendTimeout: cfg.DrainTimeout,
		pingEvery: pingEvery, pingPatience: pingPatience,

		obs:      map[transport]*receiverhelper.ObsReport{},
		parented: map[transport]*receiverhelper.ObsReport{},
		outcomes: map[outcome]*tally{},
		resent:   map[transport]*tally{},

		unregister: func() {},
	}
	if cfg.Deduplicate.Enabled {
		r.clients.most = cfg.Deduplicate.MaxSlots
	}
	r.hardStop, r.kill = context.WithCancel(context.Background())
	for _, t := range transports {
		report := receiverhelper.ObsReportSettings{ReceiverID: set.ID, Transport: t.protocol(), ReceiverCreateSettings: set}
		if r.parented[t], err = receiverhelper.NewObsReport(report); err != nil {
			return nil, fmt.Errorf("cannot set up telemetry: %w", err)
		}
		// A stream's context lives as long as the stream: its requests' spans are roots, with a link to the stream's.
		report.LongLivedCtx = t.streams()
		if r.obs[t], err = receiverhelper.NewObsReport(report); err != nil {
			return nil, fmt.Errorf("cannot set up telemetry: %w", err)
		}
		r.resent[t] = &tally{options: []metric.AddOption{r.measuredOn(t)}}
		for _, result := range results {
			r.outcomes[outcome{t, result}] = &tally{options: []metric.AddOption{r.measuredOn(t, attribute.String("result", result))}}
		}
	}
	return r, nil
}

// Start listens. Requests are served from then on.
func (r *otlpReceiver) Start(ctx context.Context, host component.Host) error {
	if r.metrics != nil {
		r.again.decide(host, r.settings)
	}
	err := r.telemetry.RegisterReceiverOtlpstreamReuseCallback(func(_ context.Context, o metric.Int64Observer) error {
		o.Observe(r.again.used(), r.measured())
		return nil
	})
	if err != nil {
		return fmt.Errorf("cannot set up telemetry: %w", err)
	}
	err = r.telemetry.RegisterReceiverOtlpstreamInFlightBytesCallback(func(_ context.Context, o metric.Int64Observer) error {
		o.Observe(int64(r.admission.inFlight()), r.measured())
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
	r.settings.Logger.Info("Taking OTLP", zap.String("grpc", r.grpcAddr), zap.String("http", r.httpAddr))
	return nil
}

// Shutdown takes no new requests, answers those that are in, lets clients end their streams, and cuts off what has
// not ended when the drain timeout has passed, or ctx has ended.
func (r *otlpReceiver) Shutdown(ctx context.Context) error {
	r.mu.Lock()
	again := r.stopped
	r.stopped = true
	r.mu.Unlock()
	if again {
		return nil
	}
	r.unregister()
	defer r.telemetry.Shutdown()
	ctx, cancel := context.WithTimeout(ctx, r.cfg.DrainTimeout)
	defer cancel()
	close(r.stopping)
	var httpErr, cutErr error
	var drained sync.WaitGroup
	if r.grpc != nil {
		drained.Go(r.grpc.GracefulStop)
	}
	if r.http != nil {
		drained.Go(func() { httpErr = r.http.Shutdown(ctx) })
	}
	drained.Go(r.streams.Wait)

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

// has tells whether there is a pipeline for the signal.
func (r *otlpReceiver) has(signal otlpstream.Signal) bool {
	switch signal {
	case otlpstream.Traces:
		return r.traces != nil
	case otlpstream.Metrics:
		return r.metrics != nil
	case otlpstream.Logs:
		return r.logs != nil
	case otlpstream.Profiles:
		return r.profiles != nil
	}
	return false
}

// admit lets a request in by its size, before any work is done for it. A status is the refusal.
func (r *otlpReceiver) admit(ctx context.Context, signal otlpstream.Signal, obs *receiverhelper.ObsReport, size int, items uint64) (*hold, *status.Status) {
	now, why := time.Now(), memoryLimited
	wait := r.pressure[signal].left(now)
	if wait == 0 {
		var ok bool
		if wait, ok = r.admission.acquire(size, now); ok {
			return &hold{of: &r.admission, bytes: size, since: now}, nil
		}
		why = tooMuchInFlight
	}
	st := otlpstream.Busy(why, wait)
	refuse(ctx, signal, obs, int(min(items, uint64(size))), st.Err())
	r.traffic.fail(ctx, httpCode(st), 0, st.Message())
	return nil, st
}

// greet returns what a stream is granted, and what it is capable of. What it may keep is given back by its session.
func (r *otlpReceiver) greet(signal otlpstream.Signal, client otlpstream.Caps, maxMessage int) (otlpstream.Limits, otlpstream.Caps) {
	keep, caps := r.memory.grant(signal, client)
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
	const maxRetained = 5 << 18 // one huge request must not pin memory for ever
	if cap(request.Buffer) <= maxRetained {
		r.requests.Put(request)
	}
}
