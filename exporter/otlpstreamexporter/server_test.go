// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package otlpstreamexporter

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/coder/websocket"
	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/ptrace/ptraceotlp"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/godwit-otel/godwit/exporter/otlpstreamexporter/internal/transport"
	"github.com/godwit-otel/godwit/internal/otlpstream"
)

// testServer is a server with configurable behaviour.
type testServer struct {
	tb testing.TB
	// stream serves a stream to its end. If nil, the server does not support streams.
	stream func(*peer) error
	// unary serves a request of standard OTLP.
	unary  func(context.Context, string) error
	header []string // sent when a stream opens
	quiet  bool     // sends no headers before there is an answer

	mu       sync.Mutex
	streams  int
	open     int
	received []received
	caps     []string

	addr string
	stop func()
}

// received is a request as it arrived.
type received struct {
	stream  int
	id      uint64
	attempt uint64
	items   uint64
	name    string // of its first span; empty if there is none
	trace   otlpstream.TraceContext
	at      time.Time
}

// peer is the server's side of a stream.
type peer struct {
	*testServer

	number int
	ctx    context.Context
	read   func(*otlpstream.Request) error
	mu     sync.Mutex
	write  func(*otlpstream.Response) error
	raw    func([]byte) error // a message over gRPC, a frame over WebSocket
}

func (p *peer) recv() (received, error) {
	var r otlpstream.Request
	if err := p.read(&r); err != nil {
		return received{}, err
	}
	got := received{p.number, r.ID, r.Attempt, r.Items, nameOf(p.tb, r.Data), r.Trace, time.Now()}
	p.testServer.mu.Lock()
	defer p.testServer.mu.Unlock()
	p.received = append(p.received, got)
	return got, nil
}

func (p *peer) send(r otlpstream.Response) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.write(&r)
}

func (p *peer) ack(id uint64) { _ = p.send(otlpstream.Response{ID: id}) }

func nameOf(tb testing.TB, data []byte) string {
	request := ptraceotlp.NewExportRequest()
	require.NoError(tb, request.UnmarshalProto(data))
	if request.Traces().SpanCount() == 0 {
		return ""
	}
	return request.Traces().ResourceSpans().At(0).ScopeSpans().At(0).Spans().At(0).Name()
}

func (s *testServer) seen() []received {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]received(nil), s.received...)
}

func (s *testServer) opened() (all, open int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.streams, s.open
}

// names counts the requests by name.
func (s *testServer) names() map[string]int {
	names := map[string]int{}
	for _, r := range s.seen() {
		names[r.name]++
	}
	return names
}

func (s *testServer) serve(p *peer, caps string) error {
	s.mu.Lock()
	p.testServer, p.number = s, s.streams
	s.streams++
	s.open++
	s.caps = append(s.caps, caps)
	s.mu.Unlock()
	defer func() {
		s.mu.Lock()
		s.open--
		s.mu.Unlock()
	}()
	return s.stream(p)
}

func (s *testServer) one(ctx context.Context, data []byte) error {
	name := nameOf(s.tb, data)
	s.mu.Lock()
	s.received = append(s.received, received{stream: -1, name: name, at: time.Now()})
	s.mu.Unlock()
	if s.unary == nil {
		return nil
	}
	return s.unary(ctx, name)
}

// echo acknowledges everything.
func echo(p *peer) error {
	for {
		r, err := p.recv()
		if err != nil {
			return eof(err)
		}
		p.ack(r.id)
	}
}

// eof turns the client's half-close into a regular end.
func eof(err error) error {
	if errors.Is(err, io.EOF) {
		return nil
	}
	return err
}

// start starts the server. It can be started again, with the same address.
func (s *testServer) start(tb testing.TB, kind string) {
	if s.tb == nil {
		s.tb = tb
	}
	addr := s.addr
	if addr == "" {
		addr = "localhost:0"
	}
	var listener net.Listener
	eventually(tb, func() bool {
		var err error
		listener, err = net.Listen("tcp", addr)
		return err == nil
	}, "the address is free")
	s.addr = listener.Addr().String()
	if kind == transport.GRPC {
		s.startGRPC(listener)
	} else {
		s.startHTTP(listener)
	}
	tb.Cleanup(func() { s.stop() })
}

