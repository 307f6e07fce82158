// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package otlpstreamreceiver

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/coder/websocket"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/config/configgrpc"
	"go.opentelemetry.io/collector/config/confighttp"
	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/pdata/ptrace"
	"go.opentelemetry.io/collector/receiver"
	"go.opentelemetry.io/collector/receiver/receivertest"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/godwit-otel/godwit/internal/otlpstream"
	receivermetadata "github.com/godwit-otel/godwit/receiver/otlpstreamreceiver/internal/metadata"
)

// patience is how long a test waits for something that has to happen. Nothing takes that long, unless the machine is
// busy.
const patience = time.Minute

// pipeline records the names of the spans it receives, and calls do for each batch.
type pipeline struct {
	mu    sync.Mutex
	names []string
	ctxs  []context.Context
	do    func(ctx context.Context, name string) error
}

func (*pipeline) Capabilities() consumer.Capabilities { return consumer.Capabilities{} }

func (p *pipeline) take(ctx context.Context, name string) error {
	p.mu.Lock()
	p.names = append(p.names, name)
	p.ctxs = append(p.ctxs, ctx)
	p.mu.Unlock()
	if p.do == nil {
		return nil
	}
	return p.do(ctx, name)
}

func (p *pipeline) seen() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.names)
}

func (p *pipeline) ConsumeTraces(ctx context.Context, td ptrace.Traces) error {
	return p.take(ctx, td.ResourceSpans().At(0).ScopeSpans().At(0).Spans().At(0).Name())
}

func (p *pipeline) ConsumeMetrics(ctx context.Context, md pmetric.Metrics) error {
	return p.take(ctx, md.ResourceMetrics().At(0).ScopeMetrics().At(0).Metrics().At(0).Name())
}

func (p *pipeline) ConsumeLogs(ctx context.Context, ld plog.Logs) error {
	return p.take(ctx, ld.ResourceLogs().At(0).ScopeLogs().At(0).LogRecords().At(0).Body().Str())
}

func settings() receiver.Settings { return receivertest.NewNopSettings(receivermetadata.Type) }

// testConfig has no time limits that close streams or refuse data, so that slow machines do not matter. A test of a
// time limit sets that limit.
func testConfig(change ...func(*Config)) *Config {
	cfg := createDefaultConfig().(*Config)
	cfg.Protocols.GRPC.GetOrInsertDefault().NetAddr.Endpoint = "localhost:0"
	cfg.Protocols.HTTP.GetOrInsertDefault().NetAddr.Endpoint = "localhost:0"
	cfg.DrainTimeout = patience
	for _, f := range change {
		f(cfg)
	}
	return cfg
}

// start runs a receiver with one consumer for all three signals.
func start(tb testing.TB, p *pipeline, change ...func(*Config)) *sharedReceiver {
	r := prepare(tb, p, change...)
	require.NoError(tb, r.Start(context.Background(), componenttest.NewNopHost()))
	tb.Cleanup(func() { require.NoError(tb, r.Shutdown(context.Background())) })
	return r
}

func prepare(tb testing.TB, p *pipeline, change ...func(*Config)) *sharedReceiver {
	cfg := testConfig(change...)
	require.NoError(tb, cfg.Validate())
	f := NewFactory()
	traces, err := f.CreateTraces(context.Background(), settings(), cfg, p)
	require.NoError(tb, err)
	metrics, err := f.CreateMetrics(context.Background(), settings(), cfg, p)
	require.NoError(tb, err)
	logs, err := f.CreateLogs(context.Background(), settings(), cfg, p)
	require.NoError(tb, err)
	require.Same(tb, traces, metrics)
	require.Same(tb, traces, logs)
	return traces.(*sharedReceiver)
}

func spanNamed(name string) ptrace.Traces {
	td := ptrace.NewTraces()
	td.ResourceSpans().AppendEmpty().ScopeSpans().AppendEmpty().Spans().AppendEmpty().SetName(name)
	return td
}

// payload returns one span with the name, in stream form.
func payload(tb testing.TB, name string) []byte {
	b, err := (&ptrace.ProtoMarshaler{}).MarshalTraces(spanNamed(name))
	require.NoError(tb, err)
	require.NoError(tb, otlpstream.ToStream(b))
	return b
}

// testClient is the client's side of a stream over any transport.
type testClient struct {
	tb     testing.TB
	send   func(*otlpstream.Request) error
	raw    func([]byte) error
	recv   func(*otlpstream.Response) error
	finish func() error
	// header returns a header of the server.
	header func(name string) string
}

func (c *testClient) export(id uint64, name string) {
	require.NoError(c.tb, c.send(&otlpstream.Request{ID: id, Items: 1, Data: payload(c.tb, name)}))
}

// answer returns the next response, skipping working notices, which a slow machine may send before it.
func (c *testClient) answer() otlpstream.Response {
	for {
		if response := c.next(); !response.Working {
			return response
		}
	}
}

func (c *testClient) next() otlpstream.Response {
	var response otlpstream.Response
	require.NoError(c.tb, c.recv(&response))
	return response
}

// answers reads until n requests have a response, and returns the responses by ID.
func (c *testClient) answers(n int) map[uint64]otlpstream.Response {
	got := map[uint64]otlpstream.Response{}
	for len(got) < n {
		response := c.answer()
		for _, id := range append([]uint64{response.ID}, response.IDs...) {
			require.NotContains(c.tb, got, id, "answered twice")
			got[id] = response
		}
	}
	return got
}

