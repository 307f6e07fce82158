// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package otlpstreamexporter

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/config/configcompression"
	"go.opentelemetry.io/collector/exporter/exportertest"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/godwit-otel/godwit/exporter/otlpstreamexporter/internal/metadata"
	"github.com/godwit-otel/godwit/exporter/otlpstreamexporter/internal/server"
	"github.com/godwit-otel/godwit/exporter/otlpstreamexporter/internal/transport"
)

// BenchmarkDelivery measures one batch of 100 spans from the exporter to a server and its acknowledgement back, as
// unary requests one after another, as unary requests of which ten are in progress, and streamed. The network between
// them delays data by half the round trip in each direction.
func BenchmarkDelivery(b *testing.B) {
	td := ptrace.NewTraces()
	rs := td.ResourceSpans().AppendEmpty()
	rs.Resource().Attributes().PutStr("service.name", "bench")
	ss := rs.ScopeSpans().AppendEmpty()
	for i := range 100 {
		span := ss.Spans().AppendEmpty()
		span.SetName("load-generator-span")
		span.Attributes().PutInt("span_seq_num", int64(i))
		span.Attributes().PutStr("http.method", "GET")
		span.Attributes().PutStr("http.route", fmt.Sprintf("/item/%d", i))
		span.Attributes().PutStr("peer", "shop")
	}
	for _, rtt := range []time.Duration{0, 2 * time.Millisecond, 20 * time.Millisecond, 200 * time.Millisecond} {
		for _, variant := range []struct {
			name, kind, mode string
			inFlight         int
		}{
			{"unary", transport.GRPC, server.Unary, 1},
			{"unary_async_10", transport.GRPC, server.Unary, 10},
			{"stream", transport.GRPC, server.Stream, 128},
			{"websocket", transport.WebSocket, server.Stream, 128},
		} {
			b.Run(fmt.Sprintf("rtt=%v/mode=%s", rtt, variant.name), func(b *testing.B) {
				srv := run(b, &testServer{stream: echo}, variant.kind)
				addr := srv.addr
				if rtt > 0 {
					addr = newProxy(b, addr, func(p *proxy) { p.delay = rtt / 2 }).addr
				}
				cfg := testConfig(variant.kind, addr, func(cfg *Config) {
					cfg.Mode = variant.mode
					cfg.Client.Compression = configcompression.Type("none")
					cfg.InFlight.Requests = variant.inFlight
				}, noQueue)
				e := startExporter(b, exportertest.NewNopSettings(metadata.Type), componenttest.NewNopHost(), cfg)
				require.NoError(b, e.ConsumeTraces(context.Background(), td))
				e.settled() // connected
				b.ReportAllocs()
				window := make(chan struct{}, variant.inFlight)
				var sending sync.WaitGroup
				for b.Loop() {
					window <- struct{}{}
					sending.Go(func() {
						assert.NoError(b, e.ConsumeTraces(context.Background(), td))
						<-window
					})
				}
				sending.Wait()
				require.NoError(b, e.Shutdown(context.Background()))
				require.Equal(b, e.balanced().Acked, int64(100*len(srv.seen())))
			})
		}
	}
}
