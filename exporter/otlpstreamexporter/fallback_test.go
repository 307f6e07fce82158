// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package otlpstreamexporter

import (
	"context"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/config/configcompression"
	"go.opentelemetry.io/collector/exporter"
	"go.opentelemetry.io/collector/exporter/exportertest"
	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/stats"
	"google.golang.org/grpc/status"

	"github.com/godwit-otel/godwit/exporter/otlpstreamexporter/internal/account"
	"github.com/godwit-otel/godwit/exporter/otlpstreamexporter/internal/metadata"
	"github.com/godwit-otel/godwit/exporter/otlpstreamexporter/internal/server"
	"github.com/godwit-otel/godwit/exporter/otlpstreamexporter/internal/transport"
	"github.com/godwit-otel/godwit/internal/otlpstream"
)

// choosy is an OTLP server without streams that accepts only some compressions.
type choosy struct {
	addr  string
	takes []string
	// refusal is its response to the others.
	refusal int // an HTTP status; over gRPC, the corresponding code

	mu    sync.Mutex
	asked []string // compressions, in the order of requests
	names []string
}

func startChoosy(t *testing.T, kind string, s *choosy) *choosy {
	listener, err := net.Listen("tcp", "localhost:0")
	require.NoError(t, err)
	s.addr = listener.Addr().String()
	if kind == transport.GRPC {
		g := grpc.NewServer(grpc.StatsHandler(sniffer{}))
		for _, signal := range otlpstream.Signals() {
			g.RegisterService(&grpc.ServiceDesc{
				ServiceName: signal.OTLPService(), HandlerType: (*any)(nil),
				Methods: []grpc.MethodDesc{{MethodName: "Export", Handler: func(_ any, ctx context.Context, decode func(any) error, _ grpc.UnaryServerInterceptor) (any, error) {
					var data otlpstream.Raw
					if err := decode(&data); err != nil {
						return nil, err
					}
					if !s.take(*ctx.Value(sniffer{}).(*string), func() string { return nameOfAny(t, signal, data) }) {
						return nil, status.Error(httpCode(s.refusal), "grpc: Decompressor is not installed for grpc-encoding")
					}
					return new(otlpstream.Raw), nil
				}}},
			}, nil)
		}
		done := make(chan struct{})
		go func() { defer close(done); _ = g.Serve(listener) }()
		t.Cleanup(func() { g.Stop(); <-done })
		return s
	}
	h := &httptest.Server{Listener: listener, Config: &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		signals := otlpstream.Signals()
		i := slices.IndexFunc(signals, func(signal otlpstream.Signal) bool { return r.URL.Path == signal.HTTPPath() })
		if i < 0 {
			http.NotFound(w, r)
			return
		}
		taken := s.take(r.Header.Get("Content-Encoding"), func() string {
			body, err := io.ReadAll(decompress(t, r))
			require.NoError(t, err)
			return nameOfAny(t, signals[i], body)
		})
		if !taken {
			w.WriteHeader(s.refusal)
		}
	})}}
	h.Start()
	t.Cleanup(h.Close)
	return s
}

// nameOfAny returns the name of a request of traces, or the signal of another one.
func nameOfAny(tb testing.TB, signal otlpstream.Signal, data []byte) string {
	if signal == otlpstream.Traces {
		return nameOf(tb, data)
	}
	require.NotEmpty(tb, data)
	return signal.String()
}

func httpCode(code int) codes.Code {
	if code == http.StatusBadRequest {
		return codes.InvalidArgument
	}
	return codes.Unimplemented
}

func (s *choosy) take(compression string, name func() string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.asked = append(s.asked, compression)
	if !slices.Contains(s.takes, compression) {
		return false
	}
	s.names = append(s.names, name())
	return true
}

func (s *choosy) seen() (asked, names []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.asked), slices.Clone(s.names)
}

// sniffer records the compressions of calls, which servers do not pass to their handlers.
type sniffer struct{}

func (s sniffer) TagRPC(ctx context.Context, _ *stats.RPCTagInfo) context.Context {
	return context.WithValue(ctx, s, new(string))
}

func (s sniffer) HandleRPC(ctx context.Context, st stats.RPCStats) {
	if in, ok := st.(*stats.InHeader); ok && in.Compression != grpcIdentity {
		*ctx.Value(s).(*string) = in.Compression
	}
}

const grpcIdentity = "identity"

func (sniffer) TagConn(ctx context.Context, _ *stats.ConnTagInfo) context.Context { return ctx }

func (sniffer) HandleConn(context.Context, stats.ConnStats) {}

