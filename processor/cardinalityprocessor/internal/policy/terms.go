// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"github.com/godwit-otel/godwit/internal/inspect"
)

// Terms are the numbers of a limit: for all tenants without their own, or for one.
type Terms struct {
	Max       int   // series, 0: count only
	Reserve   int   // of these, reserved for collapsed labels
	Labels    []int // values, by label
	Newcomers Pace
	Points    Pace
}

// TermsOf returns the numbers for a tenant.
func (l *Limit) TermsOf(tenant string) *Terms {
	if t, ok := l.tenants[tenant]; ok {
		return t
	}
	return &l.Terms
}

// Overridden reports whether any tenant has numbers of its own.
func (l *Limit) Overridden() bool { return l.tenants != nil }

// TermsIn returns the numbers for a group as described. A name that was shortened there has none of its own.
func (l *Limit) TermsIn(group []inspect.Label) *Terms {
	for i, from := range l.GroupBy {
		if from.Kind == FromTenant && i < len(group) {
			return l.TermsOf(group[i].Value)
		}
	}
	return &l.Terms
}

// override sets numbers of tenants. Those that are not set are the same as for all others.
func (l *Limit) override(all map[string]OverrideConfig, pick func(*OverrideConfig) RuleOverrideConfig) {
	base := l.Terms
	if others, ok := all[anyTenant]; ok {
		base = l.overridden(base, pick(&others))
	}
	for name, of := range all {
		by := pick(&of)
		if name == anyTenant || by.says() == 0 {
			continue
		}
		if l.tenants == nil {
			l.tenants = map[string]*Terms{}
		}
		t := l.overridden(base, by)
		l.tenants[name] = &t
	}
	l.Terms = base
}

func (l *Limit) overridden(t Terms, by RuleOverrideConfig) Terms {
	if by.MaxSeries != nil {
		t.Max = *by.MaxSeries
	}
	if by.MaxNewSeriesPerMinute != nil {
		t.Newcomers = perMinute(*by.MaxNewSeriesPerMinute)
	}
	if by.MaxPointsPerSecond != nil {
		t.Points = perMinute(*by.MaxPointsPerSecond * 60)
	}
	t.Reserve = l.reserved(t.Max)
	if len(by.LabelLimits) > 0 {
		labels := make([]int, len(t.Labels))
		copy(labels, t.Labels)
		for i := range l.Labels {
			if n, ok := by.LabelLimits[l.Labels[i].Name]; ok {
				labels[i] = n
			}
		}
		t.Labels = labels
	}
	return t
}

// ofRule picks the overrides of a rule.
func ofRule(name string) func(*OverrideConfig) RuleOverrideConfig {
	return func(of *OverrideConfig) RuleOverrideConfig { return of.Rules[name] }
}

// ofTenant picks the overrides for all series of a tenant.
func ofTenant(of *OverrideConfig) RuleOverrideConfig {
	return RuleOverrideConfig{
		MaxSeries: of.MaxSeries, MaxNewSeriesPerMinute: of.MaxNewSeriesPerMinute, MaxPointsPerSecond: of.MaxPointsPerSecond,
	}
}

// ofMetrics picks the overrides for each metric of a tenant.
func ofMetrics(of *OverrideConfig) RuleOverrideConfig {
	return RuleOverrideConfig{MaxSeries: of.MaxSeriesPerMetric}
}

// ofNobody picks nothing: the total is no tenant's.
func ofNobody(*OverrideConfig) RuleOverrideConfig { return RuleOverrideConfig{} }

// anySays reports whether any tenant has overrides.
func anySays(all map[string]OverrideConfig, pick func(*OverrideConfig) RuleOverrideConfig) bool {
	for _, of := range all {
		if by := pick(&of); by.says() > 0 {
			return true
		}
	}
	return false
}

// says returns how many numbers are overridden.
func (o *RuleOverrideConfig) says() (n int) {
	for _, number := range []*int{o.MaxSeries, o.MaxNewSeriesPerMinute, o.MaxPointsPerSecond} {
		if number != nil {
			n++
		}
	}
	return n + len(o.LabelLimits)
}
