// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package transport

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"time"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/config/configcompression"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/godwit-otel/godwit/internal/otlpstream"
	"github.com/godwit-otel/godwit/internal/otlpstream/websocket"
	"github.com/godwit-otel/godwit/internal/oversize"
)

const (
	dialTimeout = 10 * time.Second
	maxResponse = 1 << 20

	plain = "http"
)

// webSocketTransport streams over WebSocket, and sends unary requests as OTLP/HTTP.
type webSocketTransport struct {
	httpSender

	signal      otlpstream.Signal
	caps        otlpstream.Caps
	identity    string
	base        string
	streams     *http.Client // for handshakes
	idle        func()
	compression otlpstream.Compression // of frames
	keepalive   time.Duration
	patience    time.Duration
	frames      *otlpstream.Frames
}

func newWebSocket(ctx context.Context, s *Settings, host component.Host) (*webSocketTransport, error) {
	client := s.Client
	tlsConfig, err := client.TLS.LoadTLSConfig(ctx)
	if err != nil {
		return nil, fmt.Errorf("cannot load `tls`: %w", err)
	}
	t := &webSocketTransport{signal: s.Signal, caps: s.Caps, identity: s.Identity, base: baseOf(&client)}
	t.httpSender = httpSender{url: t.base + s.Signal.HTTPPath(), header: s.header(), wire: s.Wire}
	t.compression = framesOf(client.Compression)
	if asks := withKeepalive(client.Keepalive, WebSocket); asks.HasValue() {
		t.keepalive, t.patience = asks.Get().Time, asks.Get().Timeout
	}
	// HTTP/1.1 only: over HTTP/2 there is no upgrade to a WebSocket.
	base := &http.Transport{
		Proxy:               fromEnvironment(),
		DialContext:         (&net.Dialer{Timeout: dialTimeout}).DialContext,
		TLSClientConfig:     tlsConfig,
		TLSHandshakeTimeout: dialTimeout,
		MaxIdleConnsPerHost: s.Requests,
		IdleConnTimeout:     time.Minute,
		DisableCompression:  true,
	}
	t.idle = base.CloseIdleConnections
	t.client, t.streams = &http.Client{Transport: base, CheckRedirect: sameRequest}, &http.Client{Transport: tunneling(base, t.base)}
	if client.Auth.HasValue() {
		auth, err := client.Auth.Get().GetHTTPClientAuthenticator(ctx, host.GetExtensions())
		if err != nil {
			return nil, fmt.Errorf("cannot set up `auth`: %w", err)
		}
		for _, c := range []*http.Client{t.client, t.streams} {
			if c.Transport, err = auth.RoundTripper(c.Transport); err != nil {
				return nil, fmt.Errorf("cannot set up `auth`: %w", err)
			}
		}
	}
	t.frames, err = otlpstream.NewFrames(maxResponse)
	return t, err
}

// framesOf is the frames' name of a compression.
func framesOf(c configcompression.Type) otlpstream.Compression {
	switch c {
	case configcompression.TypeGzip:
		return otlpstream.Gzip
	case configcompression.TypeZstd:
		return otlpstream.Zstd
	default:
		return otlpstream.NoCompression
	}
}

func (t *webSocketTransport) Open(ctx context.Context, slot int, _ configcompression.Type) (Conn, error) {
	header := t.header.Clone()
	header.Set(otlpstream.HeaderCaps, t.caps.String())
	header.Set(otlpstream.HeaderSlot, nameOfSlot(t.identity, slot))
	addOrigin(ctx, header)
	dial, cancel := context.WithTimeout(ctx, dialTimeout)
	defer cancel()
	// Answers are small: many IDs, or a message, after a byte that names the compression.
	const maxFrame = maxResponse + 1
	//nolint:bodyclose // it is the connection
	ws, response, err := websocket.Dial(dial, t.streams, t.base+t.signal.WebSocketPath(), header, maxFrame)
	if err != nil {
		return nil, httpStatus(response, err)
	}
	c := &webSocketConn{webSocketTransport: t, ws: ws, release: context.AfterFunc(ctx, ws.CloseNow)}
	c.limits, c.caps = otlpstream.ParseGreeting(response.Header.Get)
	c.done = make(chan struct{})
	go ws.KeepAlive(c.done, t.keepalive, t.patience)
	return c, nil
}

// Close closes idle connections. The decoder is left to the garbage collector, because it has no goroutines: a stream that
// was cut off may still be decoding an answer, and a decoder that is closed then panics.
func (t *webSocketTransport) Close() error {
	t.idle()
	return nil
}

