// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/confmap"

	"github.com/godwit-otel/godwit/internal/confkeys"
)

// The modes.
const (
	ModeEnforce = "enforce"
	ModeDryRun  = "dry_run"

	MinIdleTimeout = 10 * time.Second
)

// Config is the configuration of the cardinality processor.
type Config struct {
	// Mode is enforce, or dry_run: decide and count, but change no data. Default enforce.
	Mode string `mapstructure:"mode"`

	// IdleTimeout is how long a series may be silent before its place is free again. Choose several times the longest
	// interval at which series report. At least 10s. Default 10m.
	IdleTimeout time.Duration `mapstructure:"idle_timeout"`

	// Memory limits the memory for series, groups and sums.
	Memory MemoryConfig `mapstructure:"memory"`

	// Tenant is where the tenant of a series is found. The same series of two tenants counts as two.
	Tenant TenantConfig `mapstructure:"tenant"`

	// Overrides are the limits of tenants, by their names; those of `"*"` apply to all others. Default none.
	Overrides map[string]OverrideConfig `mapstructure:"overrides"`

	// Exempt points pass whatever the limits are, and are not counted in them. Default none.
	Exempt []MatchConfig `mapstructure:"exempt"`

	// Defaults apply to every metric, besides the rules.
	Defaults DefaultsConfig `mapstructure:"defaults"`

	// Overflow is for all series made here: with collapsed labels, and overflow series.
	Overflow OverflowConfig `mapstructure:"overflow"`

	// Rules all apply to the points that they match: a new series needs a place in each. Default none.
	Rules []RuleConfig `mapstructure:"rules"`

	// RulesFile is a YAML file with `rules`, `exempt` and `overrides`, which must not be here then, and `defaults`, which replace
	// those here. It is applied when it changes, without losing state; a bad one changes nothing, but is an error at the start.
	// Default none.
	RulesFile string `mapstructure:"rules_file"`

	// RulesPollInterval is how often the file is checked for changes. At least 1s. Default 10s.
	RulesPollInterval time.Duration `mapstructure:"rules_poll_interval"`

	// Storage is a storage extension that keeps places and sums over restarts. Default none.
	Storage *component.ID `mapstructure:"storage"`

	// SnapshotInterval is how often places are saved, besides at shutdown. At least 1s. Default 1m.
	SnapshotInterval time.Duration `mapstructure:"snapshot_interval"`

	// Statistics show what the series consist of.
	Statistics StatisticsConfig `mapstructure:"statistics"`

	// Shared makes one limiter for all pipelines that the processor is in: they share its limits, and the memory for them. Series
	// are told apart by pipeline. Default false: each pipeline has its own limiter.
	Shared bool `mapstructure:"shared"`

	// Sharing is what the pipelines of a shared processor have in common. It is no key.
	Sharing any `mapstructure:"-"`

	// prevent unkeyed literal initialization
	_ struct{}
}

// StatisticsConfig is for what the console shows.
type StatisticsConfig struct {
	// Enabled says whether series are counted by metric and label, in at most 3 MiB. Default true.
	Enabled bool `mapstructure:"enabled"`

	// prevent unkeyed literal initialization
	_ struct{}
}

// MemoryConfig limits the memory for series, groups and sums.
type MemoryConfig struct {
	// MaxSeries is the limit on all series together. It takes 14 to 17 bytes for each. Default 2,000,000.
	MaxSeries int `mapstructure:"max_series"`

	// MaxGroups bounds the distinct combinations of groups that series are in, at most 1,000,000. It takes about 200
	// bytes for each, and 100 for each name of a group. New series that would need one more are over the limit. Default
	// 100,000.
	MaxGroups int `mapstructure:"max_groups"`

	// OverflowStateMiB limits the memory for overflow and collapsed series and the last values of their inputs, about
	// 4500 for each MiB. Default 64.
	OverflowStateMiB int `mapstructure:"overflow_state_mib"`

	// AggregateStateMiB limits the memory for series made by rules with `aggregate` and the last values of their inputs: about
	// 12,000 numbers for each MiB. A tenant has at most seven eighths of it. Series beyond it pass unchanged.
	// Default 64.
	AggregateStateMiB int `mapstructure:"aggregate_state_mib"`

	// prevent unkeyed literal initialization
	_ struct{}
}

// TenantConfig is where the tenant of a point is found.
type TenantConfig struct {
	// From lists places to look at, the first with a value wins: `metadata:KEY` of the client's request (the receiver
	// must keep it, with include_metadata) or `resource:KEY`. Default none: there are no tenants.
	From []string `mapstructure:"from"`

	// MetadataKeys lists metadata of the client's request that series made here are sent with, such as a header with
	// credentials. Clients that differ in it count as two tenants. Default none.
	MetadataKeys []string `mapstructure:"metadata_keys"`

	// prevent unkeyed literal initialization
	_ struct{}
}

// DefaultsConfig applies to every metric, besides the rules.
type DefaultsConfig struct {
	// MaxSeriesPerMetric is the limit on the series of one metric name, of each tenant, 0 for none. Default 0.
	MaxSeriesPerMetric int `mapstructure:"max_series_per_metric"`

	// Exceed is for the limits outside the rules, and for rules that do not set it.
	Exceed ExceedConfig `mapstructure:",squash"`

	// prevent unkeyed literal initialization
	_ struct{}
}

// OverflowConfig is for all series made here.
type OverflowConfig struct {
	// Interval is how often they are sent, at multiples of it. At least 1s. Default 1m.
	Interval time.Duration `mapstructure:"interval"`

	// KeepService says whether overflow series keep `service.namespace` and `service.name`, besides the labels of
	// `keep_labels`. Remote write turns them into `job`. Default true.
	KeepService bool `mapstructure:"keep_service"`

	// prevent unkeyed literal initialization
	_ struct{}
}

