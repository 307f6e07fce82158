// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package fastprometheusreceiver

import (
	"errors"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	commonconfig "github.com/prometheus/common/config"
	"github.com/prometheus/common/model"
	promconfig "github.com/prometheus/prometheus/config"
	"github.com/prometheus/prometheus/discovery"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/config/configoptional"
	"go.opentelemetry.io/collector/confmap"
	"go.opentelemetry.io/collector/confmap/confmaptest"
	"go.opentelemetry.io/collector/confmap/provider/yamlprovider"

	"github.com/godwit-otel/godwit/receiver/fastprometheusreceiver/internal/allocator"
	"github.com/godwit-otel/godwit/receiver/fastprometheusreceiver/internal/api"
	"github.com/godwit-otel/godwit/receiver/fastprometheusreceiver/internal/metadata"
)

// load reads a section of a file in testdata into a default configuration.
func load(t *testing.T, file, section string) (*Config, error) {
	t.Helper()
	conf, err := confmaptest.LoadConf(filepath.Join("testdata", file))
	require.NoError(t, err)
	sub, err := conf.Sub(section)
	require.NoError(t, err)
	cfg := createDefaultConfig().(*Config)
	return cfg, sub.Unmarshal(cfg)
}

func TestLoadConfig(t *testing.T) {
	cfg, err := load(t, "config.yaml", metadata.Type.String())
	require.NoError(t, err)
	require.NoError(t, confmap.Validate(cfg))
	read, err := cfg.read()
	require.NoError(t, err)
	require.Len(t, read.jobs, 1)
	job := read.jobs[0]
	assert.Equal(t, "node", job.JobName)
	assert.Equal(t, promconfig.DefaultGlobalConfig.ScrapeInterval, job.ScrapeInterval)
	assert.Equal(t, promconfig.PrometheusText0_0_4, job.ScrapeFallbackProtocol)
	assert.Zero(t, job.BodySizeLimit, "it follows the memory")
}

func TestLoadEveryKey(t *testing.T) {
	cfg, err := load(t, "config.yaml", "fastprometheus/full")
	require.NoError(t, err)
	require.NoError(t, confmap.Validate(cfg))
	read, err := cfg.read()
	require.NoError(t, err)
	require.Len(t, read.jobs, 2)
	job := read.jobs[0]
	assert.Equal(t, promconfig.PrometheusText1_0_0, job.ScrapeFallbackProtocol)
	assert.EqualValues(t, 10<<20, job.BodySizeLimit)
	assert.Equal(t, commonconfig.Secret("secret"), job.HTTPClientConfig.BasicAuth.Password)
	assert.Equal(t, "$2", job.RelabelConfigs[0].Replacement)
	assert.Equal(t, "/probe", read.jobs[1].MetricsPath)
	assert.Equal(t, "east", cfg.Prometheus.external().Get("cluster"))

	server := api.NewDefaultConfig()
	server.Enabled, server.MaxConnections, server.Server.NetAddr.Endpoint = true, 16, "localhost:9091"
	cfg.Prometheus = Prometheus{}
	assert.Equal(t, &Config{
		JobAndInstance:           true,
		KeepJobAndInstance:       true,
		TargetAllocator:          configoptional.Default(allocator.NewDefaultConfig()),
		APIServer:                server,
		TrimMetricSuffixes:       true,
		ScrapeOnShutdown:         true,
		DiscoveryReloadOnStartup: true,
		InitialScrapeOffset:      2 * time.Second,
		Sharding:                 Sharding{Members: 3, Index: 1, Replication: 2},
		SeriesLimit:              100_000,
		Reuse:                    reuseNever,
		AlignScrapes:             true,
		MaxConcurrentScrapes:     500,
		MaxBodySize:              16 << 20,
		MaxPageMemory:            64 << 20,
		ReloadInterval:           time.Minute,
	}, cfg)
}

// Either one is enough.
func TestFilesAloneOrAllocatorAlone(t *testing.T) {
	for _, section := range []string{"fastprometheus/files", "fastprometheus/allocator"} {
		cfg, err := load(t, "config.yaml", section)
		require.NoError(t, err)
		require.NoError(t, confmap.Validate(cfg))
		assert.Equal(t, section == "fastprometheus/allocator", cfg.TargetAllocator.HasValue())
	}
}

func TestInvalidConfigs(t *testing.T) {
	for section, want := range map[string][]string{
		"nothing":                       {"`scrape_configs`"},
		"no_jobs":                       {"`scrape_configs`"},
		"unknown_key":                   {"surprise"},
		"unknown_section":               {"use_start_time_metric"},
		"unknown_job_key":               {"surprise"},
		"foreign_sections":              {"`alerting`", "`otlp`", "`remote_read`", "`remote_write`", "`rule_files`", "`runtime`", "`storage`", "`tracing`"},
		"target_allocator":              {"target_allocator", "`endpoint`", "`interval`", "`collector_id`"},
		"target_allocator_and_sharding": {"`sharding` must not be used with `target_allocator`"},
		"api_server":                    {"api_server", "pigeon"},
		"duplicate_jobs":                {"two jobs have the name"},
		"missing_credentials":           {"`authorization.credentials_file`", "/nowhere/token"},
		"missing_certificate":           {"`tls_config.cert_file`", "/nowhere/key"},
		"missing_discovery_certificate": {"`tls_config.cert_file`", "/nowhere/key"},
		"cert_without_key":              {"exactly one of key or key_file"},
		"discovery_without_pause":       {"`refresh_interval` of http_sd_configs must be positive", `job "b"`},
		"timeout_beyond_interval":       {"scrape timeout greater than scrape interval"},
		"numbers": {
			"`series_limit`", "`max_concurrent_scrapes`", "`max_body_size`", "`max_page_memory`", "`initial_scrape_offset`", "`reload_interval`",
			"`reuse`", "`sharding.index`", "`sharding.replication`",
		},
	} {
		t.Run(section, func(t *testing.T) {
			cfg, err := load(t, "invalid.yaml", section)
			if err == nil {
				err = confmap.Validate(cfg)
			}
			for _, words := range want {
				require.ErrorContains(t, err, words)
			}
		})
	}
}

