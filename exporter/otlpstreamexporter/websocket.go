// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package otlpstreamexporter

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/coder/websocket"
	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/config/configcompression"
	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/propagation"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/godwit-otel/godwit/internal/otlpstream"
)

const (
	dialTimeout = 10 * time.Second
	// Answers are small: many IDs, or a message for people.
	maxResponse = 1 << 20

	plain = "http"
)

// webSocketTransport streams over WebSocket, and sends unary requests as OTLP/HTTP.
type webSocketTransport struct {
	signal      otlpstream.Signal
	base        string
	client      *http.Client
	idle        func()
	header      http.Header
	compression otlpstream.Compression
	encoding    string
	keepalive   time.Duration
	patience    time.Duration
	frames      *otlpstream.Frames
	wire        *atomic.Int64
}

func newWebSocketTransport(ctx context.Context, d *destination, host component.Host) (*webSocketTransport, error) {
	client := d.client
	tlsConfig, err := client.TLS.LoadTLSConfig(ctx)
	if err != nil {
		return nil, fmt.Errorf("cannot load `tls`: %w", err)
	}
	t := &webSocketTransport{signal: d.signal, wire: &d.tally.wire, header: http.Header{"User-Agent": {userAgent(d.set)}}}
	scheme, address, found := strings.Cut(client.Endpoint, "://")
	if !found {
		scheme, address = "https", client.Endpoint
		if client.TLS.Insecure {
			scheme = plain
		}
	}
	t.base = scheme + "://" + strings.TrimSuffix(address, "/")
	for name, value := range client.Headers.Iter {
		t.header.Set(name, string(value))
	}
	if client.UserAgent != "" {
		t.header.Set("User-Agent", client.UserAgent)
	}
	switch client.Compression {
	case configcompression.TypeGzip:
		t.compression, t.encoding = otlpstream.Gzip, string(configcompression.TypeGzip)
	case configcompression.TypeZstd:
		t.compression, t.encoding = otlpstream.Zstd, string(configcompression.TypeZstd)
	}
	if client.Keepalive.HasValue() {
		t.keepalive, t.patience = client.Keepalive.Get().Time, client.Keepalive.Get().Timeout
	}
	// HTTP/1.1 only: over HTTP/2 there is no upgrade to a WebSocket.
	base := &http.Transport{
		Proxy:               http.ProxyFromEnvironment,
		DialContext:         dialCorked,
		TLSClientConfig:     tlsConfig,
		TLSHandshakeTimeout: dialTimeout,
		MaxIdleConnsPerHost: d.cfg.InFlight.Requests,
		IdleConnTimeout:     time.Minute,
		DisableCompression:  true,
	}
	t.idle = base.CloseIdleConnections
	t.client = &http.Client{Transport: base}
	if client.Auth.HasValue() {
		auth, err := client.Auth.Get().GetHTTPClientAuthenticator(ctx, host.GetExtensions())
		if err != nil {
			return nil, fmt.Errorf("cannot set up `auth`: %w", err)
		}
		if t.client.Transport, err = auth.RoundTripper(base); err != nil {
			return nil, fmt.Errorf("cannot set up `auth`: %w", err)
		}
	}
	t.frames, err = otlpstream.NewFrames(maxResponse)
	return t, err
}

func (t *webSocketTransport) open(ctx context.Context, _ int) (conn, error) {
	header := t.header.Clone()
	header.Set(otlpstream.HeaderCaps, otlpstream.AllCaps.String())
	dial, cancel := context.WithTimeout(ctx, dialTimeout)
	defer cancel()
	var line *cork
	//nolint:bodyclose // the library closes it
	ws, response, err := websocket.Dial(findCork(dial, &line), t.base+t.signal.WebSocketPath(), &websocket.DialOptions{
		HTTPClient: t.client, HTTPHeader: header,
	})
	if err != nil {
		return nil, httpStatus(response, err)
	}
	ws.SetReadLimit(maxResponse + 1)
	c := &webSocketConn{webSocketTransport: t, ctx: ctx, ws: ws, line: line}
	// Once for all reads and writes: the library would watch the context anew for each.
	c.release = context.AfterFunc(ctx, func() { _ = ws.CloseNow() })
	c.limits, c.caps = otlpstream.ParseGreeting(response.Header.Get)
	c.pings = make(chan struct{})
	go c.ping()
	return c, nil
}

func (t *webSocketTransport) unary(ctx context.Context, data []byte) ([]byte, error) {
	if t.compression != otlpstream.NoCompression {
		frame, err := t.compression.AppendFrame(nil, data)
		if err != nil {
			return nil, err
		}
		data = frame[1:]
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, t.base+t.signal.HTTPPath(), bytes.NewReader(data))
	if err != nil {
		return nil, fmt.Errorf("cannot make a request: %w", err)
	}
	t.wire.Add(int64(len(data)))
	req.Header = t.header.Clone()
	req.Header.Set("Content-Type", "application/x-protobuf")
	if t.encoding != "" {
		req.Header.Set("Content-Encoding", t.encoding)
	}
	otel.GetTextMapPropagator().Inject(ctx, propagation.HeaderCarrier(req.Header))
	response, err := t.client.Do(req)
	if err != nil {
		return nil, status.Error(codes.Unavailable, err.Error())
	}
	defer response.Body.Close()
	body, err := io.ReadAll(io.LimitReader(response.Body, maxResponse))
	if err != nil {
		return nil, status.Error(codes.Unavailable, err.Error())
	}
	if response.StatusCode != http.StatusOK {
		return nil, httpStatus(response, errors.New(response.Status))
	}
	return body, nil
}

