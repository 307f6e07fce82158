// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package cardinalityprocessor

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"math/bits"
	"slices"
	"strings"

	"github.com/zeebo/xxh3"
	"go.opentelemetry.io/collector/pdata/pcommon"
)

// A limit may be shared: the series of each of its groups are then divided into parties. What a party wants is what it
// has and an estimate of what was rejected of it lately. When that is too much for all together, the level is worked out
// up to which each may fill its share, such that the limit is used up and nobody could get more but from one who has
// less: max-min fairness. Parties at the level get no new series; what those below are short of is taken from those
// above, the newest series first.
//
// This happens in rounds, for estimates need time. The level falls at once, and rises when several rounds in a row agree,
// so that what is taken from one and given to another does not go to and fro. Between rounds a party below its share may
// find no room. Its cumulative series are then withheld instead of added up elsewhere: there they would have to stay, and
// nothing is lost as long as they come late.

const (
	fairEpochs = 4 // in a round
	agreeing   = 3 // rounds that must agree on a higher level
	patience   = 3 // rounds that a party without success is waited for

	maxPriorities = 8
)

// share is how a limit is shared.
type share struct {
	by       []source
	priority source
	weights  map[string]int
	parties  bound // counts only
}

func newShare(cfg *AdaptiveConfig, series uint64) *share {
	if len(cfg.ShareBy) == 0 {
		return nil
	}
	s := &share{by: newSources(cfg.ShareBy), priority: newSource(cfg.Priority.By), weights: map[string]int{}}
	for i, value := range cfg.Priority.Order {
		s.weights[value] = 1 << (len(cfg.Priority.Order) - 1 - i)
	}
	s.parties = bound{key: mix(series, xxh3.HashString(fmt.Sprintf("%q %q", cfg.ShareBy, cfg.Priority.By)))}
	return s
}

// party returns the place that a series of the pool takes in its party. Of two priorities there are two parties.
func (l *limit) party(h *hasher, pool uint64, of *owner, attributes pcommon.Map) place {
	s := l.share
	p := place{
		limit: l, key: mix(mix(s.parties.key, pool), h.sources(s.by, of, attributes)),
		pool: pool, party: true, tenant: of.tenant, weight: 1,
	}
	if len(s.weights) > 0 {
		_, value := s.priority.describe(of, attributes)
		p.weight = max(p.weight, s.weights[value])
		p.key = mix(p.key, uint64(p.weight))
	}
	return p
}

// pool is a group whose limit is shared.
type pool struct {
	bound   uint64 // key of the limit
	tenant  string // whose it is, if the limit has groups of their own for tenants
	parties map[uint64]*group
	hit     bool // somebody was rejected in this round

	level  float64 // series for each weight that a party may have
	recent [agreeing]float64
}

// party is what a group knows that shares a limit with others.
type party struct {
	pool    *pool
	weight  int
	unmet   *unmet // what was rejected in this round
	before  int    // used at the end of the last
	waiting int    // rounds without success
}

// cap is how many series a party may have.
func (p *party) cap() int {
	if share := p.pool.level * float64(p.weight); share < math.MaxInt32 {
		return max(1, int(share))
	}
	return math.MaxInt32
}

// satisfied says whether a party has its share. The registry's lock is held, here and below.
func (r *registry) satisfied(p *place) bool {
	g := r.groups[p.key]
	return g != nil && g.party.pool != nil && g.used >= g.party.cap()
}

// starve notes that a party was denied a series, and says whether one that has less than its share should wait.
func (r *registry) starve(p *place, fp uint64) (waits bool) {
	g := r.groups[p.key]
	if g == nil {
		if len(r.groups) >= r.maxSets {
			return false
		}
		g = r.found(p, false)
	}
	if g.party.pool == nil {
		r.enter(g, p)
	}
	if g.party.unmet == nil {
		g.party.unmet = new(unmet)
	}
	g.party.unmet.add(fp)
	g.party.pool.hit = true
	return g.party.waiting < patience
}

// enter makes a group one of the parties of a pool.
func (r *registry) enter(g *group, p *place) {
	if r.pools[p.pool] == nil {
		r.pools[p.pool] = &pool{bound: p.limit.series.key, parties: map[uint64]*group{}, level: math.Inf(1), recent: allLevels()}
		if slices.ContainsFunc(p.limit.groupBy, func(from source) bool { return from.kind == fromTenant }) {
			r.pools[p.pool].tenant = strings.Clone(p.tenant)
		}
	}
	g.party.pool, g.party.weight = r.pools[p.pool], p.weight
	g.party.pool.parties[g.key] = g
}

func allLevels() (all [agreeing]float64) {
	for i := range all {
		all[i] = math.Inf(1)
	}
	return all
}

// forget ends a group that nobody is in.
func (r *registry) forget(g *group) {
	g.tally.groups--
	delete(r.groups, g.key)
	r.open.remove(g)
	if g.party != nil && g.party.pool != nil {
		delete(g.party.pool.parties, g.key)
	}
}

