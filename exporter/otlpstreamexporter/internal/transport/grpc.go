// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package transport

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/config/configcompression"
	"go.opentelemetry.io/collector/config/configgrpc"
	"google.golang.org/grpc"
	grpcbackoff "google.golang.org/grpc/backoff"
	"google.golang.org/grpc/codes"
	grpcencoding "google.golang.org/grpc/encoding"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/godwit-otel/godwit/internal/otlpstream"
	"github.com/godwit-otel/godwit/internal/redact"
)

// grpcTransport streams and sends unary requests over gRPC.
type grpcTransport struct {
	signal otlpstream.Signal
	dial   func() (*connection, error)
	mu     sync.Mutex
	conns  []*connection
	// alone means that each stream has its own connection. renew is then the maximum age of the connection for unary
	// requests, 0 for ever.
	alone bool
	renew time.Duration
	// caps are this side's capabilities.
	caps     otlpstream.Caps
	identity string
	// authenticated means that an authenticator sets headers, and the origin's together with its own.
	authenticated bool
	// compression is the default of calls.
	compression configcompression.Type
}

// shuffled is a configuration that connects to a random address of those that a name resolves to.
const shuffled = `{"loadBalancingConfig":[{"pick_first":{"shuffleAddressList":true}}]}`

func newGRPC(ctx context.Context, s *Settings, host component.Host) (*grpcTransport, error) {
	reconnects := grpcbackoff.DefaultConfig
	reconnects.BaseDelay = 200 * time.Millisecond
	reconnects.MaxDelay = max(s.Reconnect, reconnects.BaseDelay)
	t := &grpcTransport{signal: s.Signal, alone: s.Alone, renew: s.Renew, compression: s.Client.Compression, caps: s.Caps, identity: s.Identity}
	options := []configgrpc.ToClientConnOption{
		configgrpc.WithGrpcDialOption(grpc.WithUserAgent(s.userAgent())),
		configgrpc.WithGrpcDialOption(grpc.WithConnectParams(grpc.ConnectParams{
			Backoff: reconnects, MinConnectTimeout: 5 * time.Second,
		})),
	}
	if t.alone && s.Client.BalancerName == configgrpc.DefaultBalancerName {
		// The default would connect each of them to all addresses.
		options = append(options, configgrpc.WithGrpcDialOption(grpc.WithDefaultServiceConfig(shuffled)))
	}
	client := s.Client
	client.Keepalive = withKeepalive(client.Keepalive, GRPC)
	if c := client.Compression; c == configcompression.TypeZstd || c == configcompression.TypeGzip {
		client.Compression = ""
		options = append(options, configgrpc.WithGrpcDialOption(withCompressor(c)))
	}
	ctx = context.WithoutCancel(ctx)
	extensions := host.GetExtensions()
	if t.authenticated = client.Auth.HasValue(); t.authenticated {
		extensions = originators(extensions, client.Auth.Get().AuthenticatorID)
	}
	t.dial = func() (*connection, error) {
		c := &connection{wire: s.Wire, begun: time.Now(), addresses: map[string]*address{}}
		own := append(slices.Clone(options), configgrpc.WithGrpcDialOption(grpc.WithStatsHandler(c)))
		var err error
		c.ClientConn, err = client.ToClientConn(ctx, extensions, s.Telemetry, own...)
		return c, err
	}
	for range s.Connections {
		c, err := t.dial()
		if err != nil {
			return nil, errors.Join(fmt.Errorf("cannot set up the connection to %q: %w", redact.URL(client.Endpoint), redact.Error(err)), t.Close())
		}
		t.conns = append(t.conns, c)
	}
	return t, nil
}

// options returns the options of a call.
func (t *grpcTransport) options(c configcompression.Type) []grpc.CallOption {
	options := []grpc.CallOption{grpc.ForceCodecV2(otlpstream.Codec())}
	switch {
	case c == t.compression:
	case c.IsCompressed():
		options = append(options, grpc.UseCompressor(string(c)))
	default:
		options = append(options, grpc.UseCompressor(grpcencoding.Identity))
	}
	return options
}

