// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package interop

import (
	"context"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/consumer/consumertest"
	"go.opentelemetry.io/collector/exporter/exportertest"
	"go.opentelemetry.io/collector/pdata/ptrace"
	"go.opentelemetry.io/collector/receiver/receivertest"

	"github.com/godwit-otel/godwit/exporter/otlpstreamexporter"
	"github.com/godwit-otel/godwit/receiver/otlpstreamreceiver"
)

// Most of what is sent again after a cut has been accepted: only its response is lost.
func TestWhatIsSentAgainIsHandedOnOnce(t *testing.T) {
	bothTransports(t, func(t *testing.T, transport string) {
		duplicates := func(deduplicate bool) int {
			const n, rounds = 1000, 10
			var to consumertest.TracesSink
			// Once enough of a round has been accepted, the rest is pending until the connection is cut: its responses
			// are lost.
			type gate struct {
				enough int
				open   chan struct{}
			}
			var now atomic.Pointer[gate]
			held, err := consumer.NewTraces(func(ctx context.Context, td ptrace.Traces) error {
				if g := now.Load(); to.SpanCount() >= g.enough {
					<-g.open
				}
				return to.ConsumeTraces(ctx, td)
			})
			require.NoError(t, err)
			f := otlpstreamreceiver.NewFactory()
			cfg := f.CreateDefaultConfig().(*otlpstreamreceiver.Config)
			cfg.Deduplicate.Enabled = deduplicate
			addr := freePort(t)
			if transport == transportGRPC {
				cfg.Protocols.GRPC.GetOrInsertDefault().NetAddr.Endpoint = addr
			} else {
				cfg.Protocols.HTTP.GetOrInsertDefault().NetAddr.Endpoint = addr
			}
			r, err := f.CreateTraces(t.Context(), receivertest.NewNopSettings(f.Type()), cfg, held)
			require.NoError(t, err)
			require.NoError(t, r.Start(t.Context(), componenttest.NewNopHost()))
			defer func() { require.NoError(t, r.Shutdown(context.Background())) }()
			w := newWire(t, addr)
			e := startExporter(t, exportertest.NewNopSettings(otlpstreamexporter.NewFactory().Type()), componenttest.NewNopHost(),
				testConfig(transport, w.addr, func(cfg *otlpstreamexporter.Config) {
					cfg.Streams, cfg.Mode = 2, "stream"
					cfg.Queue.Get().QueueSize = n
				}))
			for round := range rounds {
				before := to.SpanCount()
				g := &gate{before + n/rounds/3, make(chan struct{})}
				now.Store(g)
				e.export(round*n/rounds, n/rounds)
				eventually(t, func() bool { return to.SpanCount() >= g.enough }, "it moves on")
				w.cut()
				close(g.open)
			}
			require.Equal(t, int64(n), e.settled().Acked)
			require.GreaterOrEqual(t, to.SpanCount(), n)
			names := map[string]bool{}
			for _, td := range to.AllTraces() {
				names[td.ResourceSpans().At(0).ScopeSpans().At(0).Spans().At(0).Name()] = true
			}
			require.Len(t, names, n)
			return to.SpanCount() - n
		}
		require.NotZero(t, duplicates(false), "or the test shows nothing")
		require.Zero(t, duplicates(true))
	})
}
