// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package series

import (
	"math/bits"
	"sync/atomic"

	"github.com/godwit-otel/godwit/processor/cardinalityprocessor/internal/ident"
	"github.com/godwit-otel/godwit/processor/cardinalityprocessor/internal/policy"
)

// Series without room come again and again, from all sides. They are mostly refused without a lock: a group that was
// full a moment ago has no place for a series that is not in the table.

// refuseAtOnce is refuse, as far as possible without the registry's lock. Without a verdict, refuse must be asked.
func (l *Limiter) refuseAtOnce(x *Sighting) Verdict {
	dates := l.Groups.dates.Load()
	full := func(b *policy.Bound, key uint64, room int) bool {
		return dates >= b.Since && l.Groups.open.Used(key) >= room
	}
	for i := range x.Places {
		if x.Places[i].party { // refusals of parties are counted there
			return Verdict{}
		}
	}
	for i := range x.Values {
		v := &x.Values[i]
		label, room := &v.limit.Labels[v.label], v.place.Terms.Labels[v.label]
		switch {
		case !full(&label.Values, v.place.Key, room):
		case l.Values.absent(v.fp):
			return Verdict{Limit: v.limit, Reason: policy.ReasonLabel, Label: ident.LabelAt{Key: label.Key, Side: v.side}}
		default: // it is there, or is being moved
			return Verdict{}
		}
	}
	if len(x.Values) > 1 { // if several are new, not all may find room
		return Verdict{}
	}
	for i := range x.Places {
		p := &x.Places[i]
		if p.Terms.Max > 0 && full(&p.Limit.Series, p.Key, x.room(p.Terms)) {
			return Verdict{Limit: p.Limit, Reason: policy.ReasonSeries}
		}
	}
	return Verdict{}
}

// GroupIndex finds groups by key. It is changed under the registry's lock, and read without one.
type GroupIndex struct {
	Slots atomic.Pointer[[]atomic.Pointer[Group]] // a power of two, at most two thirds of them used; the key chooses where to begin
	Live  int
	taken int // live, and removed ones
}

// removed replaces a group that is gone: the search continues.
var removed Group

// MinGroupSlots is the least number of slots.
const MinGroupSlots = 16

// Used is how many members a group has.
func (x *GroupIndex) Used(key uint64) int {
	if g := x.find(key); g != nil {
		return int(g.Count.Load())
	}
	return 0
}

func (x *GroupIndex) find(key uint64) *Group {
	slots := x.Slots.Load()
	if slots == nil {
		return nil
	}
	for i := home(key, len(*slots)); ; i = (i + 1) & (len(*slots) - 1) {
		if g := (*slots)[i].Load(); g == nil || g != &removed && g.Key == key {
			return g
		}
	}
}

// home is the slot where a search begins. Keys are hashes.
func home(key uint64, slots int) int {
	return int(key >> (64 - bits.TrailingZeros(uint(slots))))
}

// Put adds a group that is not there.
func (x *GroupIndex) Put(g *Group) {
	slots := x.Slots.Load()
	if slots == nil || (x.taken+1)*3 > len(*slots)*2 {
		slots = x.resize(max(MinGroupSlots, 1<<bits.Len(uint(x.Live*2))))
	}
	x.insert(*slots, g)
	x.Live++
	x.taken++
}

func (x *GroupIndex) insert(slots []atomic.Pointer[Group], g *Group) {
	i := home(g.Key, len(slots))
	for slots[i].Load() != nil {
		i = (i + 1) & (len(slots) - 1)
	}
	slots[i].Store(g)
}

func (x *GroupIndex) resize(n int) *[]atomic.Pointer[Group] {
	to := make([]atomic.Pointer[Group], n)
	if from := x.Slots.Load(); from != nil {
		for i := range *from {
			if g := (*from)[i].Load(); g != nil && g != &removed {
				x.insert(to, g)
			}
		}
	}
	x.taken = x.Live
	x.Slots.Store(&to)
	return &to
}

// Remove removes a group that is there.
func (x *GroupIndex) Remove(g *Group) {
	slots := *x.Slots.Load()
	for i := home(g.Key, len(slots)); ; i = (i + 1) & (len(slots) - 1) {
		if slots[i].Load() == g {
			slots[i].Store(&removed)
			x.Live--
			break
		}
	}
	if n := len(slots); n > MinGroupSlots && x.Live*8 < n {
		x.resize(max(MinGroupSlots, 1<<bits.Len(uint(x.Live*2))))
	}
}
