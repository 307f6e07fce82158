// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package otlpstreamreceiver

import (
	"context"
	"fmt"
	"io"
	"maps"
	"net/http"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/collector/client"
	"google.golang.org/grpc/stats"
	"google.golang.org/grpc/status"

	"github.com/godwit-otel/godwit/internal/inspect"
	"github.com/godwit-otel/godwit/internal/otlpstream"
	"github.com/godwit-otel/godwit/receiver/otlpstreamreceiver/internal/arrivals"
)

// reasonPipeline is the reason for items that the pipeline refuses permanently.
const reasonPipeline = "pipeline"

// traffic counts what was received since the start, by result. Success is counted without a lock.
type traffic struct {
	// wire is the size of requests as received, and raw the decompressed size.
	wire, raw atomic.Int64
	signals   [otlpstream.SignalCount]struct{ in, out atomic.Int64 }

	mu      sync.Mutex
	refused int64
	dropped int64
	failed  map[string]int64 // requests by their OTLP/HTTP status, whatever the transport
	last    inspect.Fault
}

// count records the pipeline's result for a request, or that it could not be decoded.
func (t *traffic) count(ctx context.Context, signal otlpstream.Signal, items int, st *status.Status) {
	s := &t.signals[signal]
	s.in.Add(int64(items))
	if st == nil {
		s.out.Add(int64(items))
		return
	}
	lost := items
	if retryable(st) {
		lost = 0 // it will be sent again
	}
	t.fail(ctx, httpCode(st), lost, st.Message())
}

// countPart records that the pipeline accepted a request except for a part, which is lost.
func (t *traffic) countPart(ctx context.Context, signal otlpstream.Signal, items int, refused part) {
	s := &t.signals[signal]
	s.in.Add(int64(items))
	s.out.Add(int64(items - refused.items))
	t.mu.Lock()
	defer t.mu.Unlock()
	t.dropped += int64(refused.items)
	t.last.At = time.Now()
	t.last.Text = fmt.Sprintf("took all but %d items from %s: %s", refused.items, clientOf(ctx), refused.message)
}

// fail records a request that was answered with an error, and how many of its items are lost.
func (t *traffic) fail(ctx context.Context, code, lost int, message string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.failed == nil {
		t.failed = map[string]int64{}
	}
	t.failed[strconv.Itoa(code)]++
	t.dropped += int64(lost)
	switch code {
	case http.StatusServiceUnavailable, http.StatusTooManyRequests:
		t.refused++
	}
	t.last.At = time.Now()
	t.last.Text = fmt.Sprintf("answered %d to %s: %.*s", code, clientOf(ctx), maxText, message)
}

func clientOf(ctx context.Context) string {
	if addr := client.FromContext(ctx).Addr; addr != nil {
		return hostOf(addr.String())
	}
	return "a client"
}

func (t *traffic) flow() inspect.Flow {
	f := inspect.Flow{
		WireBytes: t.wire.Load(), RawBytes: t.raw.Load(),
		Dropped: map[string]int64{}, Signals: map[string]inspect.SignalFlow{},
	}
	for _, signal := range otlpstream.Signals() {
		s := &t.signals[signal]
		// Out first: more may come in meanwhile.
		one := inspect.SignalFlow{Out: s.out.Load()}
		one.In = s.in.Load()
		if signal == otlpstream.Profiles && one.In == 0 {
			continue // few clients send them
		}
		f.In, f.Out = f.In+one.In, f.Out+one.Out
		f.Signals[signal.String()] = one
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	f.Refused, f.Failed = t.refused, maps.Clone(t.failed)
	if t.dropped > 0 {
		f.Dropped[reasonPipeline] = t.dropped
	}
	return f
}

func (t *traffic) fault() inspect.Fault {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.last
}

// TagRPC and HandleConn are required by gRPC's interface.
func (*traffic) TagRPC(ctx context.Context, _ *stats.RPCTagInfo) context.Context { return ctx }

// HandleConn does nothing.
func (*traffic) HandleConn(context.Context, stats.ConnStats) {}

// HandleRPC counts what is received over gRPC.
func (t *traffic) HandleRPC(ctx context.Context, s stats.RPCStats) {
	x := arrivalOf(ctx)
	switch s := s.(type) {
	case *stats.InPayload:
		t.wire.Add(int64(s.WireLength))
		if x != nil {
			x.Done(s.WireLength)
		}
	case *stats.Begin:
		if x != nil {
			x.Begin()
		}
	case *stats.End:
		if x != nil {
			x.End()
		}
	}
}

// countedBody counts what is read, and how much of it is held until it is complete.
type countedBody struct {
	io.ReadCloser

	n    *atomic.Int64
	held *arrivals.Arrival // nil if nothing is held
}

func (b countedBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	b.n.Add(int64(n))
	if b.held != nil && n > 0 {
		if fault := b.held.Come(n); fault != nil {
			return n, fault
		}
	}
	return n, err
}
