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
	"github.com/godwit-otel/godwit/processor/cardinalityprocessor/internal/policy"
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
		Overflow:          OverflowConfig{Interval: time.Minute, KeepService: true},
		RulesPollInterval: 10 * time.Second,
		SnapshotInterval:  time.Minute,
		Statistics:        StatisticsConfig{Enabled: true},

		Sharing: &sharing{},
	}, load("defaults"))
	require.NoError(t, load("defaults").Validate())

	store := component.MustNewIDWithName("file_storage", "cardinality")
	want := &Config{
		Mode:        "dry_run",
		IdleTimeout: 20 * time.Minute,
		Memory:      MemoryConfig{MaxSeries: 500_000, MaxGroups: 20_000, OverflowStateMiB: 32, AggregateStateMiB: 16},
		Tenant:      TenantConfig{From: []string{"metadata:x-scope-orgid", "resource:tenant.id"}, MetadataKeys: []string{"authorization"}},
		Overrides: map[string]OverrideConfig{
			"*": {MaxSeries: number(20_000), MaxSeriesPerMetric: number(2000)},
			"team-a": {
				MaxSeries: number(100_000), MaxSeriesPerMetric: number(0), MaxNewSeriesPerMinute: number(5000),
				MaxPointsPerSecond: number(50_000),
				Rules: map[string]RuleOverrideConfig{"http": {
					MaxSeries: number(10_000), MaxNewSeriesPerMinute: number(2000), MaxPointsPerSecond: number(4000),
					LabelLimits: map[string]int{"url.path": 500},
				}},
			},
		},
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
				Scope:      "not:regex:.*[.]experimental",
				Tenant:     "team-*",
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
			LabelLimits:           map[string]int{"user.id": 0, "url.path": 200, "resource:k8s.pod.uid": 100},
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
		Shared:            true,

		Sharing: &sharing{},
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
	f("`label_limits`", func(r *RuleConfig) {
		r.LabelLimits = map[string]int{"x": 1}
		r.GroupBy = []string{"attribute:x"}
	})
	one := defaultConfig()
	one.Rules = []RuleConfig{{Name: "r", LabelLimits: map[string]int{"resource:x": 1, "attribute:x": 2}, GroupBy: []string{"attribute:y"}}}
	require.NoError(t, one.Validate())
	f("`label_limits` must name", func(r *RuleConfig) { r.LabelLimits = map[string]int{"resource:": 1} })
	f("`label_limits` must not limit what `group_by`", func(r *RuleConfig) {
		r.LabelLimits, r.GroupBy = map[string]int{"resource:x": 1}, []string{"x"}
	})
	f("`label_limits` must limit an attribute once", func(r *RuleConfig) { r.LabelLimits = map[string]int{"resource:x": 1, "x": 2} })
	f("`match::metric` must be a regular expression", func(r *RuleConfig) { r.Match.Metric = "not:regex:(" })
	f("`match::scope` must be a regular expression", func(r *RuleConfig) { r.Match.Scope = "regex:a{2,1}" })
	f("`match::resource::x` must be", func(r *RuleConfig) { r.Match.Resource = map[string]string{"x": "regex:["} })
	f("`match::attributes::x` must begin", func(r *RuleConfig) { r.Match.Attributes = map[string]string{"x": "regex:not:a"} })
	f("`match::tenant` needs `tenant::from`", func(r *RuleConfig) { r.Match.Tenant = "a" })
	f("`owner`", func(r *RuleConfig) { r.Owner = map[string]string{"": "web"} })
	f("`owner`", func(r *RuleConfig) { r.Owner = map[string]string{"reason": "web"} })
	f("`owner`", func(r *RuleConfig) { r.Owner = map[string]string{"pipeline": "web"} })
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
	f("`adaptive::priority::order`", func(r *RuleConfig) {
		r.Adaptive.Priority = PriorityConfig{By: "x", Order: make([]string, 9)}
	})
	f("`sample_rate`", func(r *RuleConfig) { r.Exceed.OnExceed = []string{"sample"} })
	f("`sample_rate`", func(r *RuleConfig) { r.Exceed.SampleRate = 1 })
	f("`gauge`", func(r *RuleConfig) { r.Exceed.Gauge = "sum" })
}

