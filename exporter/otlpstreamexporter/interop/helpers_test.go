// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package interop

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/exporter"
	"go.opentelemetry.io/collector/exporter/exportertest"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/godwit-otel/godwit/exporter/otlpstreamexporter"
	"github.com/godwit-otel/godwit/internal/otlpstream"
)

const (
	// patience is how long a test waits for something that has to happen. Nothing takes that long, unless the machine
	// is busy.
	patience = time.Minute

	transportGRPC      = "grpc"
	transportWebSocket = "websocket"
)

// bothTransports runs a test over gRPC and over WebSocket.
func bothTransports(t *testing.T, f func(t *testing.T, transport string)) {
	for _, transport := range []string{transportGRPC, transportWebSocket} {
		t.Run(transport, func(t *testing.T) { f(t, transport) })
	}
}

// testConfig has no time limits that lose data or close streams, so that slow machines do not matter.
func testConfig(transport, addr string, change ...func(*otlpstreamexporter.Config)) *otlpstreamexporter.Config {
	cfg := otlpstreamexporter.NewFactory().CreateDefaultConfig().(*otlpstreamexporter.Config)
	cfg.Client.Endpoint = addr
	cfg.Client.TLS.Insecure = true
	cfg.Transport = transport
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

// testExporter is a running exporter of traces.
type testExporter struct {
	exporter.Traces

	tb testing.TB
}

func newTestExporter(tb testing.TB, transport, addr string, change ...func(*otlpstreamexporter.Config)) *testExporter {
	set := exportertest.NewNopSettings(otlpstreamexporter.NewFactory().Type())
	return startExporter(tb, set, componenttest.NewNopHost(), testConfig(transport, addr, change...))
}

func startExporter(tb testing.TB, set exporter.Settings, host component.Host, cfg *otlpstreamexporter.Config) *testExporter {
	require.NoError(tb, cfg.Validate())
	e, err := otlpstreamexporter.NewFactory().CreateTraces(context.Background(), set, cfg)
	require.NoError(tb, err)
	require.NoError(tb, e.Start(context.Background(), host))
	tb.Cleanup(func() { require.NoError(tb, e.Shutdown(context.Background())) })
	return &testExporter{Traces: e, tb: tb}
}

func (e *testExporter) snapshot() otlpstreamexporter.DestinationSnapshot {
	return e.Traces.(interface {
		Snapshot() otlpstreamexporter.Snapshot
	}).Snapshot().Destinations[0]
}

func (e *testExporter) items() otlpstreamexporter.Items { return e.snapshot().Items }

// settled waits until nothing is queued or pending, as long as requests end, and returns the balance.
func (e *testExporter) settled() otlpstreamexporter.Items {
	ended := func(i otlpstreamexporter.Items) int64 { return i.Received - i.Queued - i.Pending }
	for {
		before := e.items()
		if before.Queued+before.Pending == 0 {
			return before
		}
		eventually(e.tb, func() bool { return ended(e.items()) > ended(before) }, "what is queued or pending comes to its end")
	}
}

// export queues batches of one span each, named by number from first on.
func (e *testExporter) export(first, n int) {
	for i := first; i < first+n; i++ {
		require.NoError(e.tb, e.ConsumeTraces(context.Background(), spans(batch(i), 1)))
	}
}

func batch(i int) string { return fmt.Sprintf("batch-%d", i) }

func spans(name string, n int) ptrace.Traces {
	td := ptrace.NewTraces()
	ss := td.ResourceSpans().AppendEmpty().ScopeSpans().AppendEmpty()
	for range n {
		ss.Spans().AppendEmpty().SetName(name)
	}
	return td
}

// testRequest returns a batch of one span in stream form.
func testRequest(tb testing.TB, name string) []byte {
	data, err := (&ptrace.ProtoMarshaler{}).MarshalTraces(spans(name, 1))
	require.NoError(tb, err)
	require.NoError(tb, otlpstream.ToStream(data))
	return data
}

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
