// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package transport

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync/atomic"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/config/configcompression"
	"go.opentelemetry.io/collector/config/configgrpc"
	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/propagation"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/godwit-otel/godwit/internal/otlpstream"
	"github.com/godwit-otel/godwit/internal/redact"
)

const protobufType = "application/x-protobuf"

// httpSender sends unary requests as OTLP/HTTP.
type httpSender struct {
	client *http.Client
	url    string
	header http.Header
	wire   *atomic.Int64
}

func (s *httpSender) Unary(ctx context.Context, p otlpstream.Payload, c configcompression.Type) ([]byte, error) {
	data := p.Data
	if c.IsCompressed() {
		const mostly = 8 // it shrinks to less than this part
		frame, err := framesOf(c).AppendFrame(make([]byte, 0, 1<<10+len(data)/mostly), data)
		if err != nil {
			return nil, err
		}
		data = frame[1:]
	} else {
		p.Memory.Retain() // never released: the client may still use it when the answer is there
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, s.url, bytes.NewReader(data))
	if err != nil {
		return nil, fmt.Errorf("cannot make a request: %w", redact.Error(err))
	}
	s.wire.Add(int64(len(data)))
	req.Header = s.header.Clone()
	req.Header.Set("Content-Type", protobufType)
	if c.IsCompressed() {
		req.Header.Set("Content-Encoding", string(c))
	}
	addOrigin(ctx, req.Header)
	otel.GetTextMapPropagator().Inject(ctx, propagation.HeaderCarrier(req.Header))
	if host := req.Header.Get("Host"); host != "" {
		req.Host = host
	}
	response, err := s.client.Do(req)
	if err != nil {
		return nil, status.Error(codes.Unavailable, err.Error())
	}
	defer response.Body.Close()
	body, err := io.ReadAll(io.LimitReader(response.Body, maxResponse))
	if err != nil {
		return nil, status.Error(codes.Unavailable, err.Error())
	}
	if response.StatusCode < http.StatusOK || response.StatusCode >= http.StatusMultipleChoices {
		err := httpStatus(response, refusal(response, body))
		if isPage(body) {
			err = proxied{err}
		}
		return nil, err
	}
	if isPage(body) {
		return nil, status.Error(codes.Unavailable, response.Status+": a web page answers, and no server of OTLP")
	}
	return body, nil
}

// sameRequest follows redirects that repeat the same request. If a page would be requested instead, such as one to log
// in, whatever answers has not accepted anything.
func sameRequest(next *http.Request, before []*http.Request) error {
	const most = 10
	if next.Method != before[0].Method || len(before) == most {
		return http.ErrUseLastResponse
	}
	return nil
}

// refusal returns the error for an answer that refuses a request, with its redirect location or what it says.
func refusal(response *http.Response, body []byte) error {
	at, err := response.Location()
	if err != nil {
		if text := said(response.Header.Get("Content-Type"), body); text != "" {
			return fmt.Errorf("%s: %s", response.Status, text)
		}
		return errors.New(response.Status)
	}
	at.User, at.RawQuery, at.Fragment = nil, "", "" // these may be secret
	return fmt.Errorf("%s: the server leads to %s", response.Status, at)
}

// baseOf returns the base URL for an endpoint. The default scheme is https, unless the endpoint is insecure.
func baseOf(client *configgrpc.ClientConfig) string {
	scheme, address, found := strings.Cut(client.Endpoint, "://")
	if !found {
		scheme, address = "https", client.Endpoint
		if client.TLS.Insecure {
			scheme = plain
		}
	}
	scheme = strings.Replace(scheme, "ws", plain, 1) // wss is https
	return scheme + "://" + strings.TrimSuffix(address, "/")
}

// header returns the headers of each request to the destination.
func (s *Settings) header() http.Header {
	header := http.Header{"User-Agent": {s.userAgent()}}
	for name, value := range s.Client.Headers.Iter {
		header.Set(name, string(value))
	}
	if s.Client.UserAgent != "" {
		header.Set("User-Agent", s.Client.UserAgent)
	}
	return header
}

// httpTransport sends all requests as OTLP/HTTP, to any server.
type httpTransport struct{ httpSender }

func newHTTP(ctx context.Context, s *Settings, host component.Host) (*httpTransport, error) {
	client := &s.Client
	const mostBuffer = 64 << 10 // of each connection
	settings := s.HTTP
	settings.TLS, settings.Auth, settings.Middlewares = client.TLS, client.Auth, client.Middlewares
	settings.ReadBufferSize, settings.WriteBufferSize = min(client.ReadBufferSize, mostBuffer), min(client.WriteBufferSize, mostBuffer)
	settings.MaxIdleConnsPerHost = s.Requests
	if asks := withKeepalive(client.Keepalive, HTTP); asks.HasValue() { // of HTTP/2
		settings.HTTP2ReadIdleTimeout, settings.HTTP2PingTimeout = asks.Get().Time, asks.Get().Timeout
	}
	// Requests have spans of their own, so the client needs none.
	made, err := settings.ToClient(ctx, host.GetExtensions(), component.TelemetrySettings{})
	if err != nil {
		return nil, fmt.Errorf("cannot set up the client of %q: %w", redact.URL(client.Endpoint), redact.Error(err))
	}
	made.CheckRedirect = sameRequest
	url := cmp.Or(s.URL, baseOf(client)+s.Signal.HTTPPath())
	return &httpTransport{httpSender{client: made, url: url, header: s.header(), wire: s.Wire}}, nil
}

func (*httpTransport) Open(context.Context, int, configcompression.Type) (Conn, error) {
	return nil, status.Error(codes.Unimplemented, "there are no streams over http")
}

func (t *httpTransport) Close() error {
	t.client.CloseIdleConnections()
	return nil
}
