// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package cardinalityprocessor

import (
	"cmp"
	"maps"
	"runtime"
	"slices"
	"strings"
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/godwit-otel/godwit/internal/inspect"
	"github.com/godwit-otel/godwit/processor/cardinalityprocessor/internal/plain"
	"github.com/godwit-otel/godwit/processor/cardinalityprocessor/internal/stats"
)

// Statistics are told of a series when it is new, and once in idleEpochs epochs from then on, at a time that depends on
// its fingerprint: so they know what is alive, and known series pass without them nearly always.

// due says whether a series that was last seen so many epochs ago is to be told of.
func (l *limiter) due(fp uint64, since uint32, now moment) bool {
	if !l.watched || since == 0 {
		return false
	}
	epoch, shift := now.epochOf(fp), uint32(fp%idleEpochs)
	return (epoch+shift)/idleEpochs != (epoch-since+shift)/idleEpochs
}

// about is what people call a group, and how many series it was given and has lost lately.
type about struct {
	label  string // whose values its members are, "" of series
	group  []inspect.Label
	births [2]int // in this window, and in the one before
	gone   [2]int
	window uint32
}

// describe notes what the groups of a series are called. The registry's lock is held.
func (l *limiter) describe(x *sighting) {
	for _, p := range x.places {
		g := l.groups.groups[p.key]
		if g == nil || p.party {
			continue
		}
		g.title(p.limit, "", x.owner.tenant)
		if !l.watched {
			continue
		}
		if g.about == nil {
			g.about = &about{group: p.limit.describe(x)}
		}
		if x.fresh {
			g.about.born(x.moment.epoch() / idleEpochs)
		}
	}
	for i := range x.values {
		v := &x.values[i]
		g := l.groups.groups[v.place.key]
		if g == nil {
			continue
		}
		g.title(v.limit, v.limit.labels[v.label].name, x.owner.tenant)
		if l.watched && g.about == nil {
			g.about = &about{label: v.limit.labels[v.label].name, group: v.limit.describe(x)}
		}
	}
}

func (a *about) born(window uint32) {
	a.age(window)
	a.births[0]++
}

func (a *about) age(window uint32) {
	switch window - a.window {
	case 0:
	case 1:
		a.births, a.gone = [2]int{0, a.births[0]}, [2]int{0, a.gone[0]}
	default:
		a.births, a.gone = [2]int{}, [2]int{}
	}
	a.window = window
}

// describe names the group that a series is in, in words.
func (l *limit) describe(x *sighting) []inspect.Label {
	var group []inspect.Label
	for _, from := range l.groupBy {
		name, value := from.describe(&x.owner, x.attributes)
		group = append(group, inspect.Label{Name: name, Value: short(value)})
	}
	return group
}

func (from source) describe(of *owner, attributes pcommon.Map) (name, value string) {
	if from.kind == fromMetric {
		return byMetric, of.metric
	}
	if from.kind == fromTenant {
		return byTenant, of.tenant
	}
	var v pcommon.Value
	ok := false
	if from.kind != fromAttribute {
		v, ok = of.resource.Get(from.key)
	}
	if !ok && from.kind != fromResource {
		v, ok = attributes.Get(from.key)
	}
	if ok {
		value = plain.Text(v)
	}
	return from.key, value
}

// bounded names what has a limit: the series of a rule, or the values of a label.
type bounded struct{ rule, label string }

// use is how much is in its groups, and what the fullest are.
type use struct {
	groups  int
	fullest []inspect.GroupUse
}

// uses goes through all groups that have been described, and returns how many there are.
func (r *registry) uses(limit int) (all map[bounded]*use, groups int) {
	all = map[bounded]*use{}
	r.look(func(some []*group) {
		groups += len(some)
		for _, g := range some {
			if g.about == nil {
				continue
			}
			key := bounded{g.rule, g.about.label}
			u := all[key]
			if u == nil {
				u = &use{}
				all[key] = u
			}
			u.groups++
			u.add(inspect.GroupUse{Group: g.about.group, Used: int64(g.used)}, limit)
		}
	})
	return all, groups
}

// lookedAt is how many groups are looked at while newcomers wait.
const lookedAt = 1024

// look calls f for all groups, some at a time and each time under the lock. Groups may come and go meanwhile.
func (r *registry) look(f func(some []*group)) {
	r.mu.Lock()
	all := slices.AppendSeq(make([]*group, 0, len(r.groups)), maps.Values(r.groups))
	r.mu.Unlock()
	for some := range slices.Chunk(all, lookedAt) {
		r.locked(func() { f(some) })
		runtime.Gosched() // newcomers may have no other processor
	}
}

func (r *registry) locked(do func()) {
	r.mu.Lock()
	defer r.mu.Unlock()
	do()
}

