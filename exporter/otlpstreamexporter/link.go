// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package otlpstreamexporter

import (
	"context"
	"errors"
	"io"
	"sync/atomic"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/godwit-otel/godwit/exporter/otlpstreamexporter/internal/tally"
	"github.com/godwit-otel/godwit/exporter/otlpstreamexporter/internal/transport"
	"github.com/godwit-otel/godwit/internal/otlpstream"
)

// link is an open stream. The slot's lock guards it.
type link struct {
	conn   transport.Conn
	cancel context.CancelFunc
	opened time.Time
	// maxAge is the age at which it is closed, 0 for never.
	maxAge time.Duration
	// deltaAge is the same for a stream that sends deltas.
	deltaAge time.Duration
	// packs is set once the server is known to unpack; packer belongs to the goroutine that sends.
	packs atomic.Bool
	// keep is how much state packing may keep; it is set before packs.
	keep otlpstream.Keep
	// learned says that the packer has a history, which another stream would have to learn again.
	learned atomic.Bool
	// orders is set once the server is known to keep the order of requests.
	orders atomic.Bool
	packer *otlpstream.Packer

	sent  int
	bytes int64 // sent, before compression
	acks  int
	// failed says that it counts as a stream on which nothing was acknowledged.
	failed bool
	// progress is what its answers show.
	progress progress
	credit   otlpstream.Credit
	// retiring says that the server wants it closed, and ended that it is over.
	retiring, ended bool
	// stuck says that it was ended because nothing was received.
	stuck bool
	// closed is when our half of it was closed.
	closed time.Time
}

// over reports whether it is time to use another stream.
func (l *link) over(cfg Rebalance, now time.Time) bool {
	if !l.retiring && l.learned.Load() && now.Sub(l.opened) < l.deltaAge {
		return false
	}
	return l.retiring || cfg.Requests > 0 && l.sent > cfg.Requests || cfg.Bytes > 0 && l.bytes > cfg.Bytes || l.maxAge > 0 && now.Sub(l.opened) > l.maxAge
}

// reasonOf classifies the end of a stream.
func (s *slot) reasonOf(l *link, err error) tally.Ending {
	s.mu.Lock()
	stuck := l.stuck
	s.mu.Unlock()
	switch {
	case stuck:
		return tally.Silent
	case errors.Is(err, io.EOF):
		return tally.Done
	case status.Code(err) == codes.Unimplemented:
		return tally.Unimplemented
	}
	if _, asked := otlpstream.RetryDelay(status.Convert(err)); asked {
		return tally.Throttled
	}
	return tally.Broken
}

// suspicious reports whether one of the requests on a stream may be why it broke. A server that is down, or refuses our
// credentials, does not mean a request.
func suspicious(err error) bool {
	switch st := status.Convert(err); st.Code() {
	case codes.Unimplemented, codes.Unauthenticated, codes.PermissionDenied:
		return false
	default:
		return !otlpstream.Transient(st)
	}
}
