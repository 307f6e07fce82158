// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package catalog

// A table finds things by their hash. It takes less than half of the memory of a map. It keeps half of each hash, so
// that it can grow without looking at the things, and nearly all of its slots may be in use, since it can tell things
// apart without looking at them. What a hash is made of may be texts all over the memory: hashing a million of them
// again took a second.
type table[T any, P interface {
	*T
	hash() uint64
}] struct {
	hashes []uint32 // of the things in slots, 0 if free
	slots  []P
	count  int
	things func(yield func(P) bool) // of a table that was put aside; else nil
}

// A table has at most 15 things in 16 slots, and less than 8 in 9 if their number was known beforehand. So a free slot
// ends every search.
func isFull(count, slots int) bool { return 16*count > 15*slots }

func slotsFor(n int) int { return n + n/8 + 8 }

// half is the part of a hash that is kept, never 0. Hashes may differ in their last bits only.
func half(hash uint64) uint32 { return max(uint32(hash*0x9e3779b97f4a7c15>>32), 1) }

func (t *table[T, P]) start(half uint32) int { return int(uint64(half) * uint64(len(t.slots)) >> 32) }

// putAside frees the slots. When the table is next needed, it is filled with the things, each of which may come twice.
func (t *table[T, P]) putAside(things func(yield func(P) bool)) {
	t.hashes, t.slots, t.things = nil, nil, things
}

// fill makes the slots of a table that was put aside.
func (t *table[T, P]) fill() {
	if t.things == nil {
		return
	}
	things := t.things
	t.things = nil
	t.makeRoom(t.count)
	for p := range things {
		hash := p.hash()
		if t.find(hash, func(other P) bool { return other == p }) == nil {
			t.insert(p, hash)
		}
	}
}

// find returns the thing with the hash for which is returns true.
func (t *table[T, P]) find(hash uint64, is func(P) bool) P {
	t.fill()
	if t.count == 0 {
		return nil
	}
	wanted := half(hash)
	for i := t.start(wanted); ; i++ {
		if i == len(t.slots) {
			i = 0
		}
		switch t.hashes[i] {
		case 0:
			return nil
		case wanted:
			if p := t.slots[i]; is(p) {
				return p
			}
		}
	}
}

// intern returns the known thing for which is returns true, or adds p.
func (t *table[T, P]) intern(p P, is func(P) bool) P {
	hash := p.hash()
	if had := t.find(hash, is); had != nil {
		return had
	}
	t.insert(p, hash)
	return p
}

// Add adds a thing that is not known yet.
func (t *table[T, P]) Add(p P) { t.insert(p, p.hash()) }

func (t *table[T, P]) insert(p P, hash uint64) {
	t.fill()
	if isFull(t.count+1, len(t.slots)) {
		t.resize(t.count + t.count/2)
	}
	t.place(p, half(hash))
}

// makeRoom empties the table and makes slots for n things.
func (t *table[T, P]) makeRoom(n int) {
	slots := slotsFor(n)
	t.hashes, t.slots, t.count = make([]uint32, slots), make([]P, slots), 0
}

func (t *table[T, P]) resize(n int) {
	old := *t
	t.makeRoom(n)
	for i, half := range old.hashes {
		if half != 0 {
			t.place(old.slots[i], half)
		}
	}
}

// retain keeps what stays, in as many slots as needed. These are made beforehand: things come in the order of their
// hashes, so in a table that grows with them they would all be at the front, each behind all that came before.
func (t *table[T, P]) retain(stays func(P) bool) {
	t.fill()
	kept := 0
	for i, half := range t.hashes {
		switch {
		case half == 0:
		case stays(t.slots[i]):
			kept++
		default:
			t.hashes[i], t.slots[i] = 0, nil
		}
	}
	t.resize(kept)
}

// remove removes a thing, if it is there: things after it move up to where they will be looked for.
func (t *table[T, P]) remove(p P) bool {
	t.fill()
	if t.count == 0 {
		return false
	}
	wanted := half(p.hash())
	i := t.start(wanted)
	for t.hashes[i] != wanted || t.slots[i] != p {
		if t.hashes[i] == 0 {
			return false
		}
		i = t.after(i)
	}
	for at := t.after(i); t.hashes[at] != 0; at = t.after(at) {
		if t.isBetween(i, t.start(t.hashes[at]), at) {
			continue
		}
		t.hashes[i], t.slots[i] = t.hashes[at], t.slots[at]
		i = at
	}
	t.hashes[i], t.slots[i] = 0, nil
	if t.count--; slotsFor(4*t.count) < len(t.slots) {
		t.resize(2 * t.count)
	}
	return true
}

func (t *table[T, P]) after(i int) int {
	if i++; i == len(t.slots) {
		return 0
	}
	return i
}

// isBetween reports whether a slot is after one and not after other, cyclically.
func (t *table[T, P]) isBetween(one, slot, other int) bool {
	if one < other {
		return one < slot && slot <= other
	}
	return one < slot || slot <= other
}

// place puts a thing into a free slot, which must exist.
func (t *table[T, P]) place(p P, half uint32) {
	i := t.start(half)
	for t.hashes[i] != 0 {
		if i++; i == len(t.slots) {
			i = 0
		}
	}
	t.hashes[i], t.slots[i] = half, p
	t.count++
}

// all visits all things.
func (t *table[T, P]) all(yield func(P) bool) {
	t.fill()
	for i, half := range t.hashes {
		if half != 0 && !yield(t.slots[i]) {
			return
		}
	}
}