func TestCollapseWorstNeedsStatistics(t *testing.T) {
	for _, change := range []func(*Config){
		func(c *Config) { c.Defaults.Exceed.OnExceed = []string{policy.NameCollapseWorst} },
		func(c *Config) {
			c.Rules = []RuleConfig{{Name: "r", Exceed: ExceedConfig{OnExceed: []string{policy.NameOverflow, policy.NameCollapseWorst}}}}
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

// An empty list differs from no list.
func TestNoAttributeMayStay(t *testing.T) {
	cfg := defaultConfig()
	require.NoError(t, confmap.NewFromStringMap(map[string]any{
		"rules": []any{map[string]any{"name": "a", "aggregate": map[string]any{"by": []any{}}}},
	}).Unmarshal(cfg))
	require.NoError(t, cfg.Validate())
	require.NotNil(t, cfg.Rules[0].Aggregate.By)
}

func number(n int) *int { return &n }

func TestOverrideFaultsAreNamed(t *testing.T) {
	f := func(key string, change func(*Config)) {
		t.Helper()
		cfg := defaultConfig()
		cfg.Tenant.From = []string{"resource:tenant"}
		cfg.Rules = []RuleConfig{
			{Name: "all", MaxSeries: 1},
			{Name: "r", MaxSeries: 1, GroupBy: []string{"tenant"}, LabelLimits: map[string]int{"x": 1}, Adaptive: AdaptiveConfig{ShareBy: []string{"y"}}},
		}
		cfg.Overrides = map[string]OverrideConfig{"a": {
			MaxSeries: number(0), Rules: map[string]RuleOverrideConfig{"r": {MaxSeries: number(1), LabelLimits: map[string]int{"x": 0}}},
		}}
		require.NoError(t, cfg.Validate())
		change(cfg)
		require.ErrorContains(t, cfg.Validate(), key)
	}
	of := func(name string, rule RuleOverrideConfig) func(*Config) {
		return func(c *Config) { c.Overrides["a"].Rules[name] = rule }
	}
	f("`overrides` needs `tenant::from`", func(c *Config) { c.Tenant.From = nil })
	f("`overrides` must name tenants", func(c *Config) { c.Overrides[""] = OverrideConfig{} })
	f("`overrides::b::max_series` must not be negative", func(c *Config) { c.Overrides["b"] = OverrideConfig{MaxSeries: number(-1)} })
	f("`overrides::b::max_series_per_metric`", func(c *Config) { c.Overrides["b"] = OverrideConfig{MaxSeriesPerMetric: number(-1)} })
	f("`overrides::b::max_new_series_per_minute`", func(c *Config) { c.Overrides["b"] = OverrideConfig{MaxNewSeriesPerMinute: number(-1)} })
	f("`overrides::b::max_points_per_second`", func(c *Config) { c.Overrides["b"] = OverrideConfig{MaxPointsPerSecond: number(-1)} })
	f("`overrides::a::rules::none` must name a rule", of("none", RuleOverrideConfig{}))
	f("put tenant into its `group_by`", of("all", RuleOverrideConfig{MaxSeries: number(2)}))
	f("`overrides::a::rules::r::max_series` must not be negative", of("r", RuleOverrideConfig{MaxSeries: number(-2)}))
	f("`adaptive::share_by`", of("r", RuleOverrideConfig{MaxSeries: number(0)}))
	f("must name labels that the rule limits", of("r", RuleOverrideConfig{LabelLimits: map[string]int{"z": 1}}))
	f("`overrides::a::rules::r::label_limits::x`", of("r", RuleOverrideConfig{LabelLimits: map[string]int{"x": -1}}))
	f("(with `overrides`) tenant", func(c *Config) { c.Rules[0].Name = "tenant" })
	f("`rules_file` replaces", func(c *Config) { c.Rules, c.RulesFile = nil, "rules.yaml" })
	f("`tenant::metadata_keys`", func(c *Config) { c.Tenant.MetadataKeys = []string{""} })
	f("where `tenant::from` finds tenants", func(c *Config) { c.Rules[0].LabelLimits = map[string]int{"tenant": 1} })
}
