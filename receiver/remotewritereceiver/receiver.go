// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package remotewritereceiver

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"runtime"
	"sync"
	"sync/atomic"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/component/componentstatus"
	"go.opentelemetry.io/collector/config/confighttp"
	"go.opentelemetry.io/collector/config/confighttp/xconfighttp"
	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/receiver"
	"go.opentelemetry.io/collector/receiver/receiverhelper"
	"go.opentelemetry.io/contrib/instrumentation/net/http/otelhttp"
	"go.opentelemetry.io/otel/metric"
	"go.uber.org/zap"

	"github.com/godwit-otel/godwit/internal/audience"
	"github.com/godwit-otel/godwit/internal/handback"
	"github.com/godwit-otel/godwit/internal/heads"
	"github.com/godwit-otel/godwit/internal/http1"
	"github.com/godwit-otel/godwit/internal/inspect"
	"github.com/godwit-otel/godwit/internal/memlimit"
	"github.com/godwit-otel/godwit/internal/promwrite"
	"github.com/godwit-otel/godwit/receiver/remotewritereceiver/internal/admission"
	"github.com/godwit-otel/godwit/receiver/remotewritereceiver/internal/metadata"
	"github.com/godwit-otel/godwit/receiver/remotewritereceiver/internal/replicas"
)

type remoteWriteReceiver struct {
	cfg       *Config
	settings  receiver.Settings
	next      consumer.Metrics
	obsreport *receiverhelper.ObsReport
	telemetry *metadata.TelemetryBuilder
	// fine are the attributes of successful requests, by version.
	fine map[promwrite.Version]metric.MeasurementOption

	replicas *replicas.Elections // nil if replicas are not told apart
	infos    *infos              // nil unless target_info sets attributes of resources

	memory *admission.Memory     // of all requests in flight
	slots  chan struct{}         // one per CPU, taken while a worker works
	idle   sync.Pool             // of workers
	known  atomic.Pointer[known] // shared by all requests
	aged   atomic.Int64          // when it was last aged
	reuse  bool                  // the memory of metrics is used again
	defers bool                  // and values of points may be left out until asked for
	trees  sync.Pool             // of reused metrics
	// knownBytes limits what is known. That is shared by requests until a component modifies it.
	knownBytes int
	spoiled    atomic.Bool

	server     server
	address    net.Addr
	done       sync.WaitGroup
	tally      tally
	tap        inspect.Tap // observes what is handed on
	unregister func()
}

// server is the server of net/http or our own.
type server interface {
	Serve(l net.Listener) error
	Shutdown(ctx context.Context) error
	Close() error
}

func newReceiver(cfg *Config, set receiver.Settings, next consumer.Metrics) (*remoteWriteReceiver, error) {
	transport := "http"
	if cfg.HTTP.TLS.HasValue() {
		transport = "https"
	}
	obsreport, err := receiverhelper.NewObsReport(receiverhelper.ObsReportSettings{
		ReceiverID: set.ID, Transport: transport, ReceiverCreateSettings: set,
	})
	if err != nil {
		return nil, fmt.Errorf("cannot set up telemetry: %w", err)
	}
	telemetry, err := metadata.NewTelemetryBuilder(set.TelemetrySettings)
	if err != nil {
		return nil, fmt.Errorf("cannot set up telemetry: %w", err)
	}
	r := &remoteWriteReceiver{
		cfg: cfg, settings: set, next: next, obsreport: obsreport, telemetry: telemetry, unregister: func() {},
	}
	r.fine = map[promwrite.Version]metric.MeasurementOption{}
	for _, version := range []promwrite.Version{promwrite.V1, promwrite.V2} {
		r.fine[version] = r.requestOf(version, http.StatusNoContent)
	}
	return r, nil
}

// Start listens. Requests are served from then on.
func (r *remoteWriteReceiver) Start(ctx context.Context, host component.Host) error {
	r.decideReuse(host)
	r.prepare()

	server := r.cfg.HTTP
	server.CompressionAlgorithms = []string{} // bodies are read as sent: their encoding is part of the protocol
	if err := r.observe(); err != nil {
		return err
	}
	listener, err := server.ToListener(ctx)
	if err != nil {
		return fmt.Errorf("cannot listen on `endpoint` %q: %w", server.NetAddr.Endpoint, err)
	}
	mux := http.NewServeMux()
	mux.Handle(r.cfg.Path, r)
	var options []confighttp.ToServerOption
	if audience.None(r.settings.TelemetrySettings, otelhttp.ScopeName) {
		// It would make half of the garbage of a request.
		silent := otelhttp.WithFilter(func(*http.Request) bool { return false })
		options = append(options, xconfighttp.WithOtelHTTPOptions(silent))
	}
	with, err := server.ToServer(ctx, host.GetExtensions(), r.settings.TelemetrySettings, mux, options...)
	if err != nil {
		return errors.Join(fmt.Errorf("cannot make the HTTP server: %w", err), listener.Close())
	}
	if server.TLS.HasValue() { // with HTTP/2
		with.MaxHeaderBytes = heads.Largest
		r.server = with
	} else {
		r.server = http1.New(with, server.KeepAlivesEnabled)
	}
	r.address = listener.Addr()
	r.unregister = inspect.Register(host, r.inspection())
	r.settings.Logger.Info("Receiving remote write",
		zap.Stringer("address", r.address), zap.String("path", r.cfg.Path))
	r.done.Go(func() {
		if err := r.server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
			componentstatus.ReportStatus(host, componentstatus.NewFatalErrorEvent(err))
		}
	})
	return nil
}

// prepare prepares what requests need.
func (r *remoteWriteReceiver) prepare() {
	size := r.cfg.MaxMemory
	if size == 0 {
		size = admission.SizeFor(memlimit.Available())
	}
	r.memory = admission.New(size)
	r.knownBytes = int(knownShare.Of(memlimit.Available()))
	r.known.Store(newKnown(r.knownBytes, r.reuse && !handback.Poisons()))
	if r.cfg.Replicas.Deduplicate {
		r.replicas = replicas.New(*r.cfg.Replicas.rules(), r.settings.Logger)
	}
	if r.cfg.TargetInfo.ToResource {
		r.infos = newInfos(r.cfg.TargetInfo.MaxTargets)
	}
	r.slots = make(chan struct{}, runtime.GOMAXPROCS(0))
}

// Shutdown stops listening and waits, within ctx, for the requests in flight; then it cuts them off.
func (r *remoteWriteReceiver) Shutdown(ctx context.Context) error {
	defer r.telemetry.Shutdown()
	if r.server == nil {
		return nil
	}
	r.unregister()
	err := r.server.Shutdown(ctx)
	if err != nil {
		err = errors.Join(fmt.Errorf("cannot finish the requests in flight: %w", err), r.server.Close())
	}
	r.done.Wait()
	return err
}
