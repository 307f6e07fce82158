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
	id := component.MustNewID("file_storage")
	want.Queue.Get().Storage = &id
	require.Equal(t, want, cfg, "apart from these, the file shows the defaults")
}

func TestTheQueueCanBeTurnedOff(t *testing.T) {
	cfg := createDefaultConfig().(*Config)
	require.NoError(t, confmap.NewFromStringMap(map[string]any{"sending_queue": map[string]any{"enabled": false}}).Unmarshal(cfg))
	require.False(t, cfg.Queue.HasValue())
	require.Error(t, confmap.NewFromStringMap(map[string]any{"sending_queue": map[string]any{"batch": nil}}).Unmarshal(cfg),
		"there is no batching, so there is no key")
}

func TestConfigFaultsNameTheirKeys(t *testing.T) {
	require.NoError(t, testConfig(transportGRPC, "x:1").Validate())
	require.NoError(t, testConfig(transportWebSocket, "x:1").Validate())

	err := (&Config{Rebalance: Rebalance{Requests: -1}, Queue: configoptional.Some(QueueConfig{}), Shutdown: Shutdown{WaitForAcks: true}}).Validate()
	for _, key := range []string{
		"endpoint", "transport", "mode", "reprobe_interval", "streams", "connections", "in_flight::requests", "in_flight::bytes",
		"rebalance::requests", "ack_timeout", "shutdown::timeout", "sending_queue::queue_size",
	} {
		require.ErrorContains(t, err, "`"+key+"`")
	}
	for key, set := range map[string]func(*Config){
		"compression":    func(cfg *Config) { cfg.Client.Compression = configcompression.TypeSnappy },
		"connections":    func(cfg *Config) { cfg.Connections = 2 },
		"authority":      func(cfg *Config) { cfg.Client.Authority = "x" },
		"wait_for_ready": func(cfg *Config) { cfg.Client.WaitForReady = true },
	} {
		require.NoError(t, testConfig(transportGRPC, "x:1", set).Validate())
		require.ErrorContains(t, testConfig(transportWebSocket, "x:1", set).Validate(), "`"+key+"`")
	}
}
