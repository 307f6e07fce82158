// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package cardinalityprocessor

import (
	"math"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/confmap"
	"go.opentelemetry.io/collector/confmap/confmaptest"

	"github.com/godwit-otel/godwit/processor/cardinalityprocessor/internal/metadata"
)

func TestConfig(t *testing.T) {
	conf, err := confmaptest.LoadConf(filepath.Join("testdata", "config.yaml"))
	require.NoError(t, err)
	load := func(name string) *Config {
		sub, err := conf.Sub(component.NewIDWithName(metadata.Type, name).String())
		require.NoError(t, err)
		cfg := defaultConfig()
		require.NoError(t, sub.Unmarshal(cfg))
		return cfg
	}
	require.Equal(t, &Config{
		Mode:              "enforce",
		IdleTimeout:       10 * time.Minute,
		Memory:            MemoryConfig{MaxSeries: 2_000_000, MaxGroups: 100_000, OverflowStateMiB: 64, AggregateStateMiB: 64},
		Defaults:          DefaultsConfig{Exceed: ExceedConfig{OnExceed: []string{"collapse", "overflow"}, Gauge: "drop"}},
		Overflow:          OverflowConfig{Interval: time.Minute},
		RulesPollInterval: 10 * time.Second,
		SnapshotInterval:  time.Minute,
		Statistics:        StatisticsConfig{Enabled: true},
		Interning:         InterningConfig{MaxMiB: 16},
	}, load("defaults"))
	require.NoError(t, load("defaults").Validate())

	store := component.MustNewIDWithName("file_storage", "cardinality")
	want := &Config{
		Mode:        "dry_run",
		IdleTimeout: 20 * time.Minute,
		Memory:      MemoryConfig{MaxSeries: 500_000, MaxGroups: 20_000, OverflowStateMiB: 32, AggregateStateMiB: 16},
		Tenant:      TenantConfig{From: []string{"metadata:x-scope-orgid", "resource:tenant.id"}},
		Exempt: []MatchConfig{
			{Metric: "otelcol_*"},
			{Resource: map[string]string{"deployment.environment.name": "prod"}, Attributes: map[string]string{"critical": "*"}},
		},
		Defaults: DefaultsConfig{
			MaxSeriesPerMetric: 10_000,
			Exceed:             ExceedConfig{OnExceed: []string{"overflow"}, KeepLabels: []string{"service.name"}, SampleRate: 0.1, Gauge: "last"},
		},
		Overflow: OverflowConfig{Interval: 30 * time.Second},
		Rules: []RuleConfig{{
			Name: "http",
			Match: MatchConfig{
				Metric:     "http.server.*",
				Resource:   map[string]string{"deployment.environment.name": "prod"},
				Attributes: map[string]string{"http.request.method": "*"},
			},
			Owner:     map[string]string{"team": "web"},
			GroupBy:   []string{"service.name", "tenant", "metric", "resource:k8s.namespace.name", "attribute:http.route"},
			MaxSeries: 5000,
			Adaptive: AdaptiveConfig{
				ShareBy:  []string{"service.namespace"},
				Priority: PriorityConfig{By: "service.tier", Order: []string{"critical", "standard", "batch"}},
			},
			MaxNewSeriesPerMinute: 1000,
			MaxPointsPerSecond:    2000,
			LabelLimits:           map[string]int{"user.id": 0, "url.path": 200},
			Aggregate: &AggregateConfig{
				Without: []string{"resource:k8s.pod.name", "attribute:server.port", "client.address"}, Interval: 30 * time.Second,
				Outputs: []string{"sum", "max"}, KeepInput: true,
			},
			Exceed: ExceedConfig{
				OnExceed:   []string{"collapse", "overflow", "sample", "drop"},
				KeepLabels: []string{"http.response.status_code"}, SampleRate: 0.01, Gauge: "max",
			},
		}},
		RulesFile:         "/etc/godwit/limits.yaml",
		RulesPollInterval: 5 * time.Second,
		Storage:           &store,
		SnapshotInterval:  2 * time.Minute,
		Interning:         InterningConfig{Enabled: true, MaxMiB: 32, Exclude: []string{"trace.id"}},
	}
	require.Equal(t, want, load(""))
	want.RulesFile = ""
	require.NoError(t, want.Validate())
}

func TestConfigFaultsAreAllNamed(t *testing.T) {
	cfg := &Config{
		Mode:     "on",
		Tenant:   TenantConfig{From: []string{"header:x"}},
		Exempt:   []MatchConfig{{}},
		Defaults: DefaultsConfig{MaxSeriesPerMetric: -1, Exceed: ExceedConfig{SampleRate: math.NaN()}},
		Rules:    []RuleConfig{{}, {Name: "total"}, {Name: "a"}, {Name: "a"}},
	}
	err := cfg.Validate()
	for _, key := range []string{
		"`mode`", "`idle_timeout`", "`memory::max_series`", "`memory::max_groups`", "`memory::overflow_state_mib`",
		"`memory::aggregate_state_mib`",
		"`overflow::interval`", "`tenant::from`", "`exempt::0`", "`defaults::max_series_per_metric`", "`defaults`: `sample_rate`",
		"`defaults::on_exceed`", "`rules::0::name`", "`rules::1::name`", "`rules::3::name`", "`rules_poll_interval`", "`snapshot_interval`",
	} {
		require.ErrorContains(t, err, key)
	}
}

