// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package encode

import "iter"

// index finds the entries of a slab by hash. Those of one hash, and their neighbours, are side by side, so that what is
// not there costs one look into memory. They are in the order of their hashes, so that the index need not double to grow: a
// larger one is filled from front to back.
type index struct {
	slots []indexed // some of them always free
	used  int
}

// indexed is an entry's number, 0 where there is none.
type indexed struct {
	hash, entry uint32
}

const minIndex = 8

// isFull says whether so many entries are too many for slots: the looks that a miss takes grow fast beyond.
func isFull(used, slots int) bool { return 5*used > 4*slots }

// slotsFor is how many slots an index gets that is to grow by a quarter.
func slotsFor(used int) int { return max(minIndex, used+used/2+used/16) }

// start is where the entries of a hash begin.
func (x *index) start(hash uint32) int { return int(uint64(hash) * uint64(len(x.slots)) >> 32) }

func (x *index) after(i int) int {
	if i++; i < len(x.slots) {
		return i
	}
	return 0
}

// of yields the entries of a hash.
func (x *index) of(hash uint32) iter.Seq[uint32] {
	return func(yield func(uint32) bool) {
		if x.used == 0 {
			return
		}
		for i := x.start(hash); x.slots[i].entry != 0; i = x.after(i) {
			if s := x.slots[i]; s.hash == hash && !yield(s.entry) {
				return
			}
		}
	}
}

func (x *index) insert(hash, entry uint32) {
	if isFull(x.used+1, len(x.slots)) {
		x.resize(slotsFor(x.used))
	}
	x.used++
	x.put(indexed{hash, entry})
}

func (x *index) put(s indexed) {
	i := x.start(s.hash)
	for x.slots[i].entry != 0 {
		i = x.after(i)
	}
	x.slots[i] = s
}

func (x *index) resize(n int) {
	old := x.slots
	x.slots = make([]indexed, n)
	for _, s := range old {
		if s.entry != 0 {
			x.put(s)
		}
	}
}

// sweep removes what is not to be kept, and the room that leaves too much. What stays moves up to where it will be looked for: from a
// slot that is free on, so that what comes before an entry and stays is in its place when that is looked at.
func (x *index) sweep(keep func(entry uint32) bool) {
	if x.used == 0 {
		return
	}
	at := 0
	for x.slots[at].entry != 0 {
		at++
	}
	left := 0
	for range len(x.slots) - 1 {
		at = x.after(at)
		s := x.slots[at]
		if s.entry == 0 {
			continue
		}
		x.slots[at] = indexed{}
		if keep(s.entry) {
			x.put(s)
			left++
		}
	}
	x.used = left
	if enough := slotsFor(left); 2*enough < len(x.slots) {
		x.resize(enough)
	}
}