func TestACompressionThatTheServerTakesIsFoundAndRemembered(t *testing.T) {
	const none = ""
	for name, c := range map[string]struct {
		configured configcompression.Type
		takes      []string
		refusal    int
		asked      []string // for the first three requests
	}{
		"a server that knows only gzip":  {configcompression.TypeZstd, []string{none, "gzip"}, http.StatusUnsupportedMediaType, []string{"zstd", "gzip", "gzip", "gzip"}},
		"one that takes it for garbage":  {configcompression.TypeZstd, []string{none, "gzip"}, http.StatusBadRequest, []string{"zstd", "gzip", "gzip", "gzip"}},
		"one that knows no compression":  {configcompression.TypeZstd, []string{none}, http.StatusUnsupportedMediaType, []string{"zstd", "gzip", none, none, none}},
		"one that does not know gzip":    {configcompression.TypeGzip, []string{none}, http.StatusUnsupportedMediaType, []string{"gzip", none, none, none}},
		"one that knows what it is sent": {configcompression.TypeZstd, []string{"zstd"}, 0, []string{"zstd", "zstd", "zstd"}},
	} {
		t.Run(name, func(t *testing.T) {
			allTransports(t, func(t *testing.T, kind string) {
				for _, mode := range []string{server.Unary, server.Auto} {
					t.Run(mode, func(t *testing.T) {
						s := startChoosy(t, kind, &choosy{takes: c.takes, refusal: c.refusal})
						core, logs := observer.New(zap.WarnLevel)
						set := exportertest.NewNopSettings(metadata.Type)
						set.Logger = zap.New(core)
						e := startExporter(t, set, componenttest.NewNopHost(), testConfig(kind, s.addr, func(cfg *Config) {
							cfg.Mode, cfg.Client.Compression = mode, c.configured
						}))
						for i := range 3 {
							e.export(i, 1)
							require.Equal(t, int64(i+1), e.settled().Acked)
						}
						asked, names := s.seen()
						require.Equal(t, c.asked, asked)
						require.Equal(t, []string{batch(0), batch(1), batch(2)}, names)
						lines := 1
						if len(asked) == 3 {
							lines = 0
						}
						require.Equal(t, lines, logs.FilterMessageSnippet("compression").Len(), "it is said once, if there is something to say")
					})
				}
			})
		})
	}
}

// OTLP requires servers to support gzip and no other compression, for each signal: nothing is lost with such a server,
// over any transport.
func TestEachSignalIsSentToAServerThatKnowsOnlyGzip(t *testing.T) {
	md, ld := pmetric.NewMetrics(), plog.NewLogs()
	md.ResourceMetrics().AppendEmpty().ScopeMetrics().AppendEmpty().Metrics().AppendEmpty().SetEmptyGauge().DataPoints().AppendEmpty().SetIntValue(1)
	ld.ResourceLogs().AppendEmpty().ScopeLogs().AppendEmpty().LogRecords().AppendEmpty().Body().SetStr("a line")
	for name, create := range map[string]func(ctx context.Context, set exporter.Settings, cfg *Config) (component.Component, *streamExporter, func() error){
		"metrics": func(ctx context.Context, set exporter.Settings, cfg *Config) (component.Component, *streamExporter, func() error) {
			e, err := createMetrics(ctx, set, cfg)
			require.NoError(t, err)
			return e, e.(*metricsExporter).streamExporter, func() error { return e.ConsumeMetrics(ctx, md) }
		},
		"logs": func(ctx context.Context, set exporter.Settings, cfg *Config) (component.Component, *streamExporter, func() error) {
			e, err := createLogs(ctx, set, cfg)
			require.NoError(t, err)
			return e, e.(*logsExporter).streamExporter, func() error { return e.ConsumeLogs(ctx, ld) }
		},
		"profiles": func(ctx context.Context, set exporter.Settings, cfg *Config) (component.Component, *streamExporter, func() error) {
			e, err := createProfiles(ctx, set, cfg)
			require.NoError(t, err)
			return e, e.(*profilesExporter).streamExporter, func() error { return e.ConsumeProfiles(ctx, profiles(1, 1)) }
		},
	} {
		t.Run(name, func(t *testing.T) {
			allTransports(t, func(t *testing.T, kind string) {
				for _, refusal := range []int{http.StatusUnsupportedMediaType, http.StatusBadRequest} {
					s := startChoosy(t, kind, &choosy{takes: []string{"gzip"}, refusal: refusal})
					core, logs := observer.New(zap.WarnLevel)
					set := exportertest.NewNopSettings(metadata.Type)
					set.Logger = zap.New(core)
					c, e, send := create(t.Context(), set, testConfig(kind, s.addr, noQueue))
					require.NoError(t, c.Start(t.Context(), componenttest.NewNopHost()))
					for range 3 {
						require.NoError(t, send())
					}
					require.NoError(t, c.Shutdown(context.Background()))
					require.Equal(t, int64(3), balanced(t, e.dests[0]).Acked)
					asked, names := s.seen()
					require.Equal(t, []string{"zstd", "gzip", "gzip", "gzip"}, asked)
					require.Len(t, names, 3)
					require.Equal(t, 1, logs.FilterMessageSnippet("compression").Len(), "it is said once")
				}
			})
		})
	}
}

