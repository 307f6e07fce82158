// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package series

import (
	"math"
	"sync"
	"sync/atomic"

	"github.com/godwit-otel/godwit/processor/cardinalityprocessor/internal/fair"
	"github.com/godwit-otel/godwit/processor/cardinalityprocessor/internal/ident"
	"github.com/godwit-otel/godwit/processor/cardinalityprocessor/internal/policy"
)

// A registry counts the members of groups. A series is a member of one group for each limit that applies to it. Because
// many series are members of the same groups, the table stores the id of their set with each. Label values are members,
// too, of sets with one group.
//
// All counting is under one lock: a place is taken in all groups or in none, and no limit is exceeded even for a
// moment. Only series that are new, move or expire come here.
type registry struct {
	// pages are read without the lock, with a set's id from a table.
	pages [maxSets/setPage + 1]atomic.Pointer[[setPage]atomic.Pointer[Set]]

	Mu      sync.Mutex
	maxSets int
	owned   map[uint64]int // number of sets by who pays for them
	Apart   bool           // limits everybody's sets, so that others find some
	shares  int            // of paces
	MaxLeft int            // limit of entries of those who left
	Groups  map[uint64]*Group
	open    GroupIndex              // the same, for readers without the lock
	Pools   map[uint64]*sharedGroup // by key of the group whose limit is shared
	Ids     map[uint64]uint32
	last    uint32
	free    []uint32
	members map[uint32]int // number of series by generation of their set
	oldest  uint32         // the oldest of these generations
	dates   atomic.Uint32  // the same, for readers without the lock
	joins   uint64         // number of members that joined groups
	Tallies map[string]*Tally
}

const setPage = 1024

// Group is one group of one limit: of series, or of the values of a label.
type Group struct {
	Key    uint64
	Rule   string
	values bool // its members are label values
	Used   int  // number of members
	Sets   int  // number of sets with the group
	Tally  *Tally
	Party  *fair.Party  // nil if it does not share a limit
	pool   *sharedGroup // of which it is a party
	about  *about       // nil until its members were asked for

	newcomers int64         // state of its pace of new series
	shares    *fair.Paces   // tenants' parts of that, if there are several
	waits     fair.Part     // since when newcomers have been too many
	points    atomic.Int64  // state of its pace of points
	Count     atomic.Int64  // Used, for readers without the lock
	joined    atomic.Uint64 // identifies the last member that joined, of all groups
	heading   atomic.Pointer[heading]
}

// Tally sums up the groups of one rule.
type Tally struct {
	Members, Groups int
}

// Set is a combination of groups. Everything except Members is immutable.
type Set struct {
	SetKind

	key        uint64
	Generation uint32
	account    uint64
	Plain      bool // neither made here nor a member nor with tolls: being known is enough
	Groups     []*Group
	Tolls      []toll
	Members    int
}

// SetKind distinguishes sets with the same groups.
type SetKind struct {
	labelled bool // its series have label values with limits
	values   bool // its members are label values
	Output   bool // its series are made here: incoming points of theirs are added to them
	Promoted bool // its series are members of others, and have a place nevertheless

	left uint32 // its own id if its series have lost their place
}

// Rests reports whether there is nothing to do about its series as long as they are known, not even now and then.
func (s *Set) Rests() bool { return s.Plain && !s.labelled }

// NewRegistry returns a registry for the given numbers of sets, and of series.
func NewRegistry(maxGroups, maxSeries int) *registry {
	r := &registry{
		maxSets: maxGroups,
		MaxLeft: maxSeries / 4,
		Groups:  map[uint64]*Group{},
		Pools:   map[uint64]*sharedGroup{},
		Ids:     map[uint64]uint32{},
		members: map[uint32]int{},
		Tallies: map[string]*Tally{},
		owned:   map[uint64]int{},
		oldest:  math.MaxUint32,
		last:    LeftLast,
	}
	r.dates.Store(r.oldest)
	page := new([setPage]atomic.Pointer[Set])
	for id := uint32(1); id <= LeftLast; id++ {
		page[id].Store(&Set{SetKind: SetKind{left: id}})
	}
	r.pages[0].Store(page)
	return r
}

// Set returns the set of an id, nil if it no longer exists. It takes no lock.
func (r *registry) Set(id uint32) *Set {
	if page := r.pages[id/setPage].Load(); page != nil {
		return page[id%setPage].Load()
	}
	return nil
}

// Place is a group in which a newcomer needs a place.
type Place struct {
	Limit *policy.Limit
	Terms *policy.Terms // of the limit, for the series' tenant
	Key   uint64

	party  bool // it shares the limit
	pool   uint64
	tenant string // of a party
	weight int
}

// Used is how many members a group has. The lock is held, as below.
func (r *registry) Used(key uint64) int {
	if g := r.Groups[key]; g != nil {
		return g.Used
	}
	return 0
}

// MembersOf is Used without the lock.
func (r *registry) MembersOf(key uint64) (n int) {
	r.locked(func() { n = r.Used(key) })
	return n
}

// full reports whether a group has no room for one more, not even if no uncounted series belongs to it.
func (r *registry) full(b *policy.Bound, key uint64, room int) bool {
	return r.Used(key)+r.pending(b) >= room
}

// short reports whether there is no room for one more, by what is counted.
func (r *registry) short(key uint64, room int) bool { return r.Used(key) >= room }

