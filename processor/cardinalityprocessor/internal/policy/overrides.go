// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"errors"
	"fmt"
	"maps"
	"slices"
)

// OverrideConfig are the limits of one tenant. What is not given is as for `"*"`, or else as for all.
type OverrideConfig struct {
	// MaxSeries is the limit on all series of the tenant, 0 for none. Default none.
	MaxSeries *int `mapstructure:"max_series"`

	// MaxSeriesPerMetric replaces that of `defaults`.
	MaxSeriesPerMetric *int `mapstructure:"max_series_per_metric"`

	// MaxNewSeriesPerMinute is the limit on the series of the tenant that get a place within a minute, 0 for none. Default none.
	MaxNewSeriesPerMinute *int `mapstructure:"max_new_series_per_minute"`

	// MaxPointsPerSecond is the limit on the points of the tenant's admitted series, over a minute, 0 for none. Default none.
	MaxPointsPerSecond *int `mapstructure:"max_points_per_second"`

	// Rules are the limits of rules that group by tenant, by their names.
	Rules map[string]RuleOverrideConfig `mapstructure:"rules"`

	// prevent unkeyed literal initialization
	_ struct{}
}

// RuleOverrideConfig are the limits of a rule for one tenant. What is not given is the rule's.
type RuleOverrideConfig struct {
	// MaxSeries is as in the rule.
	MaxSeries *int `mapstructure:"max_series"`

	// MaxNewSeriesPerMinute is as in the rule.
	MaxNewSeriesPerMinute *int `mapstructure:"max_new_series_per_minute"`

	// MaxPointsPerSecond is as in the rule.
	MaxPointsPerSecond *int `mapstructure:"max_points_per_second"`

	// LabelLimits replaces limits of labels that the rule limits.
	LabelLimits map[string]int `mapstructure:"label_limits"`

	// prevent unkeyed literal initialization
	_ struct{}
}

// anyTenant stands for all that have no line of their own.
const anyTenant = "*"

func (c *Config) validateOverrides() error {
	var errs []error
	if len(c.Overrides) > 0 && len(c.Tenant.From) == 0 {
		errs = append(errs, errors.New("`overrides` needs `tenant::from`, which says where tenants are found"))
	}
	for _, tenant := range slices.Sorted(maps.Keys(c.Overrides)) {
		of := c.Overrides[tenant]
		at := "overrides::" + tenant
		if tenant == "" {
			errs = append(errs, fmt.Errorf("`overrides` must name tenants: write %q for all that have none of their own", anyTenant))
		}
		errs = append(errs, notNegative(at, map[string]*int{
			keyMaxSeries: of.MaxSeries, "max_series_per_metric": of.MaxSeriesPerMetric,
			"max_new_series_per_minute": of.MaxNewSeriesPerMinute, "max_points_per_second": of.MaxPointsPerSecond,
		}))
		for _, name := range slices.Sorted(maps.Keys(of.Rules)) {
			rule := of.Rules[name]
			errs = append(errs, rule.validate(at+"::rules::"+name, name, c))
		}
	}
	return errors.Join(errs...)
}

func (o *RuleOverrideConfig) validate(at, name string, c *Config) error {
	i := slices.IndexFunc(c.Rules, func(r RuleConfig) bool { return r.Name == name })
	if i < 0 {
		return fmt.Errorf("`%s` must name a rule, and there is none of this name in `rules`", at)
	}
	rule := &c.Rules[i]
	if !slices.Contains(rule.GroupBy, byTenant) {
		return fmt.Errorf("`%s` is for a rule whose groups are of several tenants: put %s into its `group_by`", at, byTenant)
	}
	errs := []error{notNegative(at, map[string]*int{
		keyMaxSeries: o.MaxSeries, "max_new_series_per_minute": o.MaxNewSeriesPerMinute, "max_points_per_second": o.MaxPointsPerSecond,
	})}
	if o.MaxSeries != nil && *o.MaxSeries == 0 && len(rule.Adaptive.ShareBy) > 0 {
		errs = append(errs, fmt.Errorf("`%s::max_series` must be positive: the rule shares it, by `adaptive::share_by`", at))
	}
	for _, label := range slices.Sorted(maps.Keys(o.LabelLimits)) {
		if _, ok := rule.LabelLimits[label]; !ok {
			errs = append(errs, fmt.Errorf("`%s::label_limits` must name labels that the rule limits, got %q", at, label))
		}
		if o.LabelLimits[label] < 0 {
			errs = append(errs, fmt.Errorf("`%s::label_limits::%s` must not be negative, got %d", at, label, o.LabelLimits[label]))
		}
	}
	return errors.Join(errs...)
}

func notNegative(at string, numbers map[string]*int) error {
	var errs []error
	for _, key := range slices.Sorted(maps.Keys(numbers)) {
		if n := numbers[key]; n != nil && *n < 0 {
			errs = append(errs, fmt.Errorf("`%s::%s` must not be negative, got %d", at, key, *n))
		}
	}
	return errors.Join(errs...)
}
