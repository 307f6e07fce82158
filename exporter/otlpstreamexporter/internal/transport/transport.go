// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

// Package transport carries streams and unary requests to one address: over gRPC, over WebSocket, or as OTLP/HTTP.
//
// It handles connections, headers and the effects of proxies. The content of requests, and what becomes of them, is left to its users.
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
	// Open opens a stream for the slot of that number. It ends when ctx ends.
	Open(ctx context.Context, slot int, c configcompression.Type) (Conn, error)
	// Unary sends a payload in OTLP form and returns the encoded response.
	Unary(ctx context.Context, p otlpstream.Payload, c configcompression.Type) ([]byte, error)
	Close() error
}

// Conn is a stream as its transport has it. One goroutine sends, another receives.
type Conn interface {
	Send(*otlpstream.Request) error
	CloseSend() error
	// Greeting waits for what the server grants and knows; all is 0 where it does not say.
	Greeting() (otlpstream.Limits, otlpstream.Caps)
	// Recv reads the next response. io.EOF is the regular end.
	Recv(*otlpstream.Response) error
}

// Holding is a Conn that may keep back what is sent until Flush, to write several requests at once. gRPC does so by
// itself.
type Holding interface{ Flush() error }

// Sharing is a Conn that may share its connection with others. Silent says that it has received nothing since then.
type Sharing interface{ Silent(since time.Time) }

// Settings are what a transport has to know.
type Settings struct {
	Signal otlpstream.Signal
	Client configgrpc.ClientConfig
	// HTTP is what only OTLP/HTTP has, and URL where it sends to, in place of a path of the endpoint.
	HTTP confighttp.ClientConfig
	URL  string

	Connections int  // of gRPC
	Alone       bool // each stream has a connection of its own
	// Renew is how old the connection of unary requests becomes where streams have their own, 0 being for ever.
	Renew    time.Duration
	Requests int // in flight at most
	// Reconnect is the longest pause before a connection is dialled again.
	Reconnect time.Duration

	Caps     otlpstream.Caps // that streams are opened with
	Identity string          // of the slots' names, for servers to know them by

	Build     component.BuildInfo
	Telemetry component.TelemetrySettings
	Wire      *atomic.Int64 // counts the bytes that are sent
}

// New returns a transport of a kind.
func New(ctx context.Context, kind string, s *Settings, host component.Host) (Transport, error) {
	switch kind {
	case WebSocket:
		return newWebSocket(ctx, s, host)
	case HTTP:
		return newHTTP(ctx, s, host)
	default:
		return newGRPC(ctx, s, host)
	}
}

// keepalive is how long the other end may be silent before it is asked whether it is there, where the configuration does not
// say. A gRPC server of a library's defaults ends a connection on which it is asked more than once in five minutes without
// having sent anything; on Linux, bytes that the other end's kernel does not confirm end a connection after the timeout of
// keepalive in any case, and one on which nothing is heard while streams wait for answers is dialled anew. Over WebSocket nobody
// minds, and proxies take a stream that is silent for a minute for dead.
func keepalive(transport string) time.Duration {
	if transport == GRPC {
		return 5*time.Minute + 10*time.Second
	}
	return 10 * time.Second
}

// withKeepalive completes what is configured for a transport.
func withKeepalive(configured configoptional.Optional[configgrpc.KeepaliveClientConfig], transport string) configoptional.Optional[configgrpc.KeepaliveClientConfig] {
	if !configured.HasValue() {
		return configured
	}
	asks := *configured.Get()
	asks.Time = cmp.Or(asks.Time, keepalive(transport))
	return configoptional.Some(asks)
}

// nameOfSlot is what servers know a slot by: numbers of requests are its own, on all streams that it has.
func nameOfSlot(identity string, slot int) string { return identity + "-" + strconv.Itoa(slot) }

func (s *Settings) userAgent() string {
	return fmt.Sprintf("%s/%s (%s/%s)", s.Build.Description, s.Build.Version, runtime.GOOS, runtime.GOARCH)
}
