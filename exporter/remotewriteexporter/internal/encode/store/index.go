// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package store

import "iter"

// Index finds the entries of a slab by hash. Those of one hash, and their neighbours, are side by side, so that what is
// not there costs one look into memory. They are in the order of their hashes, so that the index need not double to grow: a
// larger one is filled from front to back.
type Index struct {
	Slots []indexed // some of them always free
	used  int
}

// indexed is an entry's number, 0 where there is none.
type indexed struct {
	Hash, Entry uint32
}

const minIndex = 8

// isFull says whether so many entries are too many for slots: the looks that a miss takes grow fast beyond.
func isFull(used, slots int) bool { return 5*used > 4*slots }

// slotsFor is how many slots an index gets that is to grow by a quarter.
func slotsFor(used int) int { return max(minIndex, used+used/2+used/16) }

// Len is how many entries there are.
func (x *Index) Len() int { return x.used }

// start is where the entries of a hash begin.
func (x *Index) start(hash uint32) int { return int(uint64(hash) * uint64(len(x.Slots)) >> 32) }

func (x *Index) after(i int) int {
	if i++; i < len(x.Slots) {
		return i
	}
	return 0
}

// Of yields the entries of a hash.
func (x *Index) Of(hash uint32) iter.Seq[uint32] {
	return func(yield func(uint32) bool) {
		if x.used == 0 {
			return
		}
		for i := x.start(hash); x.Slots[i].Entry != 0; i = x.after(i) {
			if s := x.Slots[i]; s.Hash == hash && !yield(s.Entry) {
				return
			}
		}
	}
}

// Insert adds an entry, which is not there yet.
func (x *Index) Insert(hash, entry uint32) {
	if isFull(x.used+1, len(x.Slots)) {
		x.resize(slotsFor(x.used))
	}
	x.used++
	x.put(indexed{hash, entry})
}

func (x *Index) put(s indexed) {
	i := x.start(s.Hash)
	for x.Slots[i].Entry != 0 {
		i = x.after(i)
	}
	x.Slots[i] = s
}

func (x *Index) resize(n int) {
	old := x.Slots
	x.Slots = make([]indexed, n)
	for _, s := range old {
		if s.Entry != 0 {
			x.put(s)
		}
	}
}

// Sweep removes what is not to be kept, and the room that leaves too much. What stays moves up to where it will be looked for: from a
// slot that is free on, so that what comes before an entry and stays is in its place when that is looked at.
func (x *Index) Sweep(keep func(entry uint32) bool) {
	if x.used == 0 {
		return
	}
	at := 0
	for x.Slots[at].Entry != 0 {
		at++
	}
	left := 0
	for range len(x.Slots) - 1 {
		at = x.after(at)
		s := x.Slots[at]
		if s.Entry == 0 {
			continue
		}
		x.Slots[at] = indexed{}
		if keep(s.Entry) {
			x.put(s)
			left++
		}
	}
	x.used = left
	if enough := slotsFor(left); 2*enough < len(x.Slots) {
		x.resize(enough)
	}
}
