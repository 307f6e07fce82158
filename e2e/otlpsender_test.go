// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/pdata/plog/plogotlp"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/pdata/pmetric/pmetricotlp"
	"go.opentelemetry.io/collector/pdata/ptrace"
	"go.opentelemetry.io/collector/pdata/ptrace/ptraceotlp"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"

	"github.com/godwit-otel/godwit/e2e/otlpserver"
	"github.com/godwit-otel/godwit/e2e/wait"
)

const (
	numberKey = "number"
	// Log records, spans or data points per request.
	perRequest = 10
	// Enough for requests to be in flight whenever the receiver is killed.
	floodSenders = 4
	refusedPause = 10 * time.Millisecond
	// More than any test's queue holds.
	fillRequests = 10_000
)

// ledger numbers all log records, spans and data points that are sent, and records which of them were acknowledged. It
// is safe for concurrent use.
type ledger struct {
	// padding is the number of bytes added to each record.
	padding int
	// withMetrics makes every third request one of metrics.
	withMetrics bool

	mu    sync.Mutex
	next  int64
	acked []int64 // the first number of each request
}

// dial connects to an OTLP receiver until the test ends. Each life of a receiver gets a new connection, which has no
// backoff from failures.
func dial(t *testing.T, addr string) *grpc.ClientConn {
	t.Helper()
	conn, err := grpc.NewClient(addr, grpc.WithTransportCredentials(insecure.NewCredentials()))
	require.NoError(t, err)
	t.Cleanup(func() { conn.Close() })
	return conn
}

// send sends one request with new numbers; the signals take turns.
func (l *ledger) send(ctx context.Context, conn *grpc.ClientConn) error {
	l.mu.Lock()
	first := l.next
	l.next += perRequest
	l.mu.Unlock()
	if err := l.export(ctx, conn, first); err != nil {
		return err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.acked = append(l.acked, first)
	return nil
}

func (l *ledger) export(ctx context.Context, conn *grpc.ClientConn, first int64) error {
	var rejected int64
	signals := int64(2)
	if l.withMetrics {
		signals = 3
	}
	switch first / perRequest % signals {
	case 0:
		resp, err := plogotlp.NewGRPCClient(conn).Export(ctx, plogotlp.NewExportRequestFromLogs(l.logs(first)))
		if err != nil {
			return err
		}
		rejected = resp.PartialSuccess().RejectedLogRecords()
	case 1:
		resp, err := ptraceotlp.NewGRPCClient(conn).Export(ctx, ptraceotlp.NewExportRequestFromTraces(l.traces(first)))
		if err != nil {
			return err
		}
		rejected = resp.PartialSuccess().RejectedSpans()
	default:
		resp, err := pmetricotlp.NewGRPCClient(conn).Export(ctx, pmetricotlp.NewExportRequestFromMetrics(l.metrics(first)))
		if err != nil {
			return err
		}
		rejected = resp.PartialSuccess().RejectedDataPoints()
	}
	if rejected != 0 {
		return fmt.Errorf("%d of %d rejected", rejected, perRequest)
	}
	return nil
}

func (l *ledger) logs(first int64) plog.Logs {
	ld := plog.NewLogs()
	records := ld.ResourceLogs().AppendEmpty().ScopeLogs().AppendEmpty().LogRecords()
	for i := range int64(perRequest) {
		record := records.AppendEmpty()
		record.Body().SetStr(strings.Repeat("x", l.padding))
		record.Attributes().PutInt(numberKey, first+i)
	}
	return ld
}

func (l *ledger) traces(first int64) ptrace.Traces {
	td := ptrace.NewTraces()
	spans := td.ResourceSpans().AppendEmpty().ScopeSpans().AppendEmpty().Spans()
	for i := range int64(perRequest) {
		span := spans.AppendEmpty()
		span.SetName(strings.Repeat("x", l.padding))
		span.Attributes().PutInt(numberKey, first+i)
	}
	return td
}

// metrics returns the same series each time, with the numbers as values, so that streams send only what changes.
func (l *ledger) metrics(first int64) pmetric.Metrics {
	md := pmetric.NewMetrics()
	resource := md.ResourceMetrics().AppendEmpty()
	resource.Resource().Attributes().PutStr("service.name", "ledger")
	m := resource.ScopeMetrics().AppendEmpty().Metrics().AppendEmpty()
	m.SetName(numberKey)
	points := m.SetEmptyGauge().DataPoints()
	for i := range int64(perRequest) {
		point := points.AppendEmpty()
		point.Attributes().PutStr("padding", strings.Repeat("x", l.padding))
		point.Attributes().PutInt("series", i)
		point.SetIntValue(first + i)
		point.SetTimestamp(pcommon.NewTimestampFromTime(time.Now()))
	}
	return md
}

// flood sends until stop is called; it does not retry.
func (l *ledger) flood(t *testing.T, addr string) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	conn := dial(t, addr)
	var senders sync.WaitGroup
	for range floodSenders {
		senders.Go(func() {
			for ctx.Err() == nil {
				if l.send(ctx, conn) != nil {
					wait.Pause(ctx, refusedPause)
				}
			}
		})
	}
	return func() {
		cancel()
		senders.Wait()
	}
}

