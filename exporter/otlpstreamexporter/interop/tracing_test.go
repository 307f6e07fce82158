// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package interop

import (
	"context"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/confmap"
	"go.opentelemetry.io/collector/consumer/consumertest"
	"go.opentelemetry.io/collector/exporter"
	"go.opentelemetry.io/collector/exporter/exportertest"
	"go.opentelemetry.io/collector/receiver"
	"go.opentelemetry.io/collector/receiver/receivertest"
	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"

	"github.com/godwit-otel/godwit/exporter/otlpstreamexporter"
	"github.com/godwit-otel/godwit/receiver/otlpstreamreceiver"
)

// A trace of a batch continues in the next Collector, over any transport.
func TestATraceGoesOnInTheReceiver(t *testing.T) {
	before := otel.GetTextMapPropagator()
	otel.SetTextMapPropagator(propagation.TraceContext{})
	t.Cleanup(func() { otel.SetTextMapPropagator(before) })
	bothTransports(t, func(t *testing.T, transport string) {
		for _, mode := range []string{"stream", "unary"} {
			t.Run(mode, func(t *testing.T) {
				ctx, addr := context.Background(), freePort(t)
				tel := componenttest.NewTelemetry()
				defer func() { require.NoError(t, tel.Shutdown(ctx)) }()
				from, to := otlpstreamexporter.NewFactory(), otlpstreamreceiver.NewFactory()
				protocol := map[string]string{transportGRPC: "grpc", transportWebSocket: "http"}[transport]
				cfg := to.CreateDefaultConfig()
				require.NoError(t, confmap.NewFromStringMap(map[string]any{
					"protocols": map[string]any{protocol: map[string]any{"endpoint": addr}},
				}).Unmarshal(cfg))
				r, err := to.CreateTraces(ctx, receiver.Settings{
					ID: receivertest.NewNopSettings(to.Type()).ID, TelemetrySettings: tel.NewTelemetrySettings(),
				}, cfg, consumertest.NewNop())
				require.NoError(t, err)
				require.NoError(t, r.Start(ctx, componenttest.NewNopHost()))
				e := startExporter(t, exporter.Settings{
					ID: exportertest.NewNopSettings(from.Type()).ID, TelemetrySettings: tel.NewTelemetrySettings(),
				}, componenttest.NewNopHost(), testConfig(transport, addr, func(cfg *otlpstreamexporter.Config) { cfg.Mode = mode }))
				e.export(0, 2)
				require.Equal(t, int64(2), e.settled().Acked)
				require.NoError(t, e.Shutdown(ctx))
				require.NoError(t, r.Shutdown(ctx))

				sent := map[trace.TraceID]trace.SpanID{}
				received := map[trace.TraceID]trace.SpanID{} // their parents
				for _, span := range tel.SpanRecorder.Ended() {
					switch name := span.Name(); {
					case strings.HasPrefix(name, "exporter/otlpstream") && strings.HasSuffix(name, "/traces"):
						sent[span.SpanContext().TraceID()] = span.SpanContext().SpanID()
					case strings.HasSuffix(name, "/TraceDataReceived"):
						received[span.SpanContext().TraceID()] = span.Parent().SpanID()
					}
				}
				require.Len(t, sent, 2)
				require.Len(t, received, 2)
				for traceID, spanID := range sent {
					require.Contains(t, received, traceID)
					if mode == "stream" { // otherwise there are spans of gRPC or HTTP in between
						require.Equal(t, spanID, received[traceID])
					}
				}
			})
		}
	})
}
