// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package series

import (
	"cmp"
	"maps"
	"runtime"
	"slices"
	"strings"

	"github.com/godwit-otel/godwit/internal/inspect"
	"github.com/godwit-otel/godwit/processor/cardinalityprocessor/internal/moment"
	"github.com/godwit-otel/godwit/processor/cardinalityprocessor/internal/policy"
)

// Statistics are told about a series when it is new, and then once in IdleEpochs epochs, at a time that depends on its
// fingerprint: so they know which series are alive, and nearly always known series pass without them.

// Due reports whether a series must be reported to statistics that was last seen the given number of epochs ago.
func (l *Limiter) Due(fp uint64, since uint32, now moment.Moment) bool {
	if !l.Watched || since == 0 {
		return false
	}
	epoch, shift := now.EpochOf(fp), uint32(fp%moment.IdleEpochs)
	return (epoch+shift)/moment.IdleEpochs != (epoch-since+shift)/moment.IdleEpochs
}

// missed reports whether a series was last seen before its metric was chosen.
func (x *Sighting) missed(fp uint64, since uint32) bool {
	if x.Chosen == 0 || since == 0 { // fast path
		return false
	}
	seen, chosen := x.Moment.SeenSince(x.Chosen, fp), x.Chosen.EpochOf(fp)
	return seen > chosen && seen-since <= chosen
}

// about is the description of a group, and how many series it got and lost lately.
type about struct {
	label  string // whose values its members are, "" of series
	group  []inspect.Label
	births [2]int // in this window, and in the last one
	gone   [2]int
	window uint32
}

// describe sets the description of a series' groups. The registry's lock is held.
func (l *Limiter) describe(x *Sighting) {
	for _, p := range x.Places {
		g := l.Groups.Groups[p.Key]
		if g == nil || p.party {
			continue
		}
		g.title(p.Limit, "", x.Owner.Tenant)
		if !l.Watched {
			continue
		}
		if g.about == nil {
			g.about = &about{group: x.describe(p.Limit)}
		}
		if x.Fresh {
			g.about.born(x.Moment.Epoch() / moment.IdleEpochs)
		}
	}
	for i := range x.Values {
		v := &x.Values[i]
		g := l.Groups.Groups[v.place.Key]
		if g == nil {
			continue
		}
		g.title(v.limit, v.limit.Labels[v.label].Name, x.Owner.Tenant)
		if l.Watched && g.about == nil {
			g.about = &about{label: v.limit.Labels[v.label].Name, group: x.describe(v.limit)}
		}
	}
}

func (a *about) born(window uint32) {
	a.age(window)
	a.births[0]++
}

// age begins a window, unless it has begun: a batch may be older than others that have come since.
func (a *about) age(window uint32) {
	switch later := int32(window - a.window); {
	case later <= 0:
		return
	case later == 1:
		a.births, a.gone = [2]int{0, a.births[0]}, [2]int{0, a.gone[0]}
	default:
		a.births, a.gone = [2]int{}, [2]int{}
	}
	a.window = window
}

// describe describes the group of a limit that a series is in.
func (x *Sighting) describe(l *policy.Limit) []inspect.Label {
	var group []inspect.Label
	for _, from := range l.GroupBy {
		name, value := from.Describe(&x.Owner, x.Attributes)
		group = append(group, inspect.Label{Name: name, Value: short(value)})
	}
	return group
}

// Bounded names what has a limit: the series of a rule, or the values of a label.
type Bounded struct{ Rule, Label string }

// Use is how much is in the groups of a limit, and the fullest ones.
type Use struct {
	Groups  int
	Fullest []inspect.GroupUse
}

// Uses goes through all groups that have been described, and returns how many there are.
func (r *registry) Uses(limit int) (all map[Bounded]*Use, groups int) {
	all = map[Bounded]*Use{}
	r.Look(func(some []*Group) {
		groups += len(some)
		for _, g := range some {
			if g.about == nil {
				continue
			}
			key := Bounded{g.Rule, g.about.label}
			u := all[key]
			if u == nil {
				u = &Use{}
				all[key] = u
			}
			u.Groups++
			u.add(inspect.GroupUse{Group: g.about.group, Used: int64(g.Used)}, limit)
		}
	})
	return all, groups
}

// LookedAt is how many groups are visited while newcomers wait.
const LookedAt = 1024

// Look calls f for all groups, some at a time and each time under the lock. Groups may come and go in between.
func (r *registry) Look(f func(some []*Group)) {
	r.Mu.Lock()
	all := slices.AppendSeq(make([]*Group, 0, len(r.Groups)), maps.Values(r.Groups))
	r.Mu.Unlock()
	for some := range slices.Chunk(all, LookedAt) {
		r.locked(func() { f(some) })
		runtime.Gosched() // newcomers may have no other processor
	}
}

func (r *registry) locked(do func()) {
	r.Mu.Lock()
	defer r.Mu.Unlock()
	do()
}

// add keeps the fullest groups in order.
func (u *Use) add(g inspect.GroupUse, limit int) {
	at, _ := slices.BinarySearchFunc(u.Fullest, g, func(a, b inspect.GroupUse) int { return cmp.Compare(b.Used, a.Used) })
	if at < limit {
		u.Fullest = slices.Insert(u.Fullest, at, g)
		u.Fullest = u.Fullest[:min(limit, len(u.Fullest))]
	}
}

// grouped is a group with what it got and lost lately.
type grouped struct {
	Rule         string
	Group        []inspect.Label
	Used         int
	Births, Gone int
}

// Grouped lists all groups of series.
func (r *registry) Grouped(window uint32) (all []grouped) {
	r.Look(func(some []*Group) {
		for _, g := range some {
			if g.about == nil || g.about.label != "" {
				continue
			}
			g.about.age(window)
			all = append(all, grouped{
				g.Rule, g.about.group, g.Used, g.about.births[0] + g.about.births[1], g.about.gone[0] + g.about.gone[1],
			})
		}
	})
	return all
}

// maxName limits how much of a value is kept for display.
const maxName = 64

func short(s string) string {
	if len(s) <= maxName {
		return strings.Clone(s)
	}
	return strings.ToValidUTF8(s[:maxName], "") + "…"
}