// roleDiscovery is like aws_sd_configs: the settings of a role are in a configuration of their own, with their own
// default.
type roleDiscovery struct {
	*roleOfDiscovery

	RefreshInterval model.Duration
}

type roleOfDiscovery struct{ RefreshInterval model.Duration }

func (roleDiscovery) Name() string { return "role" }

func (roleDiscovery) NewDiscoverer(discovery.DiscovererOptions) (discovery.Discoverer, error) {
	return nil, errors.ErrUnsupported
}

func (roleDiscovery) NewDiscovererMetrics(prometheus.Registerer, discovery.RefreshMetricsInstantiator) discovery.DiscovererMetrics {
	return nil
}

func TestIntervalsOfRoles(t *testing.T) {
	check := func(own time.Duration, role *roleOfDiscovery) error {
		return checkIntervals(&promconfig.ScrapeConfig{ServiceDiscoveryConfigs: discovery.Configs{&roleDiscovery{role, model.Duration(own)}}})
	}
	minute := &roleOfDiscovery{model.Duration(time.Minute)}
	require.NoError(t, check(0, minute))
	require.NoError(t, check(time.Second, nil))
	for name, err := range map[string]error{
		"none":          check(0, nil),
		"negative":      check(-1, minute),
		"none for role": check(0, &roleOfDiscovery{}),
	} {
		assert.ErrorContains(t, err, "`refresh_interval` of role_sd_configs must be positive", name)
	}
}

func TestEmptyForeignSectionsAreNone(t *testing.T) {
	cfg, err := load(t, "invalid.yaml", "empty_foreign_sections")
	require.NoError(t, err)
	require.NoError(t, confmap.Validate(cfg))
}

// A dollar sign is doubled in Collector configurations.
func TestDollars(t *testing.T) {
	resolver, err := confmap.NewResolver(confmap.ResolverSettings{
		URIs:              []string{`yaml:config: {scrape_configs: [{job_name: a, relabel_configs: [{regex: "(a)$$", target_label: b, replacement: "$${1}-$$1"}]}]}`},
		ProviderFactories: []confmap.ProviderFactory{yamlprovider.NewFactory()},
	})
	require.NoError(t, err)
	conf, err := resolver.Resolve(t.Context())
	require.NoError(t, err)
	cfg := createDefaultConfig().(*Config)
	require.NoError(t, conf.Unmarshal(cfg))
	read, err := cfg.read()
	require.NoError(t, err)
	assert.Equal(t, "(a)$", read.jobs[0].RelabelConfigs[0].Regex.String())
	assert.Equal(t, "${1}-$1", read.jobs[0].RelabelConfigs[0].Replacement)
}

// Strings that look like other types stay strings.
func TestStringsStayStrings(t *testing.T) {
	conf := confmap.NewFromStringMap(map[string]any{"config": map[string]any{"scrape_configs": []any{map[string]any{
		"job_name":        "yes",
		"static_configs":  []any{map[string]any{"targets": []any{"a:1"}, "labels": map[string]any{"a": "0123", "b": "1e3", "c": "2001-02-03", "d": "off"}}},
		"relabel_configs": []any{map[string]any{"source_labels": []any{"a"}, "regex": "true", "target_label": "x"}},
	}}}})
	cfg := createDefaultConfig().(*Config)
	require.NoError(t, conf.Unmarshal(cfg))
	read, err := cfg.read()
	require.NoError(t, err)
	assert.Equal(t, "yes", read.jobs[0].JobName)
	assert.Equal(t, "true", read.jobs[0].RelabelConfigs[0].Regex.String())
	group := read.jobs[0].ServiceDiscoveryConfigs[0].(discovery.StaticConfig)[0]
	assert.Equal(t, model.LabelSet{"a": "0123", "b": "1e3", "c": "2001-02-03", "d": "off"}, group.Labels)
}

// A marshalled configuration has no secrets.
func TestMarshal(t *testing.T) {
	cfg, err := load(t, "config.yaml", "fastprometheus/full")
	require.NoError(t, err)
	conf := confmap.New()
	require.NoError(t, conf.Marshal(cfg))
	jobs := conf.Get("config::scrape_configs").([]any)
	require.Len(t, jobs, 1)
	auth := jobs[0].(map[string]any)["basic_auth"].(map[string]any)
	assert.Equal(t, "godwit", auth["username"])
	assert.Equal(t, "<secret>", auth["password"])
	assert.Equal(t, 3, conf.Get("sharding::members"))
}

// A section of Prometheus that the receiver does not support must be rejected instead of ignored.
func TestEverySectionOfPrometheusIsKnown(t *testing.T) {
	cfg, err := load(t, "invalid.yaml", "foreign_sections")
	require.NoError(t, err)
	err = confmap.Validate(cfg)
	for _, key := range keysOf(promconfig.Config{}) {
		if !slices.Contains(sections, key) {
			require.ErrorContains(t, err, "`"+key+"` is not supported")
		}
	}
}
