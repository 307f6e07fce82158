// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package prometheusremotewriteexporter

import (
	"testing"
	"time"

	contrib "github.com/open-telemetry/opentelemetry-collector-contrib/exporter/prometheusremotewriteexporter"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/confmap"
	"go.opentelemetry.io/collector/confmap/confmaptest"

	"github.com/godwit-otel/godwit/exporter/remotewriteexporter"
)

func load(t *testing.T, id string) *Config {
	t.Helper()
	conf, err := confmaptest.LoadConf("testdata/config.yaml")
	require.NoError(t, err)
	sub, err := conf.Sub(id)
	require.NoError(t, err)
	cfg := createDefaultConfig().(*Config)
	require.NoError(t, sub.Unmarshal(cfg))
	require.NoError(t, cfg.Validate())
	return cfg
}

func TestEveryKeyOfContribIsKnown(t *testing.T) {
	conf := confmap.New()
	require.NoError(t, conf.Marshal(contrib.NewFactory().CreateDefaultConfig()))
	cfg := createDefaultConfig().(*Config)
	require.NoError(t, conf.Unmarshal(cfg))
	require.NoError(t, cfg.Validate())
	require.Empty(t, cfg.warnings(), "contrib's defaults mean the same here")

	conf, err := confmaptest.LoadConf("testdata/config.yaml")
	require.NoError(t, err)
	sub, err := conf.Sub("prometheus_remote_write")
	require.NoError(t, err)
	require.NoError(t, sub.Unmarshal(contrib.NewFactory().CreateDefaultConfig()), "contrib knows every key that we say it does")
}

func TestKeysAreTranslated(t *testing.T) {
	cfg := load(t, "prometheus_remote_write").translate()
	want := remotewriteexporter.NewDefaultConfig()
	want.HTTP = cfg.HTTP
	want.Compression, want.ProtobufMessage = snappy, messageV2
	want.Retry = remotewriteexporter.RetryConfig{
		InitialInterval: 100 * time.Millisecond, RandomizationFactor: 0.4, Multiplier: 1.3,
		MaxInterval: time.Minute, MaxElapsedTime: 10 * time.Minute, MaxRetryAfter: want.Retry.MaxRetryAfter,
	}
	want.Queue.OnFull = "drop_newest"
	want.Batch.MaxRawBytes, want.Batch.MaxBytes = 5_000_000, 5_000_000
	want.Shards.Max = 3
	want.ShutdownTimeout = 10 * time.Second
	want.Queue.Size, want.Queue.Directory = walSize, "./prom_rw"
	want.Tenant.MetadataKeys, want.Tenant.Max = []string{"X-Scope-OrgID"}, maxTenants
	want.Names.Namespace, want.Names.ExternalLabels = "test-space", map[string]string{"cluster": "north"}
	want.Labels.PromoteResourceAttributes, want.Labels.ResourceAttributesWin = []string{"*"}, true
	want.Labels.ExcludeResourceAttributes = serviceAttributes
	want.Labels.TargetInfo.Enabled = false
	want.Labels.ScopeLabels, want.Names.KeepScrapedNames, want.Names.StrictLabels = "never", false, true
	want.Points.ConvertExplicitHistogramsToNHCB, want.Points.KeepClassicHistograms = true, true
	require.Equal(t, want, cfg)
	require.Equal(t, "https://prometheus:9090/api/v1/write", cfg.HTTP.Endpoint)
	require.Equal(t, 10*time.Second, cfg.HTTP.Timeout)
	require.Equal(t, "http://proxy:3128", cfg.HTTP.ProxyURL)
}

func TestRulesAreTranslated(t *testing.T) {
	cfg := load(t, "prometheus_remote_write/rules").translate()
	require.Len(t, cfg.Labels.WriteRelabelConfigs, 1)
	require.Equal(t, "drop", cfg.Labels.WriteRelabelConfigs[0].Action)
	require.Equal(t, ";", cfg.Labels.WriteRelabelConfigs[0].Separator, "Prometheus' default")
	cfg.Labels.WriteRelabelConfigs[0].Action = "dorp"
	require.ErrorContains(t, cfg.Validate(), "`write_relabel_configs[0]`: `action`")
}

func TestBlockOfTheClientWins(t *testing.T) {
	require.Equal(t, "https://prometheus:9090/api/v1/write", load(t, "prometheus_remote_write/block").translate().HTTP.Endpoint)
}

func TestWarningsSayWhatHappensInstead(t *testing.T) {
	for _, test := range []struct {
		key    string
		change func(*Config)
	}{
		{"`wal`", func(c *Config) { *c.WAL.GetOrInsertDefault() = WALConfig{Directory: "d", BufferSize: 1} }},
		{"`convert_explicit_histograms_to_nhcb`", func(c *Config) { c.ConvertExplicitHistogramsToNHCB = true }},
		{"`add_metric_suffixes`", func(c *Config) { c.AddMetricSuffixes = false }},
	} {
		cfg := createDefaultConfig().(*Config)
		cfg.HTTP.Endpoint = "http://localhost/"
		test.change(cfg)
		require.NoError(t, cfg.Validate())
		require.Len(t, cfg.warnings(), 1)
		require.Contains(t, cfg.warnings()[0], test.key)
	}
}

func TestFaultsNameTheKey(t *testing.T) {
	zero := 0
	for _, test := range []struct {
		want   string
		change func(*Config)
	}{
		{"`compression`", func(c *Config) { c.HTTP.Compression = "gzip" }},
		{"`max_batch_size_bytes`", func(c *Config) { c.MaxBatchSizeBytes = -1 }},
		{"`max_batch_request_parallelism`", func(c *Config) { c.MaxBatchRequestParallelism = &zero }},
		{"`remote_write_queue.num_consumers`", func(c *Config) { c.Queue.NumConsumers = -1 }},
		{"`remote_write_queue.queue_size`", func(c *Config) { c.Queue.QueueSize = 0 }},
		{"`wal.directory`", func(c *Config) { c.WAL.GetOrInsertDefault() }},
		{"`include_metadata_keys`", func(c *Config) { c.IncludeMetadataKeys = []string{"content-type"} }},
		{"`protobuf_message`", func(c *Config) { c.ProtobufMessage = "3.0" }},
		{"`translation_strategy`", func(c *Config) { c.TranslationStrategy = "Underscore" }},
		{"`endpoint`", func(c *Config) { c.HTTP.Endpoint = "" }},
	} {
		cfg := createDefaultConfig().(*Config)
		cfg.HTTP.Endpoint = "http://localhost/"
		test.change(cfg)
		require.ErrorContains(t, cfg.Validate(), test.want)
	}
}
