// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package cardinalityprocessor

import (
	"math"
	"sync"
	"sync/atomic"
)

// A registry counts the members of groups. A series is a member of one group for each limit that applies to it, and
// because many series are members of the same groups, what is remembered with a series is the id of their set. Label
// values are members, too, of sets with one group.
//
// All counting is under one lock: a place is taken in all groups or in none, and no limit is passed for a moment.
// Only what is new, moves or expires comes here.
type registry struct {
	// pages are read without the lock, by those who hold a set's id from a table.
	pages [maxSets/setPage + 1]atomic.Pointer[[setPage]atomic.Pointer[set]]

	mu      sync.Mutex
	maxSets int
	owned   map[uint64]int // sets by who pays for them
	apart   bool           // nobody may have so many that others find none
	maxLeft int            // entries of those who left
	groups  map[uint64]*group
	open    groupIndex       // the same, for who has no lock
	pools   map[uint64]*pool // by key of the group whose limit is shared
	ids     map[uint64]uint32
	last    uint32
	free    []uint32
	members map[uint32]int // series by generation of their set
	oldest  uint32         // of these generations, the last there could be if there is none
	dates   atomic.Uint32  // the same, for who has no lock
	tallies map[string]*tally
}

const setPage = 1024

// group is one group of one limit: of series, or of the values of a label.
type group struct {
	key    uint64
	rule   string
	values bool // its members are those of a label
	used   int  // members
	sets   int  // sets that have the group
	tally  *tally
	party  *party // nil unless it shares a limit
	about  *about // nil while nobody asked for the members of it

	newcomers int64        // what its pace of new series remembers
	pressed   int64        // since when there have been more than that
	denied    int64        // when one of them last found no room
	points    atomic.Int64 // what its pace of points remembers
	count     atomic.Int64 // used, for who has no lock
	heading   atomic.Pointer[heading]
}

// tally sums up the groups of one rule.
type tally struct {
	members, groups int
}

// set is a combination of groups. All but members is immutable.
type set struct {
	setKind

	key        uint64
	generation uint32
	account    uint64
	plain      bool // neither made here nor a member nor with tolls: known is all there is to know
	groups     []*group
	tolls      []toll
	members    int
}

// setKind tells apart sets of the same groups.
type setKind struct {
	labelled bool // label values belong to its series
	values   bool // its members are label values
	output   bool // its series are made here: points of theirs that come in are added to them
	promoted bool // its series are members of others, and have a place all the same

	left uint32 // its own id if its series have no place any more
}

func newRegistry(maxGroups, maxSeries int) *registry {
	r := &registry{
		maxSets: maxGroups,
		maxLeft: maxSeries / 4,
		groups:  map[uint64]*group{},
		pools:   map[uint64]*pool{},
		ids:     map[uint64]uint32{},
		members: map[uint32]int{},
		tallies: map[string]*tally{},
		owned:   map[uint64]int{},
		oldest:  math.MaxUint32,
		last:    leftLast,
	}
	r.dates.Store(r.oldest)
	page := new([setPage]atomic.Pointer[set])
	for id := uint32(1); id <= leftLast; id++ {
		page[id].Store(&set{setKind: setKind{left: id}})
	}
	r.pages[0].Store(page)
	return r
}

// set returns the set of an id, nil when it has none any more. It takes no lock.
func (r *registry) set(id uint32) *set {
	if page := r.pages[id/setPage].Load(); page != nil {
		return page[id%setPage].Load()
	}
	return nil
}

// place is a group that a newcomer needs a place in.
type place struct {
	limit *limit
	terms *terms // of the limit, for the series' tenant
	key   uint64

	party  bool // which shares the limit
	pool   uint64
	tenant string // of a party
	weight int
}

// used is how many members a group has. The lock is held, as below.
func (r *registry) used(key uint64) int {
	if g := r.groups[key]; g != nil {
		return g.used
	}
	return 0
}

// full says whether there is no room for one more in a group, not even if all series that were not counted there yet were.
func (r *registry) full(b *bound, key uint64, room int) bool { return r.used(key)+r.pending(b) >= room }

// short says whether there is no room for one more, of what was counted there already.
func (r *registry) short(key uint64, room int) bool { return r.used(key) >= room }

// pending is how many series may belong to a bound without having been counted there.
func (r *registry) pending(b *bound) (n int) {
	if r.oldest >= b.since { // fast path: rules change seldom
		return 0
	}
	for generation, members := range r.members {
		if generation < b.since {
			n += members
		}
	}
	return n
}

// crowded says whether there is no room for one more set, should the places need one.
func (r *registry) crowded(generation uint32, places []place, kind setKind, account uint64) bool {
	room := r.maxSets - len(r.ids)
	if room > 0 && (!r.apart || r.owned[account] < most(room)) {
		return false
	}
	return r.ids[setKey(generation, places, kind)] == 0
}

// leftToOthers: of what is left, and what somebody has, so great a part is left to others. Whoever comes later finds room, even
// if one has all that there is to have.
const leftToOthers = 8

// most is how much somebody may have, at most, who is to leave that part of it all when so much is left.
func most(left int) int { return left * (leftToOthers - 1) }

