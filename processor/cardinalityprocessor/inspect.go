// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package cardinalityprocessor

import (
	"cmp"
	"maps"
	"math"
	"slices"
	"strings"
	"sync"
	"time"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pipeline"

	"github.com/godwit-otel/godwit/internal/inspect"
	"github.com/godwit-otel/godwit/processor/cardinalityprocessor/internal/plain"
	"github.com/godwit-otel/godwit/processor/cardinalityprocessor/internal/stats"
)

// source is what the processor shows to whoever looks.
func (p *cardinalityProcessor) source() inspect.Source {
	return inspect.Source{
		Kind: component.KindProcessor, ID: p.id, Signal: pipeline.SignalMetrics.String(),
		Flow: p.flow, Cardinality: inspection{p}, Tap: &p.tap,
	}
}

func (p *cardinalityProcessor) flow() inspect.Flow {
	in, passed, taken, made := p.pointsIn.Load(), p.pointsPassed.Load(), p.pointsTaken.Load(), p.pointsMade.Load()
	return inspect.Flow{In: in, Out: passed + made, Limited: max(0, in-passed-taken)} // what is aggregated is not lost to a limit
}

// inspection answers questions. It reads counters, sketches and a sample, and holds up new series for a moment at most.
type inspection struct{ p *cardinalityProcessor }

const (
	maxShown   = 1000 // rows
	maxFullest = 10   // groups of a limit
	maxMade    = 50   // overflow series

	sketchError = 0.016 // of demand
)

// glimpse is the last snapshot. A view asks several things at once, and all who look ask the same.
type glimpse struct {
	mu       sync.Mutex
	at       time.Time
	snapshot stats.Snapshot
}

const glimpseLasts = time.Second

// snapshot is empty without statistics, and at most a second old. It is only read.
func (i inspection) snapshot() stats.Snapshot {
	if i.p.book == nil {
		return stats.Snapshot{}
	}
	g := &i.p.glimpse
	g.mu.Lock()
	defer g.mu.Unlock()
	if now := i.p.now(); g.at.IsZero() || now.Sub(g.at) >= glimpseLasts {
		g.at, g.snapshot = now, i.p.book.Snapshot(maxShown)
	}
	return g.snapshot
}

// Overview implements inspect.Cardinality.
func (i inspection) Overview() inspect.CardinalityOverview {
	p, s := i.p, i.snapshot()
	o := inspect.CardinalityOverview{
		Mode: p.cfg.Mode, MaxSeries: int64(p.cfg.Memory.MaxSeries), Metrics: int(s.Names + 0.5),
		Admitted: p.limiter.admitted.Load(), Expired: p.limiter.expired.Load(),
		Memory:     p.memory(),
		SampleSize: s.Sampled, SampleSince: s.Since, Events: p.events.list(), IdleTimeout: p.cfg.IdleTimeout,
	}
	for _, from := range p.cfg.Tenant.From {
		if key, ok := strings.CutPrefix(from, byResource+":"); ok {
			o.TenantLabels = append(o.TenantLabels, key)
		}
	}
	if fault := p.rulesFault.Load(); fault != nil {
		o.RulesFault = *fault
	}
	o.Series = i.series()
	o.Limits, o.Groups = i.limits()
	o.Rejected = i.rejected()
	for _, r := range s.Rejections {
		for _, e := range r.Examples {
			o.Rejects = append(o.Rejects, inspect.Reject{
				At: e.At, Rule: r.Rule, Reason: r.Reason, Action: e.Action, Tenant: e.Tenant, Metric: e.Metric, Labels: labelsOf(e),
			})
		}
	}
	slices.SortStableFunc(o.Rejects, func(a, b inspect.Reject) int { return b.At.Compare(a.At) })
	o.Overflow = p.overflow.list(maxMade)
	return o
}

// series is how many there are.
func (i inspection) series() (n int64) {
	i.p.limiter.groups.observe(func(rule string, t tally) {
		if rule == ruleTotal {
			n = int64(t.members)
		}
	})
	return n
}

// rejected adds the limits up: each series is rejected by one of them.
func (i inspection) rejected() inspect.Estimate {
	i.p.rules.RLock()
	defer i.p.rules.RUnlock()
	var sum, square float64
	for _, l := range i.p.policy.limits {
		n := l.demand.estimate()
		sum, square = sum+n, square+n*n
	}
	return inspect.Estimate{Value: math.Round(sum), Error: math.Round(sketchError * math.Sqrt(square))}
}