// httpStatus converts an HTTP answer to a gRPC error. No answer means that the server is unavailable.
func httpStatus(response *http.Response, err error) error {
	if response == nil {
		return status.Error(codes.Unavailable, err.Error())
	}
	switch response.StatusCode {
	case http.StatusMovedPermanently, http.StatusFound, http.StatusSeeOther, http.StatusTemporaryRedirect, http.StatusPermanentRedirect:
		return status.Error(codes.Unavailable, err.Error())
	case http.StatusTooManyRequests, http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
		if delay := retryAfter(response.Header.Get("Retry-After")); delay > 0 {
			return otlpstream.Busy(err.Error(), delay).Err()
		}
		return status.Error(codes.Unavailable, err.Error())
	case http.StatusNotFound, http.StatusMethodNotAllowed, http.StatusUpgradeRequired, http.StatusNotImplemented, http.StatusOK:
		return status.Error(codes.Unimplemented, err.Error())
	case http.StatusRequestEntityTooLarge:
		return otlpstream.ErrTooLarge(err.Error())
	case http.StatusUnsupportedMediaType:
		return status.Error(codes.Unimplemented, err.Error())
	case http.StatusBadRequest:
		if oversize.Says(err.Error()) { // VictoriaMetrics has no other status for that
			return otlpstream.ErrTooLarge(err.Error())
		}
		return status.Error(codes.InvalidArgument, err.Error())
	case http.StatusUnauthorized:
		return status.Error(codes.Unauthenticated, err.Error())
	case http.StatusForbidden:
		return status.Error(codes.PermissionDenied, err.Error())
	}
	return status.Error(codes.Internal, err.Error())
}

// retryAfter parses a header of that name, in seconds or as a date, up to a day.
func retryAfter(value string) (delay time.Duration) {
	const most = 24 * time.Hour
	if seconds, err := strconv.Atoi(value); err == nil {
		delay = time.Duration(min(seconds, int(most/time.Second))) * time.Second
	} else if at, err := http.ParseTime(value); err == nil {
		delay = time.Until(at)
	}
	return min(delay, most)
}

type webSocketConn struct {
	*webSocketTransport

	ws      *websocket.Conn
	release func() bool // ends the context
	limits  otlpstream.Limits
	caps    otlpstream.Caps
	done    chan struct{} // closed when there is nothing more to read

	frame  []byte // of the sender: the whole frame if compressed, else what precedes the payload
	header []byte
	answer []byte // of the receiver
	notice error  // the last message from the server
}

func (c *webSocketConn) Greeting() (otlpstream.Limits, otlpstream.Caps) { return c.limits, c.caps }

func (c *webSocketConn) Send(r *otlpstream.Request) error {
	if c.compression == otlpstream.NoCompression || r.Packed > 0 {
		c.frame = r.AppendHeader(append(c.frame[:0], byte(otlpstream.NoCompression)))
		c.wire.Add(int64(len(c.frame) + len(r.Data)))
		return c.ws.Write(c.frame, r.Data)
	}
	var err error
	c.header = r.AppendHeader(c.header[:0])
	if c.frame, err = c.compression.AppendFrame(c.frame[:0], c.header, r.Data); err != nil {
		return err
	}
	c.wire.Add(int64(len(c.frame)))
	err = c.ws.Write(c.frame)
	const maxRetained = 1 << 20 // one huge request must not hold memory for ever
	if cap(c.frame) > maxRetained {
		c.frame = nil
	}
	return err
}

func (c *webSocketConn) Flush() error { return c.ws.Flush() }

func (c *webSocketConn) CloseSend() error { return errors.Join(c.ws.Write(), c.Flush()) }

func (c *webSocketConn) Recv(r *otlpstream.Response) error {
	for {
		var err error
		c.answer, _, err = c.ws.Read(c.answer[:0])
		if err == nil {
			var message []byte
			if message, err = c.frames.Message(nil, c.answer); err == nil {
				err = r.Parse(message)
			}
			if err != nil {
				err = status.Error(codes.Internal, err.Error())
			}
		}
		if err != nil {
			close(c.done)
			c.release()
			c.ws.CloseNow()
			return c.end(err)
		}
		if r.ID != 0 || len(r.IDs) > 0 || r.Drain || r.Code == otlpstream.Success {
			return nil
		}
		// The last message replaces the status that WebSocket lacks.
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
	case websocket.CloseStatus(err) == websocket.StatusTooLarge:
		return otlpstream.ErrTooLarge(err.Error())
	case c.notice != nil:
		return c.notice
	case status.Code(err) == codes.Internal:
		return err
	}
	return status.Error(codes.Unavailable, err.Error())
}