func TestWhatAServerRefusesInAnyCompressionIsDropped(t *testing.T) {
	allTransports(t, func(t *testing.T, kind string) {
		for _, refusal := range []int{http.StatusUnsupportedMediaType, http.StatusBadRequest} {
			s := startChoosy(t, kind, &choosy{refusal: refusal})
			e := newTestExporter(t, kind, s.addr, func(cfg *Config) { cfg.Mode = server.Unary })
			e.export(0, 1)
			require.Equal(t, int64(1), e.settled().Dropped[account.Rejected])
			asked, _ := s.seen()
			require.Equal(t, []string{"zstd", "gzip", ""}, asked)
			require.Equal(t, configcompression.TypeZstd, e.dest.server.Compression(), "it says nothing about compression")
		}
	})
}

func TestARequestThatIsMalformedIsNotSentAgainWhereItsCompressionIsKnown(t *testing.T) {
	allTransports(t, func(t *testing.T, kind string) {
		s := startChoosy(t, kind, &choosy{takes: []string{"zstd"}, refusal: http.StatusBadRequest})
		e := newTestExporter(t, kind, s.addr, func(cfg *Config) { cfg.Mode = server.Unary })
		e.export(0, 1)
		require.Equal(t, int64(1), e.settled().Acked)
		s.mu.Lock()
		s.takes = nil
		s.mu.Unlock()
		e.export(1, 1)
		require.Equal(t, int64(1), e.settled().Dropped[account.Rejected])
		asked, _ := s.seen()
		require.Len(t, asked, 2)
	})
}

// The response of a proxy after a server died says nothing about the request that was in progress.
func TestAProxyThatBreaksStreamsCountsAgainstNoRequest(t *testing.T) {
	breaks := 2 * strikesOut // more often than a request may break a stream
	s := run(t, &testServer{stream: func(p *peer) error {
		r, err := p.recv()
		if err != nil {
			return eof(err)
		}
		if p.number < breaks {
			return status.Error(codes.Internal, "stream terminated by RST_STREAM with error code: INTERNAL_ERROR")
		}
		p.ack(r.id)
		return echo(p)
	}}, transport.GRPC)
	e := newTestExporter(t, transport.GRPC, s.addr)
	e.export(0, 1)
	require.Equal(t, int64(1), e.settled().Acked)
	streams, _ := s.opened()
	require.Equal(t, breaks+1, streams)
}

// The transport recognizes grpc-go's messages: here they come from the library itself.
func TestAResetIsWhatTheLibrarySaysOfIt(t *testing.T) {
	listener, err := net.Listen("tcp", "localhost:0")
	require.NoError(t, err)
	protocols := new(http.Protocols)
	protocols.SetUnencryptedHTTP2(true)
	var calls atomic.Int64
	h := &http.Server{Protocols: protocols, Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		switch calls.Add(1) {
		case 1:
			panic(http.ErrAbortHandler) // RST_STREAM
		case 2:
			w.WriteHeader(http.StatusInternalServerError)
		default:
			w.Header().Set("Content-Type", "application/grpc")
			w.Header().Set("Trailer", "Grpc-Status")
			w.WriteHeader(http.StatusOK)
			_, _ = w.Write(make([]byte, 5)) // an empty message
			w.Header().Set("Grpc-Status", "0")
		}
	})}
	done := make(chan struct{})
	go func() { defer close(done); _ = h.Serve(listener) }()
	t.Cleanup(func() { h.Close(); <-done })
	e := newTestExporter(t, transport.GRPC, listener.Addr().String(), func(cfg *Config) { cfg.Mode = server.Unary })
	e.export(0, 1)
	require.Equal(t, int64(1), e.settled().Acked)
	require.Equal(t, int64(3), calls.Load())
}