// limits tells how full they are, and how many groups there are in all.
func (i inspection) limits() (all []inspect.Limit, groups int) {
	uses, groups := i.p.limiter.groups.uses(maxFullest)
	i.p.rules.RLock()
	defer i.p.rules.RUnlock()
	for _, l := range i.p.policy.limits {
		row := inspect.Limit{
			Rule: l.name, What: "series", Match: l.match.String(), Max: int64(l.max), Action: l.exceed.String(),
			Points: l.demand.points.Load(), Rejected: estimated(l.demand.estimate(), sketchError),
		}
		if at := l.demand.last.Load(); at != 0 {
			row.Last = time.Unix(0, at)
		}
		if at := l.alive.matched.Load(); at != 0 {
			matched := time.Unix(0, at)
			row.Matched = &matched
		}
		for _, name := range slices.Sorted(maps.Keys(l.owner)) {
			row.Owner = append(row.Owner, inspect.Label{Name: name, Value: l.owner[name]})
		}
		all = append(all, uses[bounded{l.name, ""}].in(row, func(of *terms) int { return of.max }, l))
		for i, label := range l.labels {
			row := inspect.Limit{
				Rule: l.name, What: "values of a label", Label: label.name, Match: l.match.String(), Max: int64(l.terms.labels[i]),
				Action: l.exceed.String(),
			}
			all = append(all, uses[bounded{l.name, label.name}].in(row, func(of *terms) int { return of.labels[i] }, l))
		}
	}
	return all, groups
}

// in fills in how far a limit is used.
func (u *use) in(row inspect.Limit, number func(of *terms) int, l *limit) inspect.Limit {
	if u == nil {
		return row
	}
	row.Groups, row.Fullest = u.groups, u.fullest
	for i := range row.Fullest {
		row.Fullest[i].Max = int64(number(l.termsIn(row.Fullest[i].Group)))
	}
	row.Used = row.Fullest[0].Used
	return row
}

func (e *exceed) String() string {
	var names []string
	for _, a := range e.actions {
		names = append(names, actionNames[a])
	}
	return strings.Join(names, ", ")
}

func (m *matcher) String() string {
	parts := []string{cmp.Or(m.metric.text, "*")}
	for key, p := range map[string]*pattern{"scope": &m.scope, byTenant: &m.tenant} {
		if p.text != "" {
			parts = append(parts, key+"="+p.text)
		}
	}
	slices.Sort(parts[1:])
	for _, w := range slices.Concat(m.resource, m.attributes) {
		parts = append(parts, w.key+"="+w.pattern.text)
	}
	return strings.Join(parts, " ")
}

func labelsOf(e stats.Example) (all []inspect.Label) {
	for i := 0; i+1 < len(e.Labels); i += 2 {
		all = append(all, inspect.Label{Name: e.Labels[i], Value: e.Labels[i+1]})
	}
	return all
}

func estimated(n, relative float64) inspect.Estimate {
	return inspect.Estimate{Value: math.Round(n), Error: math.Round(n * relative)}
}

func exactly(n int64) inspect.Estimate { return inspect.Estimate{Value: float64(n)} }

// list returns the outputs with the most members.
func (o *overflow) list(limit int) (all []inspect.Overflow) {
	o.flushing.Lock()
	defer o.flushing.Unlock()
	most := slices.DeleteFunc(o.ordered(), func(out *output) bool { return !out.begun.Load() })
	o.sumUp(most, false)
	slices.SortStableFunc(most, func(a, b *output) int { return b.sum.members - a.sum.members })
	for _, out := range most[:min(limit, len(most))] {
		row := inspect.Overflow{Metric: out.metric.Name(), Rule: out.rule, Members: out.sum.members}
		resource := out.data.ResourceMetrics().At(0).Resource().Attributes()
		for _, m := range []pcommon.Map{resource, attributesAt(out.metric, 0)} {
			for name, value := range m.All() {
				row.Labels = append(row.Labels, inspect.Label{Name: name, Value: plain.Text(value)})
			}
		}
		all = append(all, row)
	}
	return all
}

// events are the last things that happened once.
type events struct {
	mu   sync.Mutex
	last []inspect.Event
}

const maxEvents = 100

func (e *events) add(at time.Time, kind, rule, text string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.last = slices.Insert(e.last, 0, inspect.Event{At: at, Kind: kind, Rule: rule, Text: text})
	e.last = e.last[:min(len(e.last), maxEvents)]
}

func (e *events) list() []inspect.Event {
	e.mu.Lock()
	defer e.mu.Unlock()
	return slices.Clone(e.last)
}
