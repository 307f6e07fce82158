// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package cardinalityprocessor

import (
	"context"
	"errors"
	"strings"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
)

// How near each limit is, for an alert that comes before anything is rejected. Groups of a limit have room of their own, so it
// is the one with the least that counts.

// heading is what the limit of a group depends on beside the rule: whose values its members are, and whose series, if tenants
// have numbers of their own.
type heading struct{ label, tenant string }

// title notes that, once a group has members that tell. The registry's lock is held.
func (g *group) title(l *limit, label, tenant string) {
	if g.heading.Load() != nil || label == "" && l.tenants == nil {
		return
	}
	g.heading.Store(&heading{label, strings.Clone(tenant)})
}

// fullness is how many members a group has, and how many it may have.
type fullness struct{ used, max int }

// meet keeps the fuller one. Groups that are only counted have no limit.
func (f *fullness) meet(used, limit int) {
	if limit > 0 && (f.max == 0 || used*f.max > f.used*limit) {
		*f = fullness{used, limit}
	}
}

// fullest has the fullest groups of one limit: of series, and of the values of each label.
type fullest struct {
	series fullness
	labels []fullness
}

func newFullest(l *limit) *fullest {
	f := &fullest{series: fullness{max: l.max}, labels: make([]fullness, len(l.labels))}
	for i := range l.labels {
		f.labels[i].max = l.terms.labels[i]
	}
	return f
}

// fullest goes through all groups, and takes no lock. Groups may come and go meanwhile.
func (x *groupIndex) fullest(p *policy) map[*limit]*fullest {
	all := make(map[*limit]*fullest, len(p.limits))
	for _, l := range p.limits {
		all[l] = newFullest(l)
	}
	slots := x.slots.Load()
	if slots == nil {
		return all
	}
	rule, of, into := "", (*limit)(nil), (*fullest)(nil)
	for i := range *slots {
		g := (*slots)[i].Load()
		if g == nil || g == &removed || g.party != nil {
			continue
		}
		if g.rule != rule { // few rules have most of the groups
			rule, of = g.rule, p.named[g.rule]
			into = all[of]
		}
		if of != nil {
			into.count(of, g)
		}
	}
	return all
}

func (f *fullest) count(l *limit, g *group) {
	h, of := g.heading.Load(), &l.terms
	if h != nil {
		of = l.termsOf(h.tenant)
	}
	used := int(g.count.Load())
	switch {
	case !g.values:
		f.series.meet(used, of.max)
	case h != nil: // what was restored, and has not been seen since, does not say which label it is of
		for i := range l.labels {
			if l.labels[i].name == h.label {
				f.labels[i].meet(used, of.labels[i])
			}
		}
	}
}

// observeFullest shows limits and how far they are used.
func (p *cardinalityProcessor) observeFullest() error {
	observed := func(number func(fullness) int) metric.Int64Callback {
		return func(_ context.Context, o metric.Int64Observer) error {
			p.rules.RLock()
			policy := p.policy
			p.rules.RUnlock()
			for l, f := range p.limiter.groups.open.fullest(policy) {
				if f.series.max > 0 {
					o.Observe(int64(number(f.series)), l.measured)
				}
				for i, of := range f.labels {
					if of.max > 0 {
						o.Observe(int64(number(of)), l.labels[i].measured)
					}
				}
			}
			return nil
		}
	}
	return errors.Join(
		p.telemetry.RegisterProcessorCardinalityLimitCallback(observed(func(f fullness) int { return f.max })),
		p.telemetry.RegisterProcessorCardinalityFullestGroupCallback(observed(func(f fullness) int { return f.used })),
	)
}

// measuredLabel are the attributes of what is measured of the values of a label.
func (l *limit) measuredLabel(name string) metric.MeasurementOption {
	return metric.WithAttributeSet(attribute.NewSet(append(l.ownAttributes(), attribute.String(labelLabel, name))...))
}
