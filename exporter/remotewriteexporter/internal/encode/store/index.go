// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package store

import "iter"

// Index finds the entries of a slab by hash. Those of one hash, and of neighbouring ones, are side by side, so that a
// miss costs one access to memory. They are in the order of their hashes, so that the index can grow by less than a
// factor of two: a larger one is filled from front to back.
type Index struct {
	Slots []indexed // some of them always free
	used  int
}

// indexed is an entry's number, 0 if the slot is free.
type indexed struct {
	Hash, Entry uint32
}

const minIndex = 8

// isFull reports whether there are too many entries for the slots: beyond this, misses quickly become more expensive.
func isFull(used, slots int) bool { return 5*used > 4*slots }

// slotsFor is the number of slots of an index after it grew by a quarter.
func slotsFor(used int) int { return max(minIndex, used+used/2+used/16) }

// Len is how many entries there are.
func (x *Index) Len() int { return x.used }

// start is the slot at which the entries of a hash begin.
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

// Insert adds an entry, which must not be there yet.
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

// Sweep removes entries that are not kept, and slots if too many are free. Entries that stay move up to where they will
// be looked for: it starts at a free slot, so that what comes before an entry is in its final place when the entry is
// reached.
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