func (t *grpcTransport) Open(ctx context.Context, slot int, c configcompression.Type) (Conn, error) {
	shared, err := t.use(slot)
	if err != nil {
		return nil, err
	}
	ctx = metadata.AppendToOutgoingContext(t.outgoing(ctx), otlpstream.HeaderCaps, t.caps.String(),
		otlpstream.HeaderSlot, nameOfSlot(t.identity, slot))
	ctx, known := calling(ctx)
	stream, err := shared.NewStream(ctx, &grpc.StreamDesc{ClientStreams: true, ServerStreams: true},
		t.signal.StreamMethod(),
		append(t.options(c), grpc.MaxRetryRPCBufferSize(0))...) // this package sends again; the library need not keep what it has sent
	if err != nil {
		t.leave(shared)
		return nil, serversOwn(err)
	}
	return grpcConn{stream, t, shared, known}, nil
}

// outgoing returns the context of a call with headers for its origin.
func (t *grpcTransport) outgoing(ctx context.Context) context.Context {
	if t.authenticated {
		return ctx
	}
	return outgoing(ctx)
}

func (t *grpcTransport) Unary(ctx context.Context, p otlpstream.Payload, c configcompression.Type) ([]byte, error) {
	shared, err := t.useShared()
	if err != nil {
		return nil, err
	}
	defer t.leave(shared)
	begun := time.Now()
	ctx, known := calling(ctx)
	var response otlpstream.Raw
	err = shared.Invoke(t.outgoing(ctx), t.signal.OTLPMethod(), p, &response, t.options(c)...)
	if errors.Is(ctx.Err(), context.DeadlineExceeded) {
		t.giveUp(shared, known, begun)
	}
	return response, serversOwn(err)
}

// Messages of the library for calls without a status from the server, because a proxy has ended them.
const (
	saidOfHTTP    = "unexpected HTTP status code received from server: "
	saidOfReset   = "stream terminated by RST_STREAM with error code: "
	saidOfSilence = "server closed the stream without sending trailers"
)

// serversOwn returns errors of the server unchanged. An error that the library made because of a proxy is unrelated to
// the request: it is replaced by the error for the HTTP status, or by one that says that the server is unavailable.
func serversOwn(err error) error {
	st, ok := status.FromError(err)
	if !ok || err == nil {
		return err
	}
	message := st.Message()
	if _, said, found := strings.Cut(message, saidOfHTTP); found {
		said, _, _ = strings.Cut(said, " ")
		code, _ := strconv.Atoi(said)
		if code == http.StatusInternalServerError || code == http.StatusBadRequest || code == http.StatusOK { // for example, a web page
			code = http.StatusBadGateway
		}
		return proxied{httpStatus(&http.Response{StatusCode: code}, errors.New(message))}
	}
	if strings.Contains(message, saidOfReset) || strings.Contains(message, saidOfSilence) {
		return status.Error(codes.Unavailable, message)
	}
	return err
}

func (t *grpcTransport) Close() error {
	var errs []error
	for _, c := range t.conns {
		if !c.replaced { // otherwise the last of its calls closes it
			errs = append(errs, c.Close())
		}
	}
	return errors.Join(errs...)
}

type grpcConn struct {
	stream    grpc.ClientStream
	transport *grpcTransport
	shared    *connection
	known     *call
}

func (c grpcConn) Silent(since time.Time) { c.transport.giveUp(c.shared, c.known, since) }

func (c grpcConn) Send(r *otlpstream.Request) error { return c.stream.SendMsg(r) }

func (c grpcConn) CloseSend() error { return c.stream.CloseSend() }

func (c grpcConn) Greeting() (otlpstream.Limits, otlpstream.Caps) {
	md, err := c.stream.Header()
	if err != nil {
		return otlpstream.Limits{}, 0
	}
	return otlpstream.ParseGreeting(func(name string) string {
		if values := md.Get(name); len(values) > 0 {
			return values[0]
		}
		return ""
	})
}

func (c grpcConn) Recv(r *otlpstream.Response) error {
	err := c.stream.RecvMsg(r)
	if err == nil {
		return nil
	}
	c.transport.leave(c.shared)
	if errors.Is(err, io.EOF) {
		return io.EOF
	}
	return serversOwn(err)
}
