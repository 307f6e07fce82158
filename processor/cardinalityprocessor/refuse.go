// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package cardinalityprocessor

import (
	"math/bits"
	"sync/atomic"
)

// What finds no room comes again and again, from all sides. That there is none is mostly found out without a lock: a group that was
// full a moment ago has no place for a series that is nowhere.

// refuseAtOnce is refuse, as far as that can be told without the registry's lock. Else no limit refuses, or it is to be asked.
func (l *limiter) refuseAtOnce(x *sighting) verdict {
	dates := l.groups.dates.Load()
	full := func(b *bound, key uint64, room int) bool { return dates >= b.since && l.groups.open.used(key) >= room }
	for i := range x.places {
		if x.places[i].party { // who is refused is noted there
			return verdict{}
		}
	}
	for i := range x.values {
		v := &x.values[i]
		label, room := &v.limit.labels[v.label], v.place.terms.labels[v.label]
		switch {
		case !full(&label.values, v.place.key, room):
		case l.values.absent(v.fp):
			return verdict{limit: v.limit, reason: reasonLabel, label: labelAt{label.key, v.side}}
		default: // it is there, or moves just now
			return verdict{}
		}
	}
	if len(x.values) > 1 { // a series may have several that are new: not all may find room
		return verdict{}
	}
	for i := range x.places {
		p := &x.places[i]
		if p.terms.max > 0 && full(&p.limit.series, p.key, x.room(p.terms)) {
			return verdict{limit: p.limit, reason: reasonSeries}
		}
	}
	return verdict{}
}

// groupIndex finds groups by their keys. Who has the registry's lock changes it, and everybody may look.
type groupIndex struct {
	slots atomic.Pointer[[]atomic.Pointer[group]] // as many as a power of two, at most two thirds taken; the key chooses where to begin
	live  int
	taken int // live, and those that were removed
}

// removed takes the place of a group that is gone: look on.
var removed group

const minGroupSlots = 16

// used is how many members a group has.
func (x *groupIndex) used(key uint64) int {
	slots := x.slots.Load()
	if slots == nil {
		return 0
	}
	for i := home(key, len(*slots)); ; i = (i + 1) & (len(*slots) - 1) {
		switch g := (*slots)[i].Load(); {
		case g == nil:
			return 0
		case g != &removed && g.key == key:
			return int(g.count.Load())
		}
	}
}

// home mixes a key, whose bits say nothing of their own kind: keys are hashes.
func home(key uint64, slots int) int {
	return int(key >> (64 - bits.TrailingZeros(uint(slots))))
}

// put adds a group that is not there.
func (x *groupIndex) put(g *group) {
	slots := x.slots.Load()
	if slots == nil || (x.taken+1)*3 > len(*slots)*2 {
		slots = x.resize(max(minGroupSlots, 1<<bits.Len(uint(x.live*2))))
	}
	x.insert(*slots, g)
	x.live++
	x.taken++
}

func (x *groupIndex) insert(slots []atomic.Pointer[group], g *group) {
	i := home(g.key, len(slots))
	for slots[i].Load() != nil {
		i = (i + 1) & (len(slots) - 1)
	}
	slots[i].Store(g)
}

func (x *groupIndex) resize(n int) *[]atomic.Pointer[group] {
	to := make([]atomic.Pointer[group], n)
	if from := x.slots.Load(); from != nil {
		for i := range *from {
			if g := (*from)[i].Load(); g != nil && g != &removed {
				x.insert(to, g)
			}
		}
	}
	x.taken = x.live
	x.slots.Store(&to)
	return &to
}

// remove takes a group out that is there.
func (x *groupIndex) remove(g *group) {
	slots := *x.slots.Load()
	for i := home(g.key, len(slots)); ; i = (i + 1) & (len(slots) - 1) {
		if slots[i].Load() == g {
			slots[i].Store(&removed)
			x.live--
			break
		}
	}
	if n := len(slots); n > minGroupSlots && x.live*8 < n {
		x.resize(max(minGroupSlots, 1<<bits.Len(uint(x.live*2))))
	}
}
