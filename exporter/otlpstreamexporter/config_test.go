// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package otlpstreamexporter

import (
	"testing"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/config/configcompression"
	"go.opentelemetry.io/collector/config/configopaque"
	"go.opentelemetry.io/collector/config/configoptional"
	"go.opentelemetry.io/collector/confmap"
	"go.opentelemetry.io/collector/confmap/confmaptest"
	"go.opentelemetry.io/collector/exporter/exportertest"

	"github.com/godwit-otel/godwit/exporter/otlpstreamexporter/internal/metadata"
	"github.com/godwit-otel/godwit/exporter/otlpstreamexporter/internal/server"
	"github.com/godwit-otel/godwit/exporter/otlpstreamexporter/internal/transport"
)

func TestConfigHasEveryKey(t *testing.T) {
	conf, err := confmaptest.LoadConf("testdata/config.yaml")
	require.NoError(t, err)
	cfg := createDefaultConfig().(*Config)
	require.NoError(t, conf.Unmarshal(cfg))
	require.NoError(t, cfg.Validate())
	want := createDefaultConfig().(*Config)
	want.Client.Endpoint = "gateway:4317"
	want.Client.TLS.Insecure = true
	want.Client.Headers = configopaque.MapList{{Name: "tenant", Value: "blue"}}
	want.Streams = 2
	want.MetadataKeys = []string{"x-scope-orgid"}
	id := component.MustNewID("file_storage")
	want.Queue.Get().Storage = &id
	want.Queue.Get().Batch.GetOrInsertDefault().Partition.MetadataKeys = []string{}
	require.Equal(t, want, cfg, "apart from these, the file shows the defaults")
}

func TestSeveralDestinationsHaveTheDefaultsOfAClient(t *testing.T) {
	conf, err := confmaptest.LoadConf("testdata/endpoints.yaml")
	require.NoError(t, err)
	cfg := createDefaultConfig().(*Config)
	require.NoError(t, conf.Unmarshal(cfg))
	require.NoError(t, cfg.Validate())
	first, second := defaultClient(), defaultClient()
	first.Endpoint, first.TLS.Insecure = "gateway:4317", true
	second.Endpoint, second.Headers = "eu.example:4317", configopaque.MapList{{Name: "tenant", Value: "blue"}}
	second.Compression = configcompression.TypeGzip
	require.Equal(t, []EndpointConfig{{Name: "gateway:4317", Client: first}, {Name: "eu", Client: second}}, cfg.Endpoints)

	set := exportertest.NewNopSettings(metadata.Type)
	e, err := createTraces(t.Context(), set, cfg)
	require.NoError(t, err)
	var ids []string
	for _, d := range e.(*tracesExporter).dests {
		ids = append(ids, d.set.ID.String())
	}
	require.Equal(t, []string{set.ID.String() + "@gateway:4317", set.ID.String() + "@eu"}, ids)
	require.NoError(t, e.Shutdown(t.Context()), "also without a start")
}

func TestTheQueueCanBeTurnedOff(t *testing.T) {
	cfg := createDefaultConfig().(*Config)
	require.NoError(t, confmap.NewFromStringMap(map[string]any{"sending_queue": map[string]any{"enabled": false}}).Unmarshal(cfg))
	require.False(t, cfg.Queue.HasValue())
}

func TestConfigFaultsNameTheirKeys(t *testing.T) {
	require.NoError(t, testConfig(transport.GRPC, "x:1").Validate())
	require.NoError(t, testConfig(transport.WebSocket, "x:1").Validate())
	require.NoError(t, testConfig(transport.HTTP, "x:1").Validate())

	err := (&Config{HistoryBytes: -1, Rebalance: Rebalance{Requests: -1, DeltaTimeout: -1}, Queue: configoptional.Some(QueueConfig{}), Shutdown: Shutdown{WaitForAcks: true}}).Validate()
	for _, key := range []string{
		"endpoint", "transport", "mode", "reprobe_interval", "streams", "connections", "in_flight::requests", "in_flight::bytes",
		"rebalance::requests", "rebalance::delta_timeout", "history_bytes", "ack_timeout", "shutdown::timeout", "sending_queue::queue_size",
	} {
		require.ErrorContains(t, err, "`"+key+"`")
	}
	for key, set := range map[string]func(*Config){
		"endpoint":               func(cfg *Config) { cfg.Endpoints = []EndpointConfig{{Client: cfg.Client}} },
		"endpoints::0::endpoint": func(cfg *Config) { several("")(cfg) },
		"endpoints::1::name":     func(cfg *Config) { several("x", "y")(cfg); cfg.Endpoints[1].Name = "a" },
		"sending_queue":          func(cfg *Config) { several("x", "y")(cfg); noQueue(cfg) },
		"read_buffer_size":       func(cfg *Config) { cfg.Client.ReadBufferSize = 1 << 40 },
		"streams":                func(cfg *Config) { cfg.Streams = mostStreams + 1 },
		"in_flight::requests":    func(cfg *Config) { cfg.InFlight.Requests = mostRequests + 1 },
		"rebalance::scope":       func(cfg *Config) { cfg.Rebalance.Scope = "host" },
		"connections":            func(cfg *Config) { cfg.Rebalance.Scope, cfg.Connections = scopeConnection, 2 },
	} {
		require.ErrorContains(t, testConfig(transport.GRPC, "x:1", set).Validate(), "`"+key+"`")
	}
	for key, set := range map[string]func(*Config){
		"compression":    func(cfg *Config) { cfg.Client.Compression = configcompression.TypeSnappy },
		"connections":    func(cfg *Config) { cfg.Connections = 2 },
		"authority":      func(cfg *Config) { cfg.Client.Authority = "x" },
		"wait_for_ready": func(cfg *Config) { cfg.Client.WaitForReady = true },
	} {
		require.NoError(t, testConfig(transport.GRPC, "x:1", set).Validate())
		require.ErrorContains(t, testConfig(transport.WebSocket, "x:1", set).Validate(), "`"+key+"`")
		require.ErrorContains(t, testConfig(transport.HTTP, "x:1", set).Validate(), "`"+key+"`")
	}
	for key, set := range map[string]func(*Config){
		"mode":                     func(cfg *Config) { cfg.Mode = server.Stream },
		"http::metrics_endpoint":   func(cfg *Config) { cfg.HTTP.MetricsEndpoint = "otlp.example" },
		"http::proxy_url":          func(cfg *Config) { cfg.HTTP.ProxyURL = "\x00" },
		"http::max_conns_per_host": func(cfg *Config) { cfg.HTTP.MaxConnsPerHost = -1 },
		"http::idle_conn_timeout":  func(cfg *Config) { cfg.HTTP.IdleConnTimeout = -1 },
		"http::logs_endpoint":      func(cfg *Config) { several("x", "y")(cfg); cfg.HTTP.LogsEndpoint = "http://x/logs" },
	} {
		require.ErrorContains(t, testConfig(transport.HTTP, "x:1", set).Validate(), "`"+key+"`")
	}
}
