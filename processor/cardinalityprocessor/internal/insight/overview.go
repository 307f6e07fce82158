// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

// Package insight shows the state of a gate to the console.
package insight

import (
	"maps"
	"math"
	"slices"
	"sync"
	"time"

	"github.com/godwit-otel/godwit/internal/inorder"
	"github.com/godwit-otel/godwit/internal/inspect"
	"github.com/godwit-otel/godwit/processor/cardinalityprocessor/internal/gate"
	"github.com/godwit-otel/godwit/processor/cardinalityprocessor/internal/policy"
	"github.com/godwit-otel/godwit/processor/cardinalityprocessor/internal/series"
	"github.com/godwit-otel/godwit/processor/cardinalityprocessor/internal/stats"
)

// inspection answers queries. It reads counters, sketches and a sample, and blocks new series only for moments.
type inspection struct {
	g       *gate.Gate
	glimpse *glimpse
}

// New returns the inspection of a gate.
func New(g *gate.Gate) inspection { return inspection{g, &glimpse{}} }

const (
	maxShown   = 1000 // rows
	maxFullest = 10   // groups of a limit
	maxMade    = 50   // overflow series

	sketchError = 0.016 // error of Demand
)

// glimpse caches the last snapshot, since a view makes several queries at once, and several viewers the same ones.
type glimpse struct {
	mu       sync.Mutex
	at       time.Time
	snapshot stats.Snapshot
}

const glimpseLasts = time.Second

// snapshot is empty without statistics, and at most a second old. It must not be modified.
func (i inspection) snapshot() stats.Snapshot {
	if i.g.Book == nil {
		return stats.Snapshot{}
	}
	g := i.glimpse
	g.mu.Lock()
	defer g.mu.Unlock()
	if now := i.g.Now(); g.at.IsZero() || now.Sub(g.at) >= glimpseLasts {
		g.at, g.snapshot = now, i.g.Book.Snapshot(maxShown)
		fit(&g.snapshot, i.whole(&g.snapshot))
	}
	return g.snapshot
}

// Overview implements inspect.Cardinality.
func (i inspection) Overview() inspect.CardinalityOverview {
	g, s := i.g, i.snapshot()
	o := inspect.CardinalityOverview{
		Mode: g.Cfg.Mode, MaxSeries: int64(g.Cfg.Memory.MaxSeries),
		Metrics: int(s.Names + 0.5), NamesError: estimated(s.Names, stats.StandardError).Error,
		Admitted: g.Limiter.Admitted.Load(), Expired: g.Limiter.Expired.Load(),
		Memory:     g.Memory(),
		SampleSize: s.Sampled, SampleSince: s.Since, Events: g.Events.List(), IdleTimeout: g.Cfg.IdleTimeout,
	}
	o.TenantLabels = g.Cfg.Tenant.Keys()
	if fault := g.Rules.Fault.Load(); fault != nil {
		o.RulesFault = *fault
	}
	o.Series = i.Series()
	o.Limits, o.Groups = i.Limits()
	o.Rejected = i.rejected()
	for _, r := range s.Rejections {
		for _, e := range r.Examples {
			o.Rejects = append(o.Rejects, inspect.Reject{
				At: e.At, Rule: r.Rule, Reason: r.Reason, Action: e.Action, Tenant: e.Tenant, Metric: e.Metric, Labels: labelsOf(e),
			})
		}
	}
	inorder.Sort(o.Rejects, func(a, b inspect.Reject) int { return b.At.Compare(a.At) })
	o.Overflow = g.Overflow.List(maxMade)
	return o
}

// Series is the number of series.
func (i inspection) Series() (n int64) {
	i.g.Limiter.Groups.Observe(func(rule string, t series.Tally) {
		if rule == policy.RuleTotal {
			n = int64(t.Members)
		}
	})
	return n
}

// rejected is the sum over all limits: each series is rejected by one of them.
func (i inspection) rejected() inspect.Estimate {
	i.g.Rules.RLock()
	defer i.g.Rules.RUnlock()
	var sum, square float64
	for _, l := range i.g.Rules.Policy.Limits {
		n := l.Demand.Estimate()
		sum, square = sum+n, square+n*n
	}
	return inspect.Estimate{Value: math.Round(sum), Error: math.Round(sketchError * math.Sqrt(square))}
}

// Limits returns how full they are, and the number of groups.
func (i inspection) Limits() (all []inspect.Limit, groups int) {
	uses, groups := i.g.Limiter.Groups.Uses(maxFullest)
	i.g.Rules.RLock()
	defer i.g.Rules.RUnlock()
	for _, l := range i.g.Rules.Policy.Limits {
		row := inspect.Limit{
			Rule: l.Name, What: "series", Match: l.Match.String(), Max: int64(l.Max), Action: l.Exceed.String(),
			Points: l.Demand.Points.Load(), Rejected: estimated(l.Demand.Estimate(), sketchError),
		}
		if at := l.Demand.Last.Load(); at != 0 {
			row.Last = time.Unix(0, at)
		}
		if at := l.Alive.Matched.Load(); at != 0 {
			matched := time.Unix(0, at)
			row.Matched = &matched
		}
		for _, name := range slices.Sorted(maps.Keys(l.Owner)) {
			row.Owner = append(row.Owner, inspect.Label{Name: name, Value: l.Owner[name]})
		}
		all = append(all, filled(row, uses[series.Bounded{Rule: l.Name, Label: ""}], func(of *policy.Terms) int { return of.Max }, l))
		for i, label := range l.Labels {
			row := inspect.Limit{
				Rule: l.Name, What: "values of a label", Label: label.Name, Match: l.Match.String(), Max: int64(l.Terms.Labels[i]),
				Action: l.Exceed.String(),
			}
			all = append(all, filled(row, uses[series.Bounded{Rule: l.Name, Label: label.Name}], func(of *policy.Terms) int { return of.Labels[i] }, l))
		}
	}
	return all, groups
}

// filled sets how far a limit is used.
func filled(row inspect.Limit, u *series.Use, number func(of *policy.Terms) int, l *policy.Limit) inspect.Limit {
	if u == nil {
		return row
	}
	row.Groups, row.Fullest = u.Groups, u.Fullest
	for i := range row.Fullest {
		row.Fullest[i].Max = int64(number(l.TermsIn(row.Fullest[i].Group)))
	}
	row.Used = row.Fullest[0].Used
	return row
}

func labelsOf(e stats.Example) (all []inspect.Label) {
	for i := 0; i+1 < len(e.Labels); i += 2 {
		all = append(all, inspect.Label{Name: e.Labels[i], Value: e.Labels[i+1]})
	}
	return all
}

func estimated(n, relative float64) inspect.Estimate { return give(n, n*relative) }

// give rounds a number, and the larger of its errors: 0 means that it is exact.
func give(n, deviation float64) inspect.Estimate {
	if deviation >= 1 {
		deviation = math.Round(deviation)
	} else {
		deviation = math.Round(100*deviation) / 100
	}
	return inspect.Estimate{Value: math.Round(n), Error: deviation}
}

func exactly(n int64) inspect.Estimate { return inspect.Estimate{Value: float64(n)} }