// pending is how many series may belong to a bound without being counted there.
func (r *registry) pending(b *policy.Bound) (n int) {
	if r.oldest >= b.Since { // fast path: rules rarely change
		return 0
	}
	for generation, members := range r.members {
		if generation < b.Since {
			n += members
		}
	}
	return n
}

// crowded reports whether there is no room for another set, if the places need one.
func (r *registry) crowded(generation uint32, places []Place, kind SetKind, account uint64) bool {
	room := r.maxSets - len(r.Ids)
	if room > 0 && (!r.Apart || r.owned[account] < fair.Most(room)) {
		return false
	}
	return r.Ids[setKey(generation, places, kind)] == 0
}

// exhausted reports that there are no ids left for another set. Series that should move to one stay where they are.
func (r *registry) exhausted() bool { return r.last == maxSets && len(r.free) == 0 }

func setKey(generation uint32, places []Place, kind SetKind) uint64 {
	sum := uint64(generation) << 3
	if kind.labelled {
		sum |= 1
	}
	if kind.Output {
		sum |= 2
	}
	if kind.Promoted {
		sum |= 4
	}
	for _, p := range places {
		sum = ident.Mix(sum, p.Key)
	}
	return sum
}

// Join adds a member to the set of the places, and returns the set's id.
func (r *registry) Join(generation uint32, places []Place, kind SetKind, account uint64) uint32 {
	key := setKey(generation, places, kind)
	id := r.Ids[key]
	if id == 0 {
		id = r.add(&Set{key: key, Generation: generation, SetKind: kind, account: account}, places)
	}
	r.change(r.Set(id), +1)
	return id
}

func (r *registry) change(s *Set, by int) {
	s.Members += by
	if by > 0 {
		r.joins++
	}
	for _, g := range s.Groups {
		if by > 0 {
			g.joined.Store(r.joins)
		}
		g.Used += by
		g.Count.Store(int64(g.Used))
		g.Tally.Members += by
	}
	if s.values || len(s.Groups) == 0 { // sets without places are never crowded out
		return
	}
	r.members[s.Generation] += by
	switch r.members[s.Generation] {
	case 0:
		delete(r.members, s.Generation)
		r.oldest = math.MaxUint32
		for generation := range r.members {
			r.oldest = min(r.oldest, generation)
		}
	case by:
		r.oldest = min(r.oldest, s.Generation)
	}
	r.dates.Store(r.oldest)
}

func (r *registry) add(s *Set, places []Place) uint32 {
	s.Groups = make([]*Group, len(places))
	for i, p := range places {
		g := r.Groups[p.Key]
		if g == nil {
			g = r.found(&p, s.values)
		}
		if p.pool != 0 && g.Party.Pool == nil {
			r.enter(g, &p)
		}
		g.Sets++
		s.Groups[i] = g
		if !s.values && !p.party && p.Terms.Points.Each > 0 {
			s.Tolls = append(s.Tolls, toll{limit: p.Limit, pace: p.Terms.Points, group: g})
		}
	}
	s.Plain = !s.Output && !s.Promoted && len(s.Tolls) == 0
	var id uint32
	if n := len(r.free); n > 0 {
		id, r.free = r.free[n-1], r.free[:n-1]
	} else {
		r.last++
		id = r.last
	}
	page := &r.pages[id/setPage]
	if page.Load() == nil {
		page.Store(&[setPage]atomic.Pointer[Set]{})
	}
	page.Load()[id%setPage].Store(s)
	r.Ids[s.key] = id
	r.owned[s.account]++
	return id
}

// found makes a group.
func (r *registry) found(p *Place, values bool) *Group {
	g := &Group{Key: p.Key, Rule: p.Limit.Name, values: values, Tally: &Tally{}}
	if p.party {
		g.Party = &fair.Party{}
	} else if !values { // label values are not summed up
		g.Tally = r.tally(p.Limit.Name)
	}
	g.Tally.Groups++
	r.Groups[p.Key] = g
	r.open.Put(g)
	return g
}

// tally returns the tally of a rule.
func (r *registry) tally(rule string) *Tally {
	if r.Tallies[rule] == nil {
		r.Tallies[rule] = &Tally{}
	}
	return r.Tallies[rule]
}

// leave removes a member from a set, and forgets empty sets and groups.
func (r *registry) leave(id uint32) {
	s := r.Set(id)
	r.change(s, -1)
	if s.Members > 0 || s.left != 0 {
		return
	}
	for _, g := range s.Groups {
		if g.Sets--; g.Sets == 0 {
			r.forget(g)
		}
	}
	delete(r.Ids, s.key)
	if r.owned[s.account]--; r.owned[s.account] == 0 {
		delete(r.owned, s.account)
	}
	r.pages[id/setPage].Load()[id%setPage].Store(nil)
	r.free = append(r.free, id)
}

// depart takes out a member that lost its place, and notifies those who were asked about its groups.
func (r *registry) depart(id, window uint32) {
	for _, g := range r.Set(id).Groups {
		if g.about != nil {
			g.about.age(window)
			g.about.gone[0]++
		}
	}
	r.leave(id)
}

// Observe calls f with the tally of each rule, without the lock.
func (r *registry) Observe(f func(rule string, t Tally)) {
	r.Mu.Lock()
	all := make(map[string]Tally, len(r.Tallies))
	for rule, t := range r.Tallies {
		all[rule] = *t
	}
	r.Mu.Unlock()
	for rule, t := range all {
		f(rule, t)
	}
}
