// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package remotewriteexporter

import (
	"testing"
	"time"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/relabel"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/config/configopaque"
	"go.opentelemetry.io/collector/confmap"
	"go.opentelemetry.io/collector/confmap/confmaptest"
	yamlv2 "go.yaml.in/yaml/v2"

	"github.com/godwit-otel/godwit/internal/promwrite"

	"github.com/godwit-otel/godwit/exporter/remotewriteexporter/internal/block"
	"github.com/godwit-otel/godwit/exporter/remotewriteexporter/internal/queue"
)

func loadConfig(t *testing.T, id string) *Config {
	t.Helper()
	conf, err := confmaptest.LoadConf("testdata/config.yaml")
	require.NoError(t, err)
	sub, err := conf.Sub(id)
	require.NoError(t, err)
	cfg := NewDefaultConfig()
	require.NoError(t, sub.Unmarshal(cfg))
	require.NoError(t, cfg.Validate())
	return cfg
}

func TestEveryKeyIsRead(t *testing.T) {
	want := &Config{
		HTTP:             defaultClient(),
		ShardByURL:       ShardByURLConfig{Replicas: 1},
		Timeout:          20 * time.Second,
		ProtobufMessage:  "io.prometheus.write.v2.Request",
		Compression:      zstd,
		CompressionLevel: 2,
		ReprobeInterval:  30 * time.Minute,
		Batch:            BatchConfig{MaxSamples: 20_000, MaxBytes: 500_000, MaxRawBytes: 4_000_000, Timeout: 2 * time.Second},
		Queue:            QueueConfig{Size: 1e9, Storage: &storageID, FSync: true, OnFull: "drop_oldest", BlockTimeout: 5 * time.Second, FreshFirstAfter: time.Minute, MaxAge: 2 * time.Hour},
		Retry: RetryConfig{
			InitialInterval: time.Second, RandomizationFactor: 0.2, Multiplier: 3, MaxInterval: time.Minute,
			MaxElapsedTime: time.Hour, MaxRetryAfter: 10 * time.Minute, StatusCodes: []int{401, 403},
		},
		RateLimit:       RateLimitConfig{BytesPerSecond: 1_000_000, SamplesPerSecond: 200_000},
		Shards:          ShardsConfig{Min: 2, Max: 16},
		CircuitBreaker:  BreakerConfig{ConsecutiveFailures: 3, OpenFor: 20 * time.Second},
		Tenant:          TenantConfig{Header: "X-Scope-OrgID", FromResourceAttribute: "tenant", Default: "nobody", Max: 50},
		Cache:           CacheConfig{MaxSeries: 200_000, IdleTimeout: 5 * time.Minute},
		ShutdownTimeout: 30 * time.Second,
		Names: NamesConfig{
			TranslationStrategy: "NoTranslation", StrictLabels: true, LabelNameUnderscoreSanitization: true, Namespace: "tundra",
			ExternalLabels: map[string]string{"cluster": "north"},
		},
		Labels: LabelsConfig{
			TargetInfo: TargetInfoConfig{Interval: 2 * time.Minute}, TypeAndUnitLabels: true, ScopeLabels: "never",
			PromoteResourceAttributes: []string{"k8s.*", "host.name"}, ExcludeResourceAttributes: []string{"k8s.pod.uid"}, ResourceAttributesWin: true,
			WriteRelabelConfigs: []RelabelConfig{{
				SourceLabels: []string{"__name__", "instance"}, Separator: "@", Regex: "(go_.*)@(.*)", Modulus: 4, TargetLabel: "kept",
				Replacement: "${1}", Action: "Keep",
			}},
		},
		Points: PointsConfig{
			ConvertExplicitHistogramsToNHCB: true, KeepClassicHistograms: true, Delta: DeltaConfig{ToCumulative: true, MaxSeries: 5000},
		},
	}
	want.HTTP.Endpoint = "https://prometheus:9090/api/v1/write"
	want.HTTP.Timeout = 3 * time.Second
	want.HTTP.Headers = configopaque.MapList{{Name: "X-Bird", Value: "godwit"}}
	require.Equal(t, want, loadConfig(t, "remotewrite"))

	require.Equal(t, ShardByURLConfig{Enabled: true, Replicas: 2, IgnoreLabels: []string{"le"}}, loadConfig(t, "remotewrite/several").ShardByURL)
	folder := loadConfig(t, "remotewrite/simple").Queue // which excludes `storage`
	require.Equal(t, "/var/lib/otelcol/remotewrite", folder.Directory)
	require.False(t, folder.FSync)
	waited := loadConfig(t, "remotewrite/waited") // excluded by the previous one
	require.Equal(t, int64(100), waited.Queue.MaxBatches)
	require.True(t, waited.Queue.WaitForResult)
	require.Equal(t, []string{"X-Scope-OrgID", "X-Team"}, waited.Tenant.MetadataKeys)
}