func TestRuleFaultsAreNamed(t *testing.T) {
	f := func(key string, change func(*RuleConfig)) {
		t.Helper()
		cfg := defaultConfig()
		cfg.Rules = []RuleConfig{{Name: "r"}}
		require.NoError(t, cfg.Validate())
		change(&cfg.Rules[0])
		require.ErrorContains(t, cfg.Validate(), key)
	}
	f("`max_series`", func(r *RuleConfig) { r.MaxSeries = -1 })
	f("`max_new_series_per_minute`", func(r *RuleConfig) { r.MaxNewSeriesPerMinute = -1 })
	f("`max_points_per_second`", func(r *RuleConfig) { r.MaxPointsPerSecond = -1 })
	f("`label_limits`", func(r *RuleConfig) { r.LabelLimits = map[string]int{"x": -1} })
	for _, a := range []struct {
		key string
		cfg AggregateConfig
	}{
		{"either `by` or `without`", AggregateConfig{}},
		{"either `by` or `without`", AggregateConfig{By: []string{"a"}, Without: []string{"b"}}},
		{"`aggregate::without` must name", AggregateConfig{Without: []string{}}},
		{"`aggregate::by` must name an attribute", AggregateConfig{By: []string{"resource:"}}},
		{"`aggregate::by` cannot have metric", AggregateConfig{By: []string{"metric"}}},
		{"`aggregate::without` cannot have tenant", AggregateConfig{Without: []string{"tenant"}}},
		{"`aggregate::by` cannot have \"metadata:org\"", AggregateConfig{By: []string{"metadata:org"}}},
		{"`aggregate::by` must not list \"a\" twice", AggregateConfig{By: []string{"a", "a"}}},
		{"`aggregate::interval`", AggregateConfig{By: []string{}, Interval: time.Millisecond}},
		{"`aggregate::interval`", AggregateConfig{By: []string{}, Interval: time.Hour}},
		{"`aggregate::outputs`", AggregateConfig{By: []string{}, Outputs: []string{"total"}}},
		{"`aggregate::outputs`", AggregateConfig{By: []string{}, Outputs: []string{"sum", "sum"}}},
	} {
		f(a.key, func(r *RuleConfig) { r.Aggregate = &a.cfg })
	}
	f("`label_limits`", func(r *RuleConfig) { r.LabelLimits = map[string]int{"x": 1}; r.GroupBy = []string{"attribute:x"} })
	f("`owner`", func(r *RuleConfig) { r.Owner = map[string]string{"": "web"} })
	f("`owner`", func(r *RuleConfig) { r.Owner = map[string]string{"reason": "web"} })
	f("`group_by`", func(r *RuleConfig) { r.GroupBy = []string{""} })
	f("`group_by`", func(r *RuleConfig) { r.GroupBy = []string{"resource:"} })
	f("`tenant::from`", func(r *RuleConfig) { r.GroupBy = []string{"metadata:x"} })
	f("`tenant::from`", func(r *RuleConfig) { r.GroupBy = []string{"tenant"} })
	f("`on_exceed`", func(r *RuleConfig) { r.Exceed.OnExceed = []string{"shed"} })
	f("`on_exceed`", func(r *RuleConfig) { r.Exceed.OnExceed = []string{"wait"} })
	f("set `max_series`", func(r *RuleConfig) { r.Adaptive.ShareBy = []string{"x"} })
	f("`adaptive::share_by`", func(r *RuleConfig) { r.MaxSeries, r.Adaptive.ShareBy = 1, []string{"attribute:"} })
	f("set `adaptive::share_by`", func(r *RuleConfig) { r.Adaptive.Priority = PriorityConfig{By: "x", Order: []string{"a"}} })
	f("`adaptive::priority::by`", func(r *RuleConfig) { r.Adaptive.Priority.Order = []string{"a"} })
	f("`adaptive::priority::order`", func(r *RuleConfig) { r.Adaptive.Priority.By = "x" })
	f("`adaptive::priority::order`", func(r *RuleConfig) { r.Adaptive.Priority = PriorityConfig{By: "x", Order: make([]string, 9)} })
	f("`sample_rate`", func(r *RuleConfig) { r.Exceed.OnExceed = []string{"sample"} })
	f("`sample_rate`", func(r *RuleConfig) { r.Exceed.SampleRate = 1 })
	f("`gauge`", func(r *RuleConfig) { r.Exceed.Gauge = "sum" })
}

func TestCollapseWorstNeedsStatistics(t *testing.T) {
	for _, change := range []func(*Config){
		func(c *Config) { c.Defaults.Exceed.OnExceed = []string{nameCollapseWorst} },
		func(c *Config) {
			c.Rules = []RuleConfig{{Name: "r", Exceed: ExceedConfig{OnExceed: []string{nameOverflow, nameCollapseWorst}}}}
		},
	} {
		cfg := defaultConfig()
		change(cfg)
		require.NoError(t, cfg.Validate())
		cfg.Statistics.Enabled = false
		require.ErrorContains(t, cfg.Validate(), "`statistics::enabled`")
	}
}

func TestRulesBelongEitherHereOrInTheFile(t *testing.T) {
	cfg := defaultConfig()
	cfg.RulesFile = "rules.yaml"
	cfg.Rules = []RuleConfig{{Name: "r"}}
	require.ErrorContains(t, cfg.Validate(), "`rules_file`")
}

// An empty list is a list.
func TestNoAttributeMayStay(t *testing.T) {
	cfg := defaultConfig()
	require.NoError(t, confmap.NewFromStringMap(map[string]any{
		"rules": []any{map[string]any{"name": "a", "aggregate": map[string]any{"by": []any{}}}},
	}).Unmarshal(cfg))
	require.NoError(t, cfg.Validate())
	require.NotNil(t, cfg.Rules[0].Aggregate.By)
}
