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

	exportermetadata "github.com/godwit-otel/godwit/exporter/otlpstreamexporter/internal/metadata"
	"github.com/godwit-otel/godwit/internal/otlpstream"
)

const patience = 20 * time.Second

// bothTransports runs a test over gRPC and over WebSocket.
func bothTransports(t *testing.T, f func(t *testing.T, transport string)) {
	for _, transport := range []string{transportGRPC, transportWebSocket} {
		t.Run(transport, func(t *testing.T) { f(t, transport) })
	}
}

func testConfig(transport, addr string, change ...func(*Config)) *Config {
	cfg := createDefaultConfig().(*Config)
	cfg.Client.Endpoint = addr
	cfg.Client.TLS.Insecure = true
	cfg.Transport = transport
	cfg.Streams = 1
	cfg.Retry.InitialInterval = 10 * time.Millisecond
	cfg.Retry.MaxInterval = 50 * time.Millisecond
	cfg.Retry.MaxElapsedTime = time.Minute
	for _, f := range change {
		f(cfg)
	}
	return cfg
}

// testExporter is an exporter of traces that is running. dest is its first destination.
type testExporter struct {
	*tracesExporter

	tb   testing.TB
	dest *destination
}

func newTestExporter(tb testing.TB, transport, addr string, change ...func(*Config)) *testExporter {
	return startExporter(tb, exportertest.NewNopSettings(exportermetadata.Type), componenttest.NewNopHost(), testConfig(transport, addr, change...))
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

// balanced asserts that every item is in exactly one place, and returns the account.
func balanced(tb testing.TB, d *destination) balance {
	b := d.account.snapshot()
	sum := b.queued + b.pending + b.acked
	for _, n := range b.dropped {
		require.GreaterOrEqual(tb, n, int64(0))
		sum += n
	}
	require.Equal(tb, b.received, sum, "%+v", b)
	require.GreaterOrEqual(tb, min(b.queued, b.pending, b.acked, b.requests, b.bytes), int64(0))
	require.Equal(tb, b.pending == 0, b.requests == 0, "%+v", b)
	return b
}

func (e *testExporter) balanced() balance { return balanced(e.tb, e.dest) }

func spans(name string, n int) ptrace.Traces {
	td := ptrace.NewTraces()
	ss := td.ResourceSpans().AppendEmpty().ScopeSpans().AppendEmpty()
	for range n {
		ss.Spans().AppendEmpty().SetName(name)
	}
	return td
}

// export queues batches of one span each, named by number from first on.
func (e *testExporter) export(first, n int) {
	for i := first; i < first+n; i++ {
		require.NoError(e.tb, e.ConsumeTraces(context.Background(), spans(batch(i), 1)))
	}
}

func batch(i int) string { return fmt.Sprintf("batch-%d", i) }

// settled waits until nothing is queued or pending, and returns the account.
func settled(tb testing.TB, d *destination) balance {
	eventually(tb, func() bool {
		b := balanced(tb, d)
		return b.queued == 0 && b.pending == 0
	}, "all is settled")
	return balanced(tb, d)
}

func (e *testExporter) settled() balance { return settled(e.tb, e.dest) }

func eventually(tb testing.TB, f func() bool, message string) {
	require.Eventually(tb, f, patience, time.Millisecond, message)
}

func noQueue(cfg *Config) { cfg.Queue = configoptional.None[QueueConfig]() }

func impatient(cfg *Config) { cfg.Shutdown.WaitForAcks = false }

// testRequest is a batch of one span as it is queued.
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