func TestEndpointsHaveDefaultsOfTheirOwn(t *testing.T) {
	simple := loadConfig(t, "remotewrite/simple").clients()
	require.Len(t, simple, 1)
	require.Equal(t, "http://localhost:9090/api/v1/write", simple[0].client.Endpoint)
	several := loadConfig(t, "remotewrite/several").clients()
	require.Len(t, several, 4)
	require.Equal(t, "https://mimir:8080/api/v1/push", several[1].client.Endpoint)
	require.Equal(t, defaultClient().IdleConnTimeout, several[1].client.IdleConnTimeout)
	require.True(t, several[0].client.TLS.InsecureSkipVerify)
	require.Equal(t, queue.Policy{OnFull: queue.Block, FreshFor: time.Minute}, several[0].policy(), "the exporter's")
	require.Equal(t, queue.Policy{Size: 5_000_000, OnFull: queue.DropNewest, MaxAge: time.Hour}, several[1].policy(), "its own")
	require.Equal(t, [2]string{auto, snappy}, [2]string{several[0].message, several[0].compression})
	require.Equal(t, [2]string{oneZero, auto}, [2]string{several[1].message, several[1].compression})
	require.Len(t, several[1].rules, 1)
	require.Equal(t, "nest", several[2].azure.OAuth.TenantID)
	require.Equal(t, "wings", string(several[2].azure.OAuth.ClientSecret))
	require.Equal(t, "/etc/otelcol/account.json", several[3].google.CredentialsFile)
	ids := identities(several)
	several[0], several[1] = several[1], several[0]
	require.ElementsMatch(t, ids, identities(several))
	swapped := []namedClient{simple[0], simple[0]}
	swapped[1].client.Endpoint += "#b"
	require.NotEqual(t, identities(swapped)[0], identities(swapped)[1], "what tells equal ones apart")
}

// TestRulesAreWrittenAsInPrometheus: missing keys have Prometheus' defaults, and unquoted values are strings.
func TestRulesAreWrittenAsInPrometheus(t *testing.T) {
	load := func(yaml string) (*Config, error) {
		retrieved, err := confmap.NewRetrievedFromYAML([]byte(yaml))
		require.NoError(t, err)
		conf, err := retrieved.AsConf()
		require.NoError(t, err)
		cfg := NewDefaultConfig()
		cfg.Endpoint = "http://localhost:9090/api/v1/write"
		if err := conf.Unmarshal(cfg); err != nil {
			return nil, err
		}
		return cfg, cfg.Validate()
	}
	for _, rule := range []string{
		"{source_labels: [a, b], target_label: c}",
		"{action: Drop, source_labels: [a], regex: 5}",
		"{target_label: c, replacement: true}",
		"{target_label: c, replacement: '', separator: '', regex: ''}",
		"{action: hashmod, modulus: 7, target_label: c}",
		"{action: keepequal, source_labels: [a], target_label: c}",
		"{action: labelmap, regex: a_(.*)}",
	} {
		cfg, err := load("write_relabel_configs: [" + rule + "]")
		require.NoError(t, err)
		got, err := relabelling(cfg.Labels.WriteRelabelConfigs, cfg.Names.scheme(), "")
		require.NoError(t, err)
		var want relabel.Config
		require.NoError(t, yamlv2.UnmarshalStrict([]byte(rule), &want))
		require.NoError(t, want.Validate(model.LegacyValidation))
		text := func(c relabel.Config) string {
			out, err := yamlv2.Marshal(&c)
			require.NoError(t, err)
			return string(out)
		}
		require.Equal(t, text(want), text(got[0]))
	}
	fault := func(yaml, want string) {
		t.Helper()
		_, err := load(yaml)
		require.ErrorContains(t, err, want)
	}
	fault("write_relabel_configs: [{target_label: c, replacement: 1.5}]", "`replacement` must be a text, got the number 1.5: put it in quotes")
	fault("write_relabel_configs: [{action: keep}, {target_lable: c}]", "write_relabel_configs[1]")
	fault("write_relabel_configs: [{target_lable: c}]", "there is no key `target_lable`: did you mean `target_label`?")
}

