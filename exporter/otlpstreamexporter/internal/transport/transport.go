// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

// Package transport carries streams and unary requests to one address: over gRPC, over WebSocket, or as OTLP/HTTP.
//
// It handles connections, headers and the effects of proxies. The content of requests and their results are up to its
// users.
package transport

import (
	"cmp"
	"context"
	"fmt"
	"runtime"
	"strconv"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/config/configcompression"
	"go.opentelemetry.io/collector/config/configgrpc"
	"go.opentelemetry.io/collector/config/confighttp"
	"go.opentelemetry.io/collector/config/configoptional"

	"github.com/godwit-otel/godwit/internal/changedfiles"
	"github.com/godwit-otel/godwit/internal/otlpstream"
)

// Kinds of transports.
const (
	GRPC      = "grpc"
	WebSocket = "websocket"
	HTTP      = "http"
)

// Transport carries streams and unary requests to one address. Its errors have gRPC statuses.
type Transport interface {
	// Open opens a stream for a slot. It ends when ctx ends.
	Open(ctx context.Context, slot int, c configcompression.Type) (Conn, error)
	// Unary sends a payload in OTLP form and returns the encoded response.
	Unary(ctx context.Context, p otlpstream.Payload, c configcompression.Type) ([]byte, error)
	Close() error
}

// Conn is a stream of a transport. One goroutine sends, another receives.
type Conn interface {
	Send(*otlpstream.Request) error
	CloseSend() error
	// Greeting waits for the server's limits and capabilities; all are 0 if it does not announce them.
	Greeting() (otlpstream.Limits, otlpstream.Caps)
	// Recv reads the next response. io.EOF is the regular end.
	Recv(*otlpstream.Response) error
}

// Holding is a Conn that may hold back data until Flush, to write several requests at once. gRPC does so by itself.
type Holding interface{ Flush() error }

// Sharing is a Conn that may share its connection with others. Silent reports that it has received nothing since a
// time.
type Sharing interface{ Silent(since time.Time) }

// Settings are the parameters of a transport.
type Settings struct {
	Signal otlpstream.Signal
	Client configgrpc.ClientConfig
	// HTTP are the settings that only OTLP/HTTP has. URL replaces the path of the endpoint.
	HTTP confighttp.ClientConfig
	URL  string

	Connections int  // of gRPC
	Alone       bool // each stream has its own connection
	// Renew is the maximum age of the connection for unary requests if streams have their own, 0 for ever.
	Renew    time.Duration
	Requests int // maximum in flight
	// Reconnect is the longest pause before a connection is dialled again.
	Reconnect time.Duration

	Caps     otlpstream.Caps // announced when streams are opened
	Identity string          // part of the slots' names, by which servers recognise them

	Build     component.BuildInfo
	Telemetry component.TelemetrySettings
	Wire      *atomic.Int64 // counts bytes sent
}

// New returns a transport of a kind.
func New(ctx context.Context, kind string, s *Settings, host component.Host) (Transport, error) {
	ctx = context.WithoutCancel(ctx)
	another := func() (Transport, error) {
		switch kind {
		case WebSocket:
			return newWebSocket(ctx, s, host)
		case HTTP:
			return newHTTP(ctx, s, host)
		default:
			return newGRPC(ctx, s, host)
		}
	}
	files := changedfiles.New(s.Client.TLS.CAFile, s.Client.TLS.CertFile, s.Client.TLS.KeyFile)
	first, err := another()
	if err != nil || files.None() {
		return first, err
	}
	return renewing(first, files, s.Telemetry.Logger, another), nil
}

// keepalive returns how long the other side may be silent before it is pinged, unless the configuration says so. A gRPC
// server with default settings ends a connection that is pinged more than once in five minutes without data. On Linux,
// unacknowledged bytes end a connection after the keepalive timeout in any case, and one that is silent while streams
// wait for answers is dialled again. Over WebSocket, pings do no harm, and proxies consider a stream dead after a
// minute of silence.
func keepalive(transport string) time.Duration {
	if transport == GRPC {
		return 5*time.Minute + 10*time.Second
	}
	return 10 * time.Second
}

// withKeepalive adds the default to the configuration for a transport.
func withKeepalive(configured configoptional.Optional[configgrpc.KeepaliveClientConfig], transport string) configoptional.Optional[configgrpc.KeepaliveClientConfig] {
	if !configured.HasValue() {
		return configured
	}
	asks := *configured.Get()
	asks.Time = cmp.Or(asks.Time, keepalive(transport))
	return configoptional.Some(asks)
}

// nameOfSlot returns the name by which servers know a slot: it numbers its requests on all of its streams.
func nameOfSlot(identity string, slot int) string { return identity + "-" + strconv.Itoa(slot) }

func (s *Settings) userAgent() string {
	return fmt.Sprintf("%s/%s (%s/%s)", s.Build.Description, s.Build.Version, runtime.GOOS, runtime.GOARCH)
}
