// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package otlpstreamexporter

import (
	"context"
	"fmt"
	"net"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/config/configoptional"
	"go.opentelemetry.io/collector/exporter"
	"go.opentelemetry.io/collector/exporter/exportertest"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/godwit-otel/godwit/exporter/otlpstreamexporter/internal/account"
	exportermetadata "github.com/godwit-otel/godwit/exporter/otlpstreamexporter/internal/metadata"
	"github.com/godwit-otel/godwit/exporter/otlpstreamexporter/internal/transport"
	"github.com/godwit-otel/godwit/internal/otlpstream"
)

// patience is how long a test waits for something that has to happen. Nothing takes that long, unless the machine is
// busy.
const patience = time.Minute

// bothTransports runs a test over gRPC and over WebSocket.
func bothTransports(t *testing.T, f func(t *testing.T, kind string)) {
	for _, kind := range []string{transport.GRPC, transport.WebSocket} {
		t.Run(kind, func(t *testing.T) { f(t, kind) })
	}
}

// allTransports runs a test of unary requests over gRPC, as OTLP/HTTP in addition to WebSocket, and as OTLP/HTTP alone.
func allTransports(t *testing.T, f func(t *testing.T, kind string)) {
	for _, kind := range []string{transport.GRPC, transport.WebSocket, transport.HTTP} {
		t.Run(kind, func(t *testing.T) { f(t, kind) })
	}
}

// testConfig has no time limits that lose data or close streams, so that slow machines do not matter. A test of a time
// limit sets that limit.
func testConfig(kind, addr string, change ...func(*Config)) *Config {
	cfg := createDefaultConfig().(*Config)
	cfg.Client.Endpoint = addr
	cfg.Client.TLS.Insecure = true
	cfg.Transport = kind
	cfg.Streams = 1
	cfg.Retry.InitialInterval = 10 * time.Millisecond
	cfg.Retry.MaxInterval = 50 * time.Millisecond
	cfg.Retry.MaxElapsedTime = 0
	cfg.AckTimeout = time.Hour
	cfg.Rebalance.Timeout = 0
	cfg.Shutdown.Timeout = patience
	for _, f := range change {
		f(cfg)
	}
	return cfg
}

// testExporter is a running exporter of traces. dest is its first destination.
type testExporter struct {
	*tracesExporter

	tb   testing.TB
	dest *destination
}

func newTestExporter(tb testing.TB, kind, addr string, change ...func(*Config)) *testExporter {
	return startExporter(tb, exportertest.NewNopSettings(exportermetadata.Type), componenttest.NewNopHost(), testConfig(kind, addr, change...))
}

func startExporter(tb testing.TB, set exporter.Settings, host component.Host, cfg *Config) *testExporter {
	require.NoError(tb, cfg.Validate())
	made, err := createTraces(context.Background(), set, cfg)
	require.NoError(tb, err)
	e := made.(*tracesExporter)
	t := &testExporter{tracesExporter: e, tb: tb, dest: e.dests[0]}
	require.NoError(tb, e.Start(context.Background(), host))
	tb.Cleanup(func() {
		require.NoError(tb, e.Shutdown(context.Background()))
		for _, d := range e.dests {
			balanced(tb, d)
		}
	})
	return t
}

// balanced asserts that every item is in exactly one place, and returns the balance.
func balanced(tb testing.TB, d *destination) account.Balance {
	b := d.account.Balance()
	sum := b.Queued + b.Pending + b.Acked
	for _, n := range b.Dropped {
		require.GreaterOrEqual(tb, n, int64(0))
		sum += n
	}
	require.Equal(tb, b.Received, sum, "%+v", b)
	require.GreaterOrEqual(tb, min(b.Queued, b.Pending, b.Acked, b.Requests, b.Bytes), int64(0))
	require.Equal(tb, b.Pending == 0, b.Requests == 0, "%+v", b)
	return b
}

func (e *testExporter) balanced() account.Balance { return balanced(e.tb, e.dest) }

func spans(name string, n int) ptrace.Traces {
	td := ptrace.NewTraces()
	ss := td.ResourceSpans().AppendEmpty().ScopeSpans().AppendEmpty()
	for range n {
		ss.Spans().AppendEmpty().SetName(name)
	}
	return td
}

// export queues batches of one span each, named by number from first on, retrying while the queue is full.
func (e *testExporter) export(first, n int) {
	for i := first; i < first+n; i++ {
		eventually(e.tb, func() bool { return e.ConsumeTraces(context.Background(), spans(batch(i), 1)) == nil }, "there is room")
	}
}

func batch(i int) string { return fmt.Sprintf("batch-%d", i) }

// settled waits until nothing is queued or pending, as long as requests end, and returns the balance.
func settled(tb testing.TB, d *destination) account.Balance {
	ended := func(b account.Balance) int64 { return b.Received - b.Queued - b.Pending }
	for {
		before := balanced(tb, d)
		if before.Queued+before.Pending == 0 {
			return before
		}
		eventually(tb, func() bool { return ended(balanced(tb, d)) > ended(before) }, "what is queued or pending comes to its end")
	}
}

func (e *testExporter) settled() account.Balance { return settled(e.tb, e.dest) }

// eventually waits for a condition. It is checked on the test's goroutine, so that it may end the test.
func eventually(tb testing.TB, f func() bool, message string) {
	for begun := time.Now(); ; time.Sleep(time.Millisecond) {
		late := time.Since(begun) > patience // before the last attempt, however long the process was paused
		if f() {
			return
		}
		require.False(tb, late, "it has not come to this: %s", message)
	}
}

// expire makes the exporter look for overdue requests as if the given time had passed.
func (e *testExporter) expire(after time.Duration) {
	for _, s := range e.dest.lanes.all() {
		s.expire(time.Now().Add(after))
	}
}

func noQueue(cfg *Config) { cfg.Queue = configoptional.None[QueueConfig]() }

func impatient(cfg *Config) { cfg.Shutdown.WaitForAcks = false }

// testRequest returns a batch of one span as it is queued.
func testRequest(tb testing.TB, name string) []byte {
	data, err := (&ptrace.ProtoMarshaler{}).MarshalTraces(spans(name, 1))
	require.NoError(tb, err)
	require.NoError(tb, otlpstream.ToStream(data))
	return data
}

func freePort(tb testing.TB) string {
	l, err := net.Listen("tcp", "localhost:0")
	require.NoError(tb, err)
	defer l.Close()
	return l.Addr().String()
}