func TestFormatsFollowTheConfiguration(t *testing.T) {
	f := func(message, compression, strategy string, want ...block.Format) {
		t.Helper()
		cfg := NewDefaultConfig()
		cfg.ProtobufMessage, cfg.Compression, cfg.Names.TranslationStrategy = message, compression, strategy
		for i := range want {
			want[i].Level = 1
		}
		require.Equal(t, want, cfg.formats(&cfg.clients()[0]))
	}
	const plain = "UnderscoreEscapingWithSuffixes"
	v2z := block.Format{Version: promwrite.V2, Compression: promwrite.Zstd}
	v2s := block.Format{Version: promwrite.V2, Compression: promwrite.Snappy}
	v1z := block.Format{Version: promwrite.V1, Compression: promwrite.Zstd}
	v1s := block.Format{Version: promwrite.V1, Compression: promwrite.Snappy}
	f("auto", "auto", plain, v2z, v2s, v1z, v1s)
	f("auto", "auto", "NoTranslation", v2z, v2s)
	f("2.0", "auto", plain, v2z, v2s)
	f("prometheus.WriteRequest", "auto", plain, v1z, v1s)
	f("auto", snappy, plain, v2s, v1s)
	f(oneZero, zstd, plain, v1z)
}

func TestFaultsNameTheKey(t *testing.T) {
	for _, test := range []struct {
		want   string
		change func(*Config)
	}{
		{"`endpoint` must be set", func(c *Config) { c.Endpoint = "" }},
		{"`endpoint` must be an http", func(c *Config) { c.Endpoint = "localhost:9090" }},
		{"`http.endpoint`", func(c *Config) { c.HTTP.Endpoint = c.Endpoint }},
		{"`endpoints`", func(c *Config) { c.Endpoints = []EndpointConfig{{}} }},
		{"`tenant.metadata_keys`", func(c *Config) { c.Tenant.MetadataKeys, c.Tenant.Header = []string{"a"}, "b" }},
		{"`tenant.metadata_keys`", func(c *Config) { c.Tenant.MetadataKeys = []string{"content-type"} }},
		{"`tenant.metadata_keys`", func(c *Config) { c.Tenant.MetadataKeys = []string{""} }},
		{"`queue.wait_for_result`", func(c *Config) { c.Queue.WaitForResult, c.Queue.Storage = true, &storageID }},
		{"`queue.max_batches`", func(c *Config) { c.Queue.MaxBatches = -1 }},
		{"`endpoints[1].endpoint` must not be the same as `endpoints[0].endpoint`: append #a to one", func(c *Config) {
			c.Endpoints, c.Endpoint = make([]EndpointConfig, 2), ""
			for i := range c.Endpoints {
				c.Endpoints[i].HTTP.Endpoint = "http://there/write"
				c.Endpoints[i].HTTP.Headers = configopaque.MapList{{Name: "X-Scope-OrgID", Value: configopaque.String(rune('a' + i))}}
			}
		}},
		{"`endpoints[0].endpoint`", func(c *Config) { c.Endpoint, c.Endpoints = "", []EndpointConfig{{}} }},
		{"`http.headers`", func(c *Config) { c.HTTP.Headers = configopaque.MapList{{Name: "content-encoding"}} }},
		{"`http.compression` must not be set", func(c *Config) { c.HTTP.Compression = "gzip" }},
		{"`timeout`", func(c *Config) { c.Timeout = 0 }},
		{"`protobuf_message`", func(c *Config) { c.ProtobufMessage = "3.0" }},
		{"`compression`", func(c *Config) { c.Compression = "gzip" }},
		{"`compression_level`", func(c *Config) { c.CompressionLevel = 5 }},
		{"`reprobe_interval`", func(c *Config) { c.ReprobeInterval = 0 }},
		{"`batch.max_samples`", func(c *Config) { c.Batch.MaxSamples = 0 }},
		{"`batch.max_bytes`", func(c *Config) { c.Batch.MaxBytes = -1 }},
		{"`batch.max_raw_bytes`", func(c *Config) { c.Batch.MaxRawBytes = 0 }},
		{"`batch.timeout`", func(c *Config) { c.Batch.Timeout = -1 }},
		{"`queue.size`", func(c *Config) { c.Queue.Size = -1 }},
		{"`queue.on_full`", func(c *Config) { c.Queue.OnFull = "panic" }},
		{"`queue.fresh_first_after`", func(c *Config) { c.Queue.FreshFirstAfter = -1 }},
		{"`queue.max_age`", func(c *Config) { c.Queue.MaxAge = -1 }},
		{"`retry.initial_interval`", func(c *Config) { c.Retry.InitialInterval = 0 }},
		{"`retry.max_interval`", func(c *Config) { c.Retry.MaxInterval = 1 }},
		{"`retry.multiplier`", func(c *Config) { c.Retry.Multiplier = 0.5 }},
		{"`retry.randomization_factor`", func(c *Config) { c.Retry.RandomizationFactor = 2 }},
		{"`retry.max_elapsed_time`", func(c *Config) { c.Retry.MaxElapsedTime = -1 }},
		{"`retry.max_retry_after`", func(c *Config) { c.Retry.MaxRetryAfter = 0 }},
		{"`retry.status_codes`", func(c *Config) { c.Retry.StatusCodes = []int{413} }},
		{"`shards.min`", func(c *Config) { c.Shards.Min = 0 }},
		{"`http.read_buffer_size`", func(c *Config) { c.HTTP.ReadBufferSize = 1 << 40 }},
		{"`shards.max`", func(c *Config) { c.Shards.Max = MaxShards + 1 }},
		{"`circuit_breaker.open_for`", func(c *Config) { c.CircuitBreaker.OpenFor = 0 }},
		{"`circuit_breaker.consecutive_failures`", func(c *Config) { c.CircuitBreaker.ConsecutiveFailures = -1 }},
		{"`tenant.header` must be set", func(c *Config) { c.Tenant.FromMetadata = "x" }},
		{"`tenant.header` must not", func(c *Config) { c.Tenant.Header = "user-agent" }},
		{"`tenant.header` must be a", func(c *Config) { c.Tenant.Header = "a b" }},
		{"`tenant.from_metadata`", func(c *Config) { c.Tenant.Header = "X-Scope-OrgID" }},
		{"`tenant.default`", func(c *Config) {
			c.Tenant.Header, c.Tenant.FromMetadata = "X-Scope-OrgID", "x"
			c.HTTP.Headers = configopaque.MapList{{Name: "x-scope-orgid"}}
		}},
		{"`tenant.max`", func(c *Config) { c.Tenant.Max = 0 }},
		{"`rate_limit` of `endpoint` must not be negative", func(c *Config) { c.RateLimit.BytesPerSecond = -1 }},
		{"`cache.max_series`", func(c *Config) { c.Cache.MaxSeries = 0 }},
		{"`cache.idle_timeout`", func(c *Config) { c.Cache.IdleTimeout = 0 }},
		{"`shutdown_timeout`", func(c *Config) { c.ShutdownTimeout = -1 }},
		{"`translation_strategy` must be", func(c *Config) { c.Names.TranslationStrategy = "None" }},
		{"`translation_strategy` NoTranslation", func(c *Config) { c.Names.TranslationStrategy, c.ProtobufMessage = "NoTranslation", oneZero }},
		{"`external_labels`: cannot use external label \"a_b\"", func(c *Config) { c.Names.ExternalLabels = map[string]string{"a.b": "1", "a/b": "2"} }},
		{"`external_labels`: cannot use external label \"\"", func(c *Config) { c.Names.ExternalLabels = map[string]string{"": "1"} }},
		{"`scope_labels`", func(c *Config) { c.Labels.ScopeLabels = "yes" }},
		{"`target_info.interval`", func(c *Config) { c.Labels.TargetInfo.Interval = -1 }},
		{"`convert_explicit_histograms_to_nhcb`", func(c *Config) { c.Points.ConvertExplicitHistogramsToNHCB, c.ProtobufMessage = true, oneZero }},
		{"`delta.max_series`", func(c *Config) { c.Points.Delta.MaxSeries = 0 }},
		{"`write_relabel_configs[0]`: `action` must be one of replace,", func(c *Config) { c.Labels.WriteRelabelConfigs = []RelabelConfig{{Action: "dorp"}} }},
		{"`write_relabel_configs[0]`: `regex` must", func(c *Config) { c.Labels.WriteRelabelConfigs = []RelabelConfig{{Action: "drop", Regex: "("}} }},
		{"`write_relabel_configs[0]`: relabel configuration for replace action requires 'target_label'", func(c *Config) { c.Labels.WriteRelabelConfigs = []RelabelConfig{{Action: "replace"}} }},
		{"`write_relabel_configs[0]`: \"a.b\" is invalid 'target_label'", func(c *Config) {
			c.Labels.WriteRelabelConfigs = []RelabelConfig{{Action: "replace", TargetLabel: "a.b"}}
		}},
		{"`write_relabel_configs[0]`: `source_labels`", func(c *Config) {
			c.Labels.WriteRelabelConfigs = []RelabelConfig{{Action: "drop", SourceLabels: []string{""}}}
		}},
	} {
		cfg := NewDefaultConfig()
		cfg.Endpoint = "http://localhost:9090/api/v1/write"
		require.NoError(t, cfg.Validate())
		test.change(cfg)
		require.ErrorContains(t, cfg.Validate(), test.want)
	}
}