func (t *webSocketTransport) close() error {
	t.idle()
	t.frames.Close()
	return nil
}

// httpStatus is what an HTTP answer means, as a gRPC error. No answer is a server that is away.
func httpStatus(response *http.Response, err error) error {
	if response == nil {
		return status.Error(codes.Unavailable, err.Error())
	}
	switch response.StatusCode {
	case http.StatusTooManyRequests, http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
		if seconds, _ := strconv.Atoi(response.Header.Get("Retry-After")); seconds > 0 {
			return otlpstream.Busy(err.Error(), time.Duration(min(seconds, 24*3600))*time.Second).Err()
		}
		return status.Error(codes.Unavailable, err.Error())
	case http.StatusNotFound, http.StatusMethodNotAllowed, http.StatusUpgradeRequired, http.StatusNotImplemented, http.StatusOK:
		return status.Error(codes.Unimplemented, err.Error())
	case http.StatusRequestEntityTooLarge:
		return otlpstream.ErrTooLarge(err.Error())
	case http.StatusUnauthorized:
		return status.Error(codes.Unauthenticated, err.Error())
	case http.StatusForbidden:
		return status.Error(codes.PermissionDenied, err.Error())
	}
	return status.Error(codes.Internal, err.Error())
}

type webSocketConn struct {
	*webSocketTransport

	ctx     context.Context
	release func() bool // the context
	ws      *websocket.Conn
	line    *cork
	limits  otlpstream.Limits
	caps    otlpstream.Caps
	pings   chan struct{} // closed when there is nothing more to read
	heard   atomic.Int64  // messages

	frame  []byte // of the sender
	header []byte
	notice error // of the receiver: what the server said last
}

func (c *webSocketConn) greeting() (otlpstream.Limits, otlpstream.Caps) { return c.limits, c.caps }

func (c *webSocketConn) send(r *otlpstream.Request) error {
	var err error
	c.header = r.AppendHeader(c.header[:0])
	compression := c.compression
	if r.Packed > 0 {
		compression = otlpstream.NoCompression // it is, already
	}
	if c.frame, err = compression.AppendFrame(c.frame[:0], c.header, r.Data); err != nil {
		return err
	}
	c.wire.Add(int64(len(c.frame)))
	c.line.hold()
	err = c.ws.Write(context.Background(), websocket.MessageBinary, c.frame)
	const maxRetained = 1 << 20 // one huge request must not pin memory for ever
	if cap(c.frame) > maxRetained {
		c.frame = nil
	}
	return err
}

func (c *webSocketConn) flush() error { return c.line.release() }

func (c *webSocketConn) closeSend() error {
	err := c.ws.Write(context.Background(), websocket.MessageBinary, nil)
	return errors.Join(err, c.flush())
}

func (c *webSocketConn) recv(r *otlpstream.Response) error {
	for {
		_, frame, err := c.ws.Read(context.Background())
		c.heard.Add(1)
		if err == nil {
			var message []byte
			if message, err = c.frames.Message(nil, frame); err == nil {
				err = r.Parse(message)
			}
			if err != nil {
				err = status.Error(codes.Internal, err.Error())
			}
		}
		if err != nil {
			close(c.pings)
			c.release()
			_ = c.ws.CloseNow()
			return c.end(err)
		}
		if r.ID != 0 || len(r.IDs) > 0 || r.Drain || r.Code == otlpstream.Success {
			return nil
		}
		// The last message stands for the status that WebSocket lacks.
		c.notice = status.Error(codes.InvalidArgument, r.Message)
		if said := status.New(codes.ResourceExhausted, r.Message); otlpstream.IsTooLarge(said) {
			c.notice = said.Err()
		}
		if r.Code == otlpstream.FailedRetryable {
			c.notice = status.Error(codes.Unavailable, r.Message)
			if r.Delay > 0 {
				c.notice = otlpstream.Busy(r.Message, r.Delay).Err()
			}
		}
	}
}

func (c *webSocketConn) end(err error) error {
	switch {
	case websocket.CloseStatus(err) == websocket.StatusNormalClosure:
		return io.EOF
	case websocket.CloseStatus(err) == websocket.StatusMessageTooBig:
		return otlpstream.ErrTooLarge(err.Error())
	case c.notice != nil:
		return c.notice
	case status.Code(err) == codes.Internal:
		return err
	}
	return status.Error(codes.Unavailable, err.Error())
}

// ping closes the connection when the other end has gone without a word. What says something is not asked: on a slow link
// the question would wait behind all requests.
func (c *webSocketConn) ping() {
	if c.keepalive <= 0 {
		return
	}
	tick := time.NewTicker(c.keepalive)
	defer tick.Stop()
	for heard := int64(0); ; {
		select {
		case <-c.pings:
			return
		case <-tick.C:
		}
		before := heard
		if heard = c.heard.Load(); heard > before {
			continue
		}
		ctx, cancel := context.WithTimeout(c.ctx, c.patience)
		err := c.ws.Ping(ctx)
		cancel()
		if err != nil && c.heard.Load() == heard {
			_ = c.ws.CloseNow()
			return
		}
	}
}
