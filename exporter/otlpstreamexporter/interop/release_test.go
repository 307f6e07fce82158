// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package interop

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/config/configoptional"
	"go.opentelemetry.io/collector/exporter/exportertest"
	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/godwit-otel/godwit/exporter/otlpstreamexporter"
	"github.com/godwit-otel/godwit/internal/handback"
	"github.com/godwit-otel/godwit/internal/handback/handbacktest"
	"github.com/godwit-otel/godwit/receiver/otlpstreamreceiver"
)

// Metrics are not changed, and may be overwritten as soon as they have been consumed: the same arrives, with any
// configuration.
func TestMetricsAreReleased(t *testing.T) {
	for name, change := range map[string]func(*otlpstreamexporter.Config){
		"as it is": func(*otlpstreamexporter.Config) {},
		"unary":    func(c *otlpstreamexporter.Config) { c.Mode = "unary" },
		"over http": func(c *otlpstreamexporter.Config) {
			if c.Transport == "websocket" { // the server is the same
				c.Transport = "http"
			}
		},
		"without a queue": func(c *otlpstreamexporter.Config) { c.Queue = configoptional.None[otlpstreamexporter.QueueConfig]() },
		"several destinations": func(c *otlpstreamexporter.Config) {
			c.Endpoints = []otlpstreamexporter.EndpointConfig{{Name: "one", Client: c.Client}, {Name: "two", Client: c.Client}}
			c.Client.Endpoint = ""
		},
	} {
		t.Run(name, func(t *testing.T) {
			bothTransports(t, func(t *testing.T, transport string) {
				var to sink
				factory := otlpstreamexporter.NewFactory()
				cfg := testConfig(transport, startReceiver(t, otlpstreamreceiver.NewFactory(), transport, &to, nil), change)
				require.NoError(t, cfg.Validate())
				e, err := factory.CreateMetrics(context.Background(), exportertest.NewNopSettings(factory.Type()), cfg)
				require.NoError(t, err)
				require.NoError(t, e.(handback.Releaser).ReleasesMetrics())
				require.False(t, e.Capabilities().MutatesData)
				require.NoError(t, e.Start(context.Background(), componenttest.NewNopHost()))
				t.Cleanup(func() { require.NoError(t, e.Shutdown(context.Background())) })

				want := map[string]int{}
				for n := range 10 {
					want[marshal(t, handbacktest.Metrics(n))] += max(1, len(cfg.Endpoints))
					handbacktest.Consume(t, func(md pmetric.Metrics) error { return e.ConsumeMetrics(context.Background(), md) }, handbacktest.Metrics(n))
				}
				require.NoError(t, e.Shutdown(context.Background()))
				got := map[string]int{}
				for _, md := range to.metrics.AllMetrics() {
					got[marshal(t, md)]++
				}
				require.Equal(t, want, got)
			})
		})
	}
}

func marshal(t *testing.T, md pmetric.Metrics) string {
	t.Helper()
	b, err := (&pmetric.ProtoMarshaler{}).MarshalMetrics(md)
	require.NoError(t, err)
	return string(b)
}
