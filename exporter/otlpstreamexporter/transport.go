// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package otlpstreamexporter

import (
	"context"
	"errors"
	"io"
	"time"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/exporter"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/godwit-otel/godwit/internal/otlpstream"
)

// transport carries streams and unary requests to one address. Its errors have gRPC statuses.
type transport interface {
	// open opens a stream for the slot of that number. It ends when ctx ends.
	open(ctx context.Context, slot int) (conn, error)
	// unary sends a payload in OTLP form and returns the encoded response.
	unary(ctx context.Context, data []byte) ([]byte, error)
	close() error
}

// conn is a stream as its transport has it. One goroutine sends, another receives.
type conn interface {
	send(*otlpstream.Request) error
	closeSend() error
	// limits waits for what the server grants; all is 0 where it does not say.
	limits() otlpstream.Limits
	// recv reads the next response. io.EOF is the regular end.
	recv(*otlpstream.Response) error
}

func newTransport(ctx context.Context, cfg *Config, set exporter.Settings, host component.Host, signal otlpstream.Signal) (transport, error) {
	if cfg.Transport == transportWebSocket {
		return newWebSocketTransport(ctx, cfg, set, host, signal)
	}
	return newGRPCTransport(ctx, cfg, set, host, signal)
}

// link is an open stream. The slot's lock guards it.
type link struct {
	conn   conn
	cancel context.CancelFunc
	opened time.Time
	// maxAge is the age at which it is closed, 0 being never.
	maxAge time.Duration

	sent int
	acks int
	// heard is when the server answered last.
	heard  time.Time
	credit otlpstream.Credit
	// retiring tells that the server wants it closed, and ended that it is over.
	retiring, ended bool
	// closed is when our half of it was closed.
	closed time.Time
}

// over tells whether it is time to use another stream.
func (l *link) over(cfg Rebalance, now time.Time) bool {
	return l.retiring || cfg.Requests > 0 && l.sent > cfg.Requests || l.maxAge > 0 && now.Sub(l.opened) > l.maxAge
}

// endReason is the reason of a stream's end as counted.
func endReason(err error) string {
	switch {
	case errors.Is(err, io.EOF):
		return "done"
	case status.Code(err) == codes.Unimplemented:
		return "unimplemented"
	}
	if _, asked := otlpstream.RetryDelay(status.Convert(err)); asked {
		return "throttled"
	}
	return "broken"
}

// suspicious tells whether one of the requests on a stream may be why it broke. A server that is away, or that does
// not know us, has nothing against a request.
func suspicious(err error) bool {
	switch st := status.Convert(err); st.Code() {
	case codes.Unimplemented, codes.Unauthenticated, codes.PermissionDenied:
		return false
	default:
		return !otlpstream.Transient(st)
	}
}
