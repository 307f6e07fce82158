// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package series

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"go.opentelemetry.io/collector/pdata/pcommon"

	"github.com/godwit-otel/godwit/processor/cardinalityprocessor/internal/fair"
	"github.com/godwit-otel/godwit/processor/cardinalityprocessor/internal/ident"
	"github.com/godwit-otel/godwit/processor/cardinalityprocessor/internal/policy"
)

// PartyOf returns the place of a series of the pool in its party. A party with two priorities is two parties.
func PartyOf(l *policy.Limit, h *ident.Hasher, pool uint64, of *policy.Owner, attributes pcommon.Map) Place {
	s := l.Share
	p := Place{
		Limit: l, Key: ident.Mix(ident.Mix(s.Parties.Key, pool), policy.HashOf(s.By, h, of, attributes)),
		pool: pool, party: true, tenant: of.Tenant, weight: 1,
	}
	if len(s.Weights) > 0 {
		_, value := s.Priority.Describe(of, attributes)
		p.weight = max(p.weight, s.Weights[value])
		p.Key = ident.Mix(p.Key, uint64(p.weight))
	}
	return p
}

// sharedGroup is a group whose limit is shared.
type sharedGroup struct {
	fair.Pool

	bound   uint64 // key of the limit
	tenant  string // the tenant, if tenants have groups of their own
	parties map[uint64]*Group
}

// satisfied reports whether a party has its share. The registry's lock is held, here and below.
func (r *registry) satisfied(p *Place) bool {
	g := r.Groups[p.Key]
	return g != nil && g.Party.Pool != nil && g.Used >= g.Party.Cap()
}

// starve counts a series that a party was denied, and reports whether it should wait, since the party has less than its
// share.
func (r *registry) starve(p *Place, fp uint64) (waits bool) {
	g := r.Groups[p.Key]
	if g == nil {
		if len(r.Groups) >= r.maxSets {
			return false
		}
		g = r.found(p, false)
	}
	if g.Party.Pool == nil {
		r.enter(g, p)
	}
	return g.Party.Starve(fp)
}

// enter makes a group one of the parties of a pool.
func (r *registry) enter(g *Group, p *Place) {
	if r.Pools[p.pool] == nil {
		r.Pools[p.pool] = &sharedGroup{Pool: fair.NewPool(), bound: p.Limit.Series.Key, parties: map[uint64]*Group{}}
		if slices.ContainsFunc(p.Limit.GroupBy, func(from policy.Source) bool { return from.Kind == policy.FromTenant }) {
			r.Pools[p.pool].tenant = strings.Clone(p.tenant)
		}
	}
	g.Party.Pool, g.Party.Weight, g.pool = &r.Pools[p.pool].Pool, p.weight, r.Pools[p.pool]
	g.pool.parties[g.Key] = g
}

// forget removes an empty group.
func (r *registry) forget(g *Group) {
	g.Tally.Groups--
	delete(r.Groups, g.Key)
	r.open.Remove(g)
	if g.pool != nil {
		delete(g.pool.parties, g.Key)
	}
}

// Share ends a round: it makes room for the fair share of all parties, and returns how many series were taken from
// others, by limit.
func (l *Limiter) Share(p *policy.Policy) map[*policy.Limit]int {
	byKey := map[uint64]*policy.Limit{}
	for _, limit := range p.Limits {
		if limit.Share != nil {
			byKey[limit.Series.Key] = limit
		}
	}
	pools := map[uint64][]uint64{} // by the limit that their parties share
	l.Groups.Mu.Lock()
	for key, pl := range l.Groups.Pools {
		pools[pl.bound] = append(pools[pl.bound], key)
	}
	l.Groups.Mu.Unlock()
	shed := map[*policy.Limit]int{}
	for _, bound := range slices.Sorted(maps.Keys(pools)) {
		limit := byKey[bound]
		var quotas []quota
		for _, key := range slices.Sorted(slices.Values(pools[bound])) {
			l.Groups.Mu.Lock()
			quotas = append(quotas, l.Groups.round(key, limit)...)
			l.Groups.Mu.Unlock()
		}
		if len(quotas) > 0 { // of all pools together, since each pass visits the whole table; no series is in two of them
			shed[limit] = l.shed(quotas)
		}
	}
	return shed
}

// quota is how many series a party has to give up.
type quota struct {
	group *Group
	n     int
}

// round ends the round of one pool. Its limit is nil if it is none of the current rules.
func (r *registry) round(key uint64, limit *policy.Limit) (quotas []quota) {
	pl := r.Pools[key]
	if limit == nil || len(pl.parties) == 0 { // no longer shared
		for _, g := range pl.parties {
			g.Party.Pool, g.pool = nil, nil
			if g.Sets == 0 {
				r.forget(g)
			}
		}
		delete(r.Pools, key)
		return nil
	}
	room := limit.TermsOf(pl.tenant).Max
	if over := r.Used(key) > room; pl.Hit || over || pl.Scarce() {
		all := slices.SortedFunc(maps.Values(pl.parties), func(a, b *Group) int { return cmp.Compare(a.Key, b.Key) })
		if r.pending(&limit.Share.Parties) <= room/20 { // else it is not known who has how much
			seats := make([]fair.Seat, len(all))
			for i, g := range all {
				seats[i] = fair.Seat{Party: g.Party, Used: g.Used}
			}
			for i, n := range pl.Settle(seats, room, r.Used(key)) {
				if n > 0 {
					quotas = append(quotas, quota{all[i], n})
				}
			}
		}
		for _, g := range all {
			g.Party.Next(g.Used)
			if g.Sets == 0 && g.Party.Waiting == 0 {
				r.forget(g)
			}
		}
	}
	pl.Hit = false
	return quotas
}

// Contended returns in how many pools shares are in force, by limit.
func (r *registry) Contended(limits []*policy.Limit) map[*policy.Limit]int {
	r.Mu.Lock()
	defer r.Mu.Unlock()
	all := map[uint64]int{}
	for _, pl := range r.Pools {
		if pl.Scarce() {
			all[pl.bound]++
		}
	}
	out := map[*policy.Limit]int{}
	for _, l := range limits {
		if l.Share != nil {
			out[l] = all[l.Series.Key]
		}
	}
	return out
}