// share ends a round: it sees to it that all parties can have what is fair, and returns how many series were taken from
// others, by limit.
func (l *limiter) share(p *policy) map[*limit]int {
	byKey := map[uint64]*limit{}
	for _, limit := range p.limits {
		if limit.share != nil {
			byKey[limit.series.key] = limit
		}
	}
	pools := map[uint64][]uint64{} // by the limit that their parties share
	l.groups.mu.Lock()
	for key, pl := range l.groups.pools {
		pools[pl.bound] = append(pools[pl.bound], key)
	}
	l.groups.mu.Unlock()
	shed := map[*limit]int{}
	for _, bound := range slices.Sorted(maps.Keys(pools)) {
		limit := byKey[bound]
		var quotas []quota
		for _, key := range slices.Sorted(slices.Values(pools[bound])) {
			l.groups.mu.Lock()
			quotas = append(quotas, l.groups.round(key, limit)...)
			l.groups.mu.Unlock()
		}
		if len(quotas) > 0 { // of all pools together, for it is a matter of the whole table; no series is in two of them
			shed[limit] = l.shed(quotas)
		}
	}
	return shed
}

// quota is how many series a party has to give up.
type quota struct {
	group *group
	n     int
}

// round ends the round of one pool. Its limit is nil if it is none of the present rules.
func (r *registry) round(key uint64, limit *limit) (quotas []quota) {
	pl := r.pools[key]
	if limit == nil || len(pl.parties) == 0 { // not shared any more
		for _, g := range pl.parties {
			g.party.pool = nil
			if g.sets == 0 {
				r.forget(g)
			}
		}
		delete(r.pools, key)
		return nil
	}
	room := limit.termsOf(pl.tenant).max
	if over := r.used(key) > room; pl.hit || over || !math.IsInf(pl.level, 1) {
		all := slices.SortedFunc(maps.Values(pl.parties), func(a, b *group) int { return cmp.Compare(a.key, b.key) })
		if r.pending(&limit.share.parties) <= room/20 { // else it is not known who has how much
			quotas = pl.settle(all, room, r.used(key))
		}
		for _, g := range all {
			g.party.next(g.used)
			if g.sets == 0 && g.party.waiting == 0 {
				r.forget(g)
			}
		}
	}
	pl.hit = false
	return quotas
}

// next begins a round.
func (p *party) next(used int) {
	switch {
	case p.unmet == nil, used >= p.cap():
		p.waiting = 0
	case used > p.before:
		p.waiting = 1
	default:
		p.waiting++
	}
	p.unmet, p.before = nil, used
}

// settle works the level out, and what has to be taken from whom. Of what is used, some may be in no party yet.
func (pl *pool) settle(all []*group, limit, used int) []quota {
	has, wants, weights := make([]int, len(all)), make([]int, len(all)), make([]int, len(all))
	own := 0
	for i, g := range all {
		own += g.used
		has[i], wants[i], weights[i] = g.used, g.used+g.party.unmet.estimate(), g.party.weight
	}
	copy(pl.recent[1:], pl.recent[:])
	pl.recent[0] = level(wants, weights, limit-(used-own))
	pl.level = slices.Min(pl.recent[:])

	short := used - limit
	for i, g := range all {
		short += max(0, min(wants[i], g.party.cap())-has[i])
	}
	if short <= 0 {
		return nil
	}
	var quotas []quota
	low, taken := level(has, weights, own-short), 0
	for i, g := range all {
		if n := has[i] - max(1, int(min(low*float64(weights[i]), math.MaxInt32))); n > 0 {
			quotas = append(quotas, quota{g, n})
			taken += n
		}
	}
	for i := range quotas { // what was rounded
		if taken > short {
			quotas[i].n--
			taken--
		}
	}
	return quotas
}

// level is what each weight may have so that all that they want, up to that, fills the room.
func level(wants, weights []int, room int) float64 {
	order := make([]int, len(wants))
	weight := 0
	for i := range order {
		order[i] = i
		weight += weights[i]
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(wants[a]*weights[b], wants[b]*weights[a]) })
	for _, i := range order {
		fair := float64(max(room, 0)) / float64(weight)
		if float64(wants[i]) > fair*float64(weights[i]) {
			return fair
		}
		room -= wants[i]
		weight -= weights[i]
	}
	return math.Inf(1)
}

// contended returns in how many pools shares are in force, by limit.
func (r *registry) contended(limits []*limit) map[*limit]int {
	r.mu.Lock()
	defer r.mu.Unlock()
	all := map[uint64]int{}
	for _, pl := range r.pools {
		if !math.IsInf(pl.level, 1) {
			all[pl.bound]++
		}
	}
	out := map[*limit]int{}
	for _, l := range limits {
		if l.share != nil {
			out[l] = all[l.series.key]
		}
	}
	return out
}

// unmet estimates how many distinct series a party was denied, to about 6 %, and exactly as long as they are few.
type unmet [256]uint8

func (u *unmet) add(fp uint64) {
	hash := mix(fp, tagMap)
	cell := &u[hash>>56]
	*cell = max(*cell, uint8(bits.LeadingZeros64(hash<<8|1<<7))+1)
}

func (u *unmet) estimate() int {
	if u == nil {
		return 0
	}
	return max(1, int(estimate(u[:])+0.5))
}
