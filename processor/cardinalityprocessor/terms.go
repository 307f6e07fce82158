// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package cardinalityprocessor

import "github.com/godwit-otel/godwit/internal/inspect"

// terms are the numbers of a limit: for all who have none of their own, or for one tenant.
type terms struct {
	max       int   // series, 0: count only
	reserve   int   // of these, for series of collapsed labels
	labels    []int // values, by label
	newcomers pace
	points    pace
}

// termsOf returns the numbers for a tenant.
func (l *limit) termsOf(tenant string) *terms {
	if t, ok := l.tenants[tenant]; ok {
		return t
	}
	return &l.terms
}

// termsIn returns the numbers for a group that was described. A name that is cut short there is none of those that have their own.
func (l *limit) termsIn(group []inspect.Label) *terms {
	for i, from := range l.groupBy {
		if from.kind == fromTenant && i < len(group) {
			return l.termsOf(group[i].Value)
		}
	}
	return &l.terms
}

// override gives tenants numbers of their own. What is not given for one is as for all others.
func (l *limit) override(all map[string]OverrideConfig, pick func(*OverrideConfig) RuleOverrideConfig) {
	base := l.terms
	if others, ok := all[anyTenant]; ok {
		base = l.overridden(base, pick(&others))
	}
	for name, of := range all {
		by := pick(&of)
		if name == anyTenant || by.says() == 0 {
			continue
		}
		if l.tenants == nil {
			l.tenants = map[string]*terms{}
		}
		t := l.overridden(base, by)
		l.tenants[name] = &t
	}
	l.terms = base
}

func (l *limit) overridden(t terms, by RuleOverrideConfig) terms {
	if by.MaxSeries != nil {
		t.max = *by.MaxSeries
	}
	if by.MaxNewSeriesPerMinute != nil {
		t.newcomers = perMinute(*by.MaxNewSeriesPerMinute)
	}
	if by.MaxPointsPerSecond != nil {
		t.points = perMinute(*by.MaxPointsPerSecond * 60)
	}
	t.reserve = l.reserved(t.max)
	if len(by.LabelLimits) > 0 {
		labels := make([]int, len(t.labels))
		copy(labels, t.labels)
		for i := range l.labels {
			if n, ok := by.LabelLimits[l.labels[i].name]; ok {
				labels[i] = n
			}
		}
		t.labels = labels
	}
	return t
}

// ofRule picks what is said about a rule.
func ofRule(name string) func(*OverrideConfig) RuleOverrideConfig {
	return func(of *OverrideConfig) RuleOverrideConfig { return of.Rules[name] }
}

// ofTenant picks what is said about all series of a tenant.
func ofTenant(of *OverrideConfig) RuleOverrideConfig {
	return RuleOverrideConfig{
		MaxSeries: of.MaxSeries, MaxNewSeriesPerMinute: of.MaxNewSeriesPerMinute, MaxPointsPerSecond: of.MaxPointsPerSecond,
	}
}

// ofMetrics picks what is said about each metric of a tenant.
func ofMetrics(of *OverrideConfig) RuleOverrideConfig {
	return RuleOverrideConfig{MaxSeries: of.MaxSeriesPerMetric}
}

// ofNobody picks nothing: what memory has room for is no tenant's.
func ofNobody(*OverrideConfig) RuleOverrideConfig { return RuleOverrideConfig{} }

// anySays says whether any tenant has something of its own.
func anySays(all map[string]OverrideConfig, pick func(*OverrideConfig) RuleOverrideConfig) bool {
	for _, of := range all {
		if by := pick(&of); by.says() > 0 {
			return true
		}
	}
	return false
}

// says is how many numbers there are.
func (o *RuleOverrideConfig) says() (n int) {
	for _, number := range []*int{o.MaxSeries, o.MaxNewSeriesPerMinute, o.MaxPointsPerSecond} {
		if number != nil {
			n++
		}
	}
	return n + len(o.LabelLimits)
}