// end reads to the end of the stream and returns its status, and the responses before it.
func (c *testClient) end() (*status.Status, []otlpstream.Response) {
	var all []otlpstream.Response
	for {
		var response otlpstream.Response
		err := c.recv(&response)
		if errors.Is(err, io.EOF) {
			return nil, all
		}
		if err != nil {
			return status.Convert(err), all
		}
		if !response.Working {
			all = append(all, response)
		}
	}
}

type dialer func(tb testing.TB, r *sharedReceiver, caps otlpstream.Caps) *testClient

// bothTransports runs a test over gRPC and over WebSocket.
func bothTransports(t *testing.T, f func(t *testing.T, dial dialer)) {
	t.Run("grpc", func(t *testing.T) { f(t, dialGRPC) })
	t.Run("websocket", func(t *testing.T) { f(t, dialWebSocket) })
}

func grpcClient(tb testing.TB, r *sharedReceiver) *grpc.ClientConn {
	cc, err := grpc.NewClient(r.grpcAddr, grpc.WithTransportCredentials(insecure.NewCredentials()))
	require.NoError(tb, err)
	tb.Cleanup(func() { cc.Close() })
	return cc
}

func testContext(tb testing.TB) context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	tb.Cleanup(cancel)
	return ctx
}

func dialGRPC(tb testing.TB, r *sharedReceiver, caps otlpstream.Caps) *testClient {
	return openGRPC(tb, grpcClient(tb, r), caps, otlpstream.Traces.StreamMethod())
}

func openGRPC(tb testing.TB, cc *grpc.ClientConn, caps otlpstream.Caps, method string) *testClient {
	ctx := testContext(tb)
	if caps != 0 {
		ctx = metadata.AppendToOutgoingContext(ctx, otlpstream.HeaderCaps, caps.String())
	}
	stream, err := cc.NewStream(ctx, &grpc.StreamDesc{ClientStreams: true, ServerStreams: true}, method,
		grpc.ForceCodecV2(otlpstream.Codec()))
	require.NoError(tb, err)
	return &testClient{
		tb:     tb,
		send:   func(r *otlpstream.Request) error { return stream.SendMsg(r) },
		raw:    func(b []byte) error { return stream.SendMsg(otlpstream.Raw(b)) },
		recv:   func(r *otlpstream.Response) error { return stream.RecvMsg(r) },
		finish: stream.CloseSend,
		header: func(name string) string {
			md, err := stream.Header()
			require.NoError(tb, err)
			return strings.Join(md.Get(name), "")
		},
	}
}

func dialWebSocket(tb testing.TB, r *sharedReceiver, caps otlpstream.Caps) *testClient {
	header := http.Header{}
	if caps != 0 {
		header.Set(otlpstream.HeaderCaps, caps.String())
	}
	ctx := testContext(tb)
	transport := &http.Transport{}
	tb.Cleanup(transport.CloseIdleConnections)
	ws, response, err := websocket.Dial(ctx, "ws://"+r.httpAddr+otlpstream.Traces.WebSocketPath(),
		&websocket.DialOptions{HTTPHeader: header, HTTPClient: &http.Client{Transport: transport}})
	require.NoError(tb, err)
	tb.Cleanup(func() { ws.CloseNow() })
	frames, err := otlpstream.NewFrames(1 << 20)
	require.NoError(tb, err)
	tb.Cleanup(frames.Close)
	var notice *status.Status
	c := &testClient{
		tb:     tb,
		raw:    func(b []byte) error { return ws.Write(ctx, websocket.MessageBinary, append([]byte{0}, b...)) },
		finish: func() error { return ws.Write(ctx, websocket.MessageBinary, nil) },
		header: response.Header.Get,
		recv: func(r *otlpstream.Response) error {
			_, frame, err := ws.Read(ctx)
			switch {
			case websocket.CloseStatus(err) == websocket.StatusNormalClosure:
				return io.EOF
			case err != nil && notice != nil:
				return notice.Err()
			case err != nil:
				return err
			}
			message, err := frames.Message(nil, frame)
			require.NoError(tb, err)
			if err := r.Parse(message); err != nil || r.ID != 0 || r.Drain {
				return err
			}
			// The last message replaces the status, which WebSocket lacks.
			notice = status.New(codes.Unknown, r.Message)
			if r.Code == otlpstream.FailedRetryable {
				notice = otlpstream.Busy(r.Message, r.Delay)
			}
			return nil
		},
	}
	c.send = func(r *otlpstream.Request) error {
		frame, err := otlpstream.Zstd.AppendFrame(nil, r.AppendHeader(nil), r.Data)
		require.NoError(tb, err)
		return ws.Write(ctx, websocket.MessageBinary, frame)
	}
	return c
}

// eventually waits for a condition. It is checked on the test's goroutine, so that it may end the test.
func eventually(tb testing.TB, f func() bool, message string) {
	for begun := time.Now(); ; time.Sleep(time.Millisecond) {
		late := time.Since(begun) > patience // before the last attempt, however long the process was paused
		if f() {
			return
		}
		require.False(tb, late, "it has not come to this: %s", message)
	}
}

func numbered(n uint64) string { return fmt.Sprintf("batch-%d", n) }

func grpcOf(cfg *Config) *configgrpc.ServerConfig { return cfg.Protocols.GRPC.Get() }

func httpOf(cfg *Config) *confighttp.ServerConfig { return cfg.Protocols.HTTP.Get() }