// Unmarshal reports unknown keys with suggestions.
func (c *Config) Unmarshal(conf *confmap.Conf) error {
	if conf.IsSet(goneInterning) {
		return errInterning
	}
	return confkeys.Unmarshal(conf, c)
}

const goneInterning = "interning"

var errInterning = errors.New("`interning` is gone, for it cost more than it saved: delete the key")

// Validate reports all faults of the configuration.
func (c *Config) Validate() error {
	var errs []error
	if c.Mode != ModeEnforce && c.Mode != ModeDryRun {
		errs = append(errs, fmt.Errorf("`mode` must be %s or %s, got %q", ModeEnforce, ModeDryRun, c.Mode))
	}
	if c.IdleTimeout < MinIdleTimeout {
		errs = append(errs, fmt.Errorf("`idle_timeout` must be at least %s, got %s", MinIdleTimeout, c.IdleTimeout))
	}
	if c.Memory.MaxSeries <= 0 {
		errs = append(errs, fmt.Errorf("`memory::max_series` must be positive, got %d", c.Memory.MaxSeries))
	}
	if c.Memory.MaxGroups <= 0 || c.Memory.MaxGroups > 1_000_000 {
		errs = append(errs, fmt.Errorf("`memory::max_groups` must be from 1 to 1000000, got %d", c.Memory.MaxGroups))
	}
	if c.Memory.OverflowStateMiB <= 0 {
		errs = append(errs, fmt.Errorf("`memory::overflow_state_mib` must be positive, got %d", c.Memory.OverflowStateMiB))
	}
	if c.Memory.AggregateStateMiB <= 0 {
		errs = append(errs, fmt.Errorf("`memory::aggregate_state_mib` must be positive, got %d", c.Memory.AggregateStateMiB))
	}
	if c.Overflow.Interval < time.Second {
		errs = append(errs, fmt.Errorf("`overflow::interval` must be at least 1s, got %s", c.Overflow.Interval))
	}
	if c.RulesPollInterval < time.Second {
		errs = append(errs, fmt.Errorf("`rules_poll_interval` must be at least 1s, got %s", c.RulesPollInterval))
	}
	if c.SnapshotInterval < time.Second {
		errs = append(errs, fmt.Errorf("`snapshot_interval` must be at least 1s, got %s", c.SnapshotInterval))
	}
	for _, from := range c.Tenant.From {
		kind, key, _ := strings.Cut(from, ":")
		if kind != byMetadata && kind != byResource || key == "" {
			errs = append(errs, fmt.Errorf("`tenant::from` must list metadata:KEY or resource:KEY, got %q", from))
		}
	}
	for _, key := range c.Tenant.MetadataKeys {
		if key == "" {
			errs = append(errs, errors.New("`tenant::metadata_keys` must not list an empty key"))
		}
	}
	if c.RulesFile != "" && len(c.Rules)+len(c.Exempt)+len(c.Overrides) > 0 {
		errs = append(errs, errors.New("`rules_file` replaces `rules`, `exempt` and `overrides`: write them there"))
	}
	return errors.Join(append(errs, c.ValidateLimits())...)
}

// ValidateLimits reports the faults of what a rules file may contain.
func (c *Config) ValidateLimits() error {
	var errs []error
	if c.Defaults.MaxSeriesPerMetric < 0 {
		errs = append(errs, fmt.Errorf("`defaults::max_series_per_metric` must not be negative, got %d", c.Defaults.MaxSeriesPerMetric))
	}
	if err := c.Defaults.Exceed.validate(c.Defaults.Exceed.SampleRate); err != nil {
		errs = append(errs, fmt.Errorf("`defaults`: %w", err))
	}
	if len(c.Defaults.Exceed.OnExceed) == 0 {
		errs = append(errs, errors.New("`defaults::on_exceed` must not be empty: write [drop] to drop"))
	}
	for i := range c.Exempt {
		if c.Exempt[i].empty() {
			errs = append(errs, fmt.Errorf("`exempt::%d` must say what it matches, or nothing would be limited", i))
		}
		errs = append(errs, c.Exempt[i].validate(fmt.Sprintf("exempt::%d", i), c))
	}
	if !c.Statistics.Enabled && c.collapsesWorst() {
		errs = append(errs, errors.New("`on_exceed` has collapse_worst, so `statistics::enabled` must be true"))
	}
	names := map[string]bool{RuleTotal: true, RuleDefaults: true, RuleTenant: len(c.Overrides) > 0}
	for i := range c.Rules {
		rule := &c.Rules[i]
		if rule.Name == "" {
			errs = append(errs, fmt.Errorf("`rules::%d::name` must be set", i))
		} else if names[rule.Name] {
			errs = append(errs, fmt.Errorf("`rules::%d::name` must be unique and not %s, %s or (with `overrides`) %s, got %q",
				i, RuleTotal, RuleDefaults, RuleTenant, rule.Name))
		}
		names[rule.Name] = true
		if err := rule.validate(c); err != nil {
			errs = append(errs, fmt.Errorf("`rules::%d` (%q): %w", i, rule.Name, err))
		}
	}
	return errors.Join(append(errs, c.validateOverrides())...)
}

func (c *Config) collapsesWorst() bool {
	return slices.Contains(c.Defaults.Exceed.OnExceed, NameCollapseWorst) ||
		slices.ContainsFunc(c.Rules, func(r RuleConfig) bool { return slices.Contains(r.Exceed.OnExceed, NameCollapseWorst) })
}