// hurried says whether a group has had its share of new series, and has to wait for the next.
func (r *registry) hurried(p *place, now int64) bool {
	g := r.groups[p.key]
	if g == nil || p.party || p.terms.newcomers.each == 0 {
		return false
	}
	_, ok := p.terms.newcomers.take(g.newcomers, now)
	return !ok
}

// brief notes that a group has no room for the pace of newcomers, and says whether that has not lasted for long.
func (r *registry) brief(key uint64, now, patience int64) bool {
	g := r.groups[key]
	if d := now - g.denied; d > patience || d < 0 {
		g.pressed = now
	}
	g.denied = now
	return now-g.pressed < patience
}

// welcome takes one from the share of each group.
func (r *registry) welcome(places []place, now int64) {
	for _, p := range places {
		if !p.party && p.terms.newcomers.each > 0 {
			g := r.groups[p.key]
			g.newcomers, _ = p.terms.newcomers.take(g.newcomers, now)
		}
	}
}

// exhausted says that there are no ids left for another set. Series that should move to one stay where they are.
func (r *registry) exhausted() bool { return r.last == maxSets && len(r.free) == 0 }

func setKey(generation uint32, places []place, kind setKind) uint64 {
	sum := uint64(generation) << 3
	if kind.labelled {
		sum |= 1
	}
	if kind.output {
		sum |= 2
	}
	if kind.promoted {
		sum |= 4
	}
	for _, p := range places {
		sum = mix(sum, p.key)
	}
	return sum
}

// join adds a member to the set of the places, and returns its id.
func (r *registry) join(generation uint32, places []place, kind setKind, account uint64) uint32 {
	key := setKey(generation, places, kind)
	id := r.ids[key]
	if id == 0 {
		id = r.add(&set{key: key, generation: generation, setKind: kind, account: account}, places)
	}
	r.change(r.set(id), +1)
	return id
}

func (r *registry) change(s *set, by int) {
	s.members += by
	for _, g := range s.groups {
		g.used += by
		g.count.Store(int64(g.used))
		g.tally.members += by
	}
	if s.values || len(s.groups) == 0 { // who takes no place is not missed in any
		return
	}
	r.members[s.generation] += by
	switch r.members[s.generation] {
	case 0:
		delete(r.members, s.generation)
		r.oldest = math.MaxUint32
		for generation := range r.members {
			r.oldest = min(r.oldest, generation)
		}
	case by:
		r.oldest = min(r.oldest, s.generation)
	}
	r.dates.Store(r.oldest)
}

func (r *registry) add(s *set, places []place) uint32 {
	s.groups = make([]*group, len(places))
	for i, p := range places {
		g := r.groups[p.key]
		if g == nil {
			g = r.found(&p, s.values)
		}
		if p.pool != 0 && g.party.pool == nil {
			r.enter(g, &p)
		}
		g.sets++
		s.groups[i] = g
		if !s.values && !p.party && p.terms.points.each > 0 {
			s.tolls = append(s.tolls, toll{limit: p.limit, pace: p.terms.points, group: g})
		}
	}
	s.plain = !s.output && !s.promoted && len(s.tolls) == 0
	var id uint32
	if n := len(r.free); n > 0 {
		id, r.free = r.free[n-1], r.free[:n-1]
	} else {
		r.last++
		id = r.last
	}
	page := &r.pages[id/setPage]
	if page.Load() == nil {
		page.Store(&[setPage]atomic.Pointer[set]{})
	}
	page.Load()[id%setPage].Store(s)
	r.ids[s.key] = id
	r.owned[s.account]++
	return id
}

// found begins a group.
func (r *registry) found(p *place, values bool) *group {
	g := &group{key: p.key, rule: p.limit.name, values: values, tally: &tally{}}
	if p.party {
		g.party = &party{}
	} else if !values { // they are no series, and summed up nowhere
		g.tally = r.tally(p.limit.name)
	}
	g.tally.groups++
	r.groups[p.key] = g
	r.open.put(g)
	return g
}

// tally returns what sums up a rule.
func (r *registry) tally(rule string) *tally {
	if r.tallies[rule] == nil {
		r.tallies[rule] = &tally{}
	}
	return r.tallies[rule]
}

// leave takes a member out of a set, and forgets sets and groups that nobody is in.
func (r *registry) leave(id uint32) {
	s := r.set(id)
	r.change(s, -1)
	if s.members > 0 || s.left != 0 {
		return
	}
	for _, g := range s.groups {
		if g.sets--; g.sets == 0 {
			r.forget(g)
		}
	}
	delete(r.ids, s.key)
	if r.owned[s.account]--; r.owned[s.account] == 0 {
		delete(r.owned, s.account)
	}
	r.pages[id/setPage].Load()[id%setPage].Store(nil)
	r.free = append(r.free, id)
}

// depart takes out a member that lost its place, and tells those who were asked about its groups.
func (r *registry) depart(id, window uint32) {
	for _, g := range r.set(id).groups {
		if g.about != nil {
			g.about.age(window)
			g.about.gone[0]++
		}
	}
	r.leave(id)
}

// observe calls f with the sum of each rule. It is not called under the lock.
func (r *registry) observe(f func(rule string, t tally)) {
	r.mu.Lock()
	all := make(map[string]tally, len(r.tallies))
	for rule, t := range r.tallies {
		all[rule] = *t
	}
	r.mu.Unlock()
	for rule, t := range all {
		f(rule, t)
	}
}
