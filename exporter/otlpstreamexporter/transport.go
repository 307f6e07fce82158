// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package otlpstreamexporter

import (
	"cmp"
	"context"
	"errors"
	"io"
	"strconv"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/config/configcompression"
	"go.opentelemetry.io/collector/config/configgrpc"
	"go.opentelemetry.io/collector/config/configoptional"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/godwit-otel/godwit/internal/otlpstream"
)

// transport carries streams and unary requests to one address. Its errors have gRPC statuses.
type transport interface {
	// open opens a stream for the slot of that number. It ends when ctx ends.
	open(ctx context.Context, slot int, c configcompression.Type) (conn, error)
	// unary sends a payload in OTLP form and returns the encoded response.
	unary(ctx context.Context, p otlpstream.Payload, c configcompression.Type) ([]byte, error)
	close() error
}

// conn is a stream as its transport has it. One goroutine sends, another receives.
type conn interface {
	send(*otlpstream.Request) error
	closeSend() error
	// greeting waits for what the server grants and knows; all is 0 where it does not say.
	greeting() (otlpstream.Limits, otlpstream.Caps)
	// recv reads the next response. io.EOF is the regular end.
	recv(*otlpstream.Response) error
}

// keepalive is how long the other end may be silent before it is asked whether it is there, where the configuration does not
// say. A gRPC server of a library's defaults ends a connection on which it is asked more than once in five minutes without
// having sent anything; on Linux, bytes that the other end's kernel does not confirm end a connection after the timeout of
// keepalive in any case, and one on which nothing is heard while streams wait for answers is dialled anew. Over WebSocket nobody minds, and proxies take a stream that is silent for a
// minute for dead.
func keepalive(transport string) time.Duration {
	if transport == transportGRPC {
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

// holding is a conn that may keep back what is sent until flush, to write several requests at once. gRPC does so by
// itself.
type holding interface{ flush() error }

// sharing is a conn that may share what it is carried on. silent says that it has waited in vain since a moment.
type sharing interface{ silent(since time.Time) }

// caps are what streams are opened with.
func (d *destination) caps() otlpstream.Caps {
	if d.cfg.Ordered {
		return otlpstream.AllCaps | otlpstream.CapOrdered
	}
	return otlpstream.AllCaps
}

// nameOfSlot is what servers know a slot by: numbers of requests are its own, on all streams that it has.
func nameOfSlot(identity string, slot int) string { return identity + "-" + strconv.Itoa(slot) }

func newTransport(ctx context.Context, d *destination, host component.Host) (transport, error) {
	switch d.cfg.Transport {
	case transportWebSocket:
		return newWebSocketTransport(ctx, d, host)
	case transportHTTP:
		return newHTTPTransport(ctx, d, host)
	default:
		return newGRPCTransport(ctx, d, host)
	}
}

// link is an open stream. The slot's lock guards it.
type link struct {
	conn   conn
	cancel context.CancelFunc
	opened time.Time
	// maxAge is the age at which it is closed, 0 being never.
	maxAge time.Duration
	// deltaAge is the age up to which it is kept where it sends deltas.
	deltaAge time.Duration
	// packs is set once the server is known to unpack; packer belongs to the goroutine that sends.
	packs atomic.Bool
	// keep is what packing may keep; it is set before packs.
	keep otlpstream.Keep
	// learned tells that the packer has a history, which a stream that is opened in its place would have to learn again.
	learned atomic.Bool
	// orders is set once the server is known to keep the order of requests.
	orders atomic.Bool
	packer *otlpstream.Packer

	sent  int
	bytes int64 // of what was sent, before compression
	acks  int
	// failed tells that it is counted among those on which nothing was acknowledged.
	failed bool
	// progress is what its answers tell.
	progress progress
	credit   otlpstream.Credit
	// retiring tells that the server wants it closed, and ended that it is over.
	retiring, ended bool
	// stuck tells that it was ended because nothing was heard on it.
	stuck bool
	// closed is when our half of it was closed.
	closed time.Time
}

// over tells whether it is time to use another stream.
func (l *link) over(cfg Rebalance, now time.Time) bool {
	if !l.retiring && l.learned.Load() && now.Sub(l.opened) < l.deltaAge {
		return false
	}
	return l.retiring || cfg.Requests > 0 && l.sent > cfg.Requests || cfg.Bytes > 0 && l.bytes > cfg.Bytes || l.maxAge > 0 && now.Sub(l.opened) > l.maxAge
}

// reasonOf is the reason of a stream's end as counted.
func (s *slot) reasonOf(l *link, err error) endReason {
	s.mu.Lock()
	stuck := l.stuck
	s.mu.Unlock()
	switch {
	case stuck:
		return endSilent
	case errors.Is(err, io.EOF):
		return endDone
	case status.Code(err) == codes.Unimplemented:
		return endUnimplemented
	}
	if _, asked := otlpstream.RetryDelay(status.Convert(err)); asked {
		return endThrottled
	}
	return endBroken
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