// add keeps the fullest in order.
func (u *use) add(g inspect.GroupUse, limit int) {
	at, _ := slices.BinarySearchFunc(u.fullest, g, func(a, b inspect.GroupUse) int { return cmp.Compare(b.Used, a.Used) })
	if at < limit {
		u.fullest = slices.Insert(u.fullest, at, g)
		u.fullest = u.fullest[:min(limit, len(u.fullest))]
	}
}

// grouped is a group with what it was given and has lost lately.
type grouped struct {
	rule         string
	group        []inspect.Label
	used         int
	births, gone int
}

// grouped lists all groups of series.
func (r *registry) grouped(window uint32) (all []grouped) {
	r.look(func(some []*group) {
		for _, g := range some {
			if g.about == nil || g.about.label != "" {
				continue
			}
			g.about.age(window)
			all = append(all, grouped{
				g.rule, g.about.group, g.used, g.about.births[0] + g.about.births[1], g.about.gone[0] + g.about.gone[1],
			})
		}
	})
	return all
}

// maxName is how much of a value is kept to show it.
const maxName = 64

func short(s string) string {
	if len(s) <= maxName {
		return strings.Clone(s)
	}
	return strings.ToValidUTF8(s[:maxName], "") + "…"
}

// account is what a batch tells the statistics of one series.
type account struct {
	series stats.Series
	rm     pmetric.ResourceMetrics // whose labels are the first ones
	common int                     // how many these are
}

// observe tells of the point's series.
func (b *batch) observe(i int) {
	b.fill(i)
	b.account.series.New = b.fresh
	b.p.book.Observe(&b.account.series)
}

// refusals are the points of the metric at hand that found no room, for statistics.
type refusals struct {
	fps []uint64
	all []refusal
	of  []int // that are to be told of
}

type refusal struct {
	index int
	limit *limit
	why   reason
	what  action
}

// observeRejected notes a series that has no place.
func (b *batch) observeRejected(i int, v verdict, what action) {
	if b.p.book != nil {
		b.refusals.fps = append(b.refusals.fps, b.fps[i])
		b.refusals.all = append(b.refusals.all, refusal{i, v.limit, v.reason, what})
	}
}

// observeAllRejected tells of those of the metric at hand.
func (b *batch) observeAllRejected() {
	r := &b.refusals
	r.of = b.p.book.RefuseAll(b.owner.metric, r.fps, r.of[:0])
	for _, i := range r.of {
		of := &r.all[i]
		b.fill(of.index)
		s := &b.account.series
		s.Rejected, s.Rule, s.Reason, s.Action = true, of.limit.name, reasonNames[of.why], actionNames[of.what]
		s.Tenant, s.At = b.owner.tenant, time.Unix(0, b.now)
		b.p.book.Observe(s)
	}
	r.reset()
}

func (r *refusals) reset() {
	clear(r.all)
	r.fps, r.all = r.fps[:0], r.all[:0]
	if cap(r.fps) > maxRetained {
		*r = refusals{}
	}
}

func (b *batch) fill(i int) {
	a := &b.account
	if a.rm != b.at.rm {
		a.rm = b.at.rm
		a.series.Labels = b.hash.appendLabels(a.series.Labels[:0], b.owner.resource, stats.MaxLabels/2)
		a.common = len(a.series.Labels)
	}
	labels := b.hash.appendLabels(a.series.Labels[:a.common], attributesAt(b.at.m, i), stats.MaxLabels-a.common)
	scope := b.hash.scope(b.at.seed, b.at.sm.Scope())
	a.series = stats.Series{
		Fingerprint: b.fps[i], Base: b.hash.metric(scope, b.at.m), Labels: labels,
		Metric: b.owner.metric, Unit: b.at.m.Unit(), Kind: kindOf(b.at.m),
	}
}

func (h *hasher) appendLabels(dst []stats.Label, attributes pcommon.Map, limit int) []stats.Label {
	for key, value := range attributes.All() {
		if limit--; limit < 0 {
			break
		}
		name := h.text(key)
		dst = append(dst, stats.Label{Key: key, Value: value, Name: name, Hash: h.attribute(name, value)})
	}
	return dst
}

// note remembers that a limit rejected points, and tells when it begins to.
func (p *cardinalityProcessor) note(l *limit, points, now int64) {
	l.demand.points.Add(points)
	if last := l.demand.last.Swap(now); now-last > int64(p.cfg.IdleTimeout) {
		p.events.add(time.Unix(0, now), "first_rejection", l.name, "points found no room")
	}
}

// memory is that of all tables.
func (p *cardinalityProcessor) memory() int64 {
	n := p.limiter.series.bytes() + p.limiter.values.bytes()
	if p.book != nil {
		n += int64(p.book.Bytes())
	}
	return n
}
