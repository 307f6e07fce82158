// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package series

import (
	"strings"

	"github.com/godwit-otel/godwit/processor/cardinalityprocessor/internal/policy"
)

// How full each limit is, for an alert before anything is rejected. Each group of a limit has room of its own, so the
// fullest one counts.

// heading is what the limit of a group depends on besides the rule: the label whose values its members are, and the
// tenant of its series, if tenants have numbers of their own.
type heading struct{ label, tenant string }

// title sets the heading, once a group has members that tell. The registry's lock is held.
func (g *Group) title(l *policy.Limit, label, tenant string) {
	if g.heading.Load() != nil || label == "" && !l.Overridden() {
		return
	}
	g.heading.Store(&heading{label, strings.Clone(tenant)})
}

// Fullness is how many members a group has, and may have.
type Fullness struct{ Used, Max int }

// meet keeps the fuller one. Groups that are only counted have no limit.
func (f *Fullness) meet(used, limit int) {
	if limit > 0 && (f.Max == 0 || used*f.Max > f.Used*limit) {
		*f = Fullness{used, limit}
	}
}

// Fullest has the fullest groups of one limit: of series, and of the values of each label.
type Fullest struct {
	Series Fullness
	Labels []Fullness
}

func newFullest(l *policy.Limit) *Fullest {
	f := &Fullest{Series: Fullness{Max: l.Max}, Labels: make([]Fullness, len(l.Labels))}
	for i := range l.Labels {
		f.Labels[i].Max = l.Terms.Labels[i]
	}
	return f
}

// Fullest goes through all groups without a lock. Groups may come and go meanwhile.
func (r *registry) Fullest(p *policy.Policy) map[*policy.Limit]*Fullest {
	all := make(map[*policy.Limit]*Fullest, len(p.Limits))
	for _, l := range p.Limits {
		all[l] = newFullest(l)
	}
	slots := r.open.Slots.Load()
	if slots == nil {
		return all
	}
	rule, of, into := "", (*policy.Limit)(nil), (*Fullest)(nil)
	for i := range *slots {
		g := (*slots)[i].Load()
		if g == nil || g == &removed || g.Party != nil {
			continue
		}
		if g.Rule != rule { // few rules have most of the groups
			rule, of = g.Rule, p.Named[g.Rule]
			into = all[of]
		}
		if of != nil {
			into.count(of, g)
		}
	}
	return all
}

func (f *Fullest) count(l *policy.Limit, g *Group) {
	h, of := g.heading.Load(), &l.Terms
	if h != nil {
		of = l.TermsOf(h.tenant)
	}
	used := int(g.Count.Load())
	switch {
	case !g.values:
		f.Series.meet(used, of.Max)
	case h != nil: // restored and not seen since, so its label is not known
		for i := range l.Labels {
			if l.Labels[i].Name == h.label {
				f.Labels[i].meet(used, of.Labels[i])
			}
		}
	}
}