// fill sends until so many requests were refused, each with the given reason and with Unavailable, the code that makes
// every OTLP sender retry.
func (l *ledger) fill(t *testing.T, conn *grpc.ClientConn, refusals int, reason string) {
	t.Helper()
	for range fillRequests {
		err := l.send(t.Context(), conn)
		if err == nil {
			continue
		}
		require.Equal(t, codes.Unavailable, status.Code(err), "%v", err)
		require.ErrorContains(t, err, reason)
		if refusals--; refusals == 0 {
			require.NotEmpty(t, l.acked)
			return
		}
	}
	t.Fatalf("%d requests did not fill it: %d acknowledged", fillRequests, l.acknowledged())
}

// acknowledged returns the number of acknowledged records.
func (l *ledger) acknowledged() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.acked) * perRequest
}

// arrived returns a condition: everything acknowledged is at the destination.
func (l *ledger) arrived(destination *otlpserver.Server) func() (bool, string) {
	return func() (bool, string) {
		there := numbers(destination)
		l.mu.Lock()
		defer l.mu.Unlock()
		missing := 0
		for _, first := range l.acked {
			for i := range int64(perRequest) {
				if there[first+i] == 0 {
					missing++
				}
			}
		}
		return missing == 0, fmt.Sprintf("%d of %d acknowledged have not arrived", missing, len(l.acked)*perRequest)
	}
}

// numbers counts how often each number arrived.
func numbers(destination *otlpserver.Server) map[int64]int {
	found := map[int64]int{}
	count := func(attrs pcommon.Map) {
		if number, ok := attrs.Get(numberKey); ok {
			found[number.Int()]++
		}
	}
	for _, ld := range destination.Logs() {
		for _, resource := range ld.ResourceLogs().All() {
			for _, scope := range resource.ScopeLogs().All() {
				for _, record := range scope.LogRecords().All() {
					count(record.Attributes())
				}
			}
		}
	}
	for _, td := range destination.Traces() {
		for _, resource := range td.ResourceSpans().All() {
			for _, scope := range resource.ScopeSpans().All() {
				for _, span := range scope.Spans().All() {
					count(span.Attributes())
				}
			}
		}
	}
	for _, md := range destination.Metrics() {
		for _, resource := range md.ResourceMetrics().All() {
			for _, scope := range resource.ScopeMetrics().All() {
				for _, m := range scope.Metrics().All() {
					if m.Name() != numberKey {
						continue
					}
					for _, point := range m.Gauge().DataPoints().All() {
						found[point.IntValue()]++
					}
				}
			}
		}
	}
	return found
}