func (s *testServer) startGRPC(listener net.Listener) {
	const window = 8 << 20 // as configured on a server for long distances
	g := grpc.NewServer(grpc.InitialWindowSize(window), grpc.InitialConnWindowSize(window))
	if s.stream != nil {
		g.RegisterService(&grpc.ServiceDesc{
			ServiceName: otlpstream.StreamService, HandlerType: (*any)(nil),
			Streams: []grpc.StreamDesc{{
				StreamName: "ExportTraces", ClientStreams: true, ServerStreams: true,
				Handler: func(_ any, stream grpc.ServerStream) error {
					if !s.quiet {
						if err := stream.SendHeader(metadata.Pairs(s.header...)); err != nil {
							return err
						}
					}
					md, _ := metadata.FromIncomingContext(stream.Context())
					return s.serve(&peer{
						ctx:   stream.Context(),
						read:  func(r *otlpstream.Request) error { return stream.RecvMsg(r) },
						write: func(r *otlpstream.Response) error { return stream.SendMsg(r) },
						raw:   func(b []byte) error { return stream.SendMsg((*otlpstream.Raw)(&b)) },
					}, strings.Join(md.Get(otlpstream.HeaderCaps), ","))
				},
			}},
		}, nil)
	}
	g.RegisterService(&grpc.ServiceDesc{
		ServiceName: otlpstream.Traces.OTLPService(), HandlerType: (*any)(nil),
		Methods: []grpc.MethodDesc{{
			MethodName: "Export",
			Handler: func(_ any, ctx context.Context, decode func(any) error, _ grpc.UnaryServerInterceptor) (any, error) {
				var data otlpstream.Raw
				if err := decode(&data); err != nil {
					return nil, err
				}
				return new(otlpstream.Raw), s.one(ctx, data)
			},
		}},
	}, nil)
	done := make(chan struct{})
	go func() { defer close(done); _ = g.Serve(listener) }()
	s.stop = sync.OnceFunc(func() { g.Stop(); <-done })
}

func (s *testServer) startHTTP(listener net.Listener) {
	frames, err := otlpstream.NewFrames(64 << 20)
	require.NoError(s.tb, err)
	ctx, cancel := context.WithCancel(context.Background())
	var serving sync.WaitGroup
	mux := http.NewServeMux()
	mux.HandleFunc("POST "+otlpstream.Traces.HTTPPath(), func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(decompress(s.tb, r))
		assert.NoError(s.tb, err)
		if err := s.one(r.Context(), body); err != nil {
			if delay, ok := otlpstream.RetryDelay(status.Convert(err)); ok {
				w.Header().Set("Retry-After", strconv.Itoa(int(delay.Seconds())))
			}
			code := http.StatusBadRequest
			switch st := status.Convert(err); {
			case st.Code() == codes.Unauthenticated:
				code = http.StatusUnauthorized
			case otlpstream.Transient(st):
				code = http.StatusServiceUnavailable
			}
			w.WriteHeader(code)
		}
	})
	if s.stream != nil {
		mux.HandleFunc(otlpstream.Traces.WebSocketPath(), func(w http.ResponseWriter, r *http.Request) {
			serving.Add(1)
			defer serving.Done()
			for i := 0; i < len(s.header); i += 2 {
				w.Header().Set(s.header[i], s.header[i+1])
			}
			ws, err := websocket.Accept(w, r, nil)
			if err != nil {
				return
			}
			defer ws.CloseNow()
			ws.SetReadLimit(64 << 20)
			p := &peer{
				ctx: ctx,
				read: func(r *otlpstream.Request) error {
					_, frame, err := ws.Read(ctx)
					if err == nil && len(frame) == 0 {
						err = io.EOF
					}
					if err != nil {
						return err
					}
					message, err := frames.Message(nil, frame)
					require.NoError(s.tb, err)
					return r.Parse(message)
				},
				write: func(r *otlpstream.Response) error {
					return ws.Write(ctx, websocket.MessageBinary, r.Append([]byte{0}))
				},
				raw: func(b []byte) error { return ws.Write(ctx, websocket.MessageBinary, b) },
			}
			st := status.Convert(s.serve(p, r.Header.Get(otlpstream.HeaderCaps)))
			if st.Code() == codes.OK {
				ws.Close(websocket.StatusNormalClosure, "")
				return
			}
			notice := otlpstream.Response{Code: otlpstream.FailedNoneRetryable, Message: st.Message()}
			if otlpstream.Transient(st) {
				notice.Code = otlpstream.FailedRetryable
			}
			notice.Delay, _ = otlpstream.RetryDelay(st)
			_ = p.send(notice)
			ws.Close(websocket.StatusTryAgainLater, "")
		})
	}
	h := &httptest.Server{Listener: listener, Config: &http.Server{Handler: mux}}
	h.Start()
	s.stop = sync.OnceFunc(func() {
		cancel()
		h.CloseClientConnections()
		h.Close()
		serving.Wait()
		frames.Close()
	})
}

func decompress(tb testing.TB, r *http.Request) io.Reader {
	switch r.Header.Get("Content-Encoding") {
	case "zstd":
		d, err := zstd.NewReader(r.Body, zstd.WithDecoderConcurrency(1))
		require.NoError(tb, err)
		b, err := io.ReadAll(d)
		require.NoError(tb, err)
		d.Close()
		return bytes.NewReader(b)
	case "gzip":
		d, err := gzip.NewReader(r.Body)
		require.NoError(tb, err)
		return d
	}
	return r.Body
}

func run(tb testing.TB, s *testServer, kind string) *testServer {
	s.start(tb, kind)
	return s
}
