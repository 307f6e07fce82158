// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package catalog

import "math/bits"

// A table finds things by a hash. It takes less than half of the memory of a map: it keeps but a byte of the hash, and asks
// again when it grows; and nearly all of its slots may be in use, for it takes no look at a thing to see that it is another.
// Nothing is ever removed but by retain.
type table[T any, P interface {
	*T
	hash() uint64
}] struct {
	tags  []byte // of slots: 0 of a free one
	slots []P
	count int
}

// A table has at most 15 things in 16 slots, and less than 8 in 9 where their number was known beforehand. So a free slot
// ends every search.
func isFull(count, slots int) bool { return 16*count > 15*slots }

func slotsFor(n int) int { return n + n/8 + 8 }

// tag is what a slot says of a hash. Its place says something else: it goes by the hash's first bits.
func tag(hash uint64) byte { return byte(hash%255) + 1 }

func (t *table[T, P]) start(hash uint64) int {
	i, _ := bits.Mul64(hash, uint64(len(t.slots)))
	return int(i)
}

// find returns what has the hash and is the one asked for.
func (t *table[T, P]) find(hash uint64, is func(P) bool) P {
	if t.count == 0 {
		return nil
	}
	for i, wanted := t.start(hash), tag(hash); ; i++ {
		if i == len(t.slots) {
			i = 0
		}
		switch t.tags[i] {
		case 0:
			return nil
		case wanted:
			if p := t.slots[i]; is(p) {
				return p
			}
		}
	}
}

// intern returns what is as asked for, or else adds something.
func (t *table[T, P]) intern(p P, is func(P) bool) P {
	hash := p.hash()
	if had := t.find(hash, is); had != nil {
		return had
	}
	t.insert(p, hash)
	return p
}

// Add adds what is not there yet.
func (t *table[T, P]) Add(p P) { t.insert(p, p.hash()) }

func (t *table[T, P]) insert(p P, hash uint64) {
	if isFull(t.count+1, len(t.slots)) {
		t.resize(t.count + t.count/2)
	}
	t.place(p, hash)
	t.count++
}

// makeRoom empties the table and makes slots for so many things.
func (t *table[T, P]) makeRoom(n int) {
	slots := slotsFor(n)
	t.tags, t.slots, t.count = make([]byte, slots), make([]P, slots), 0
}

func (t *table[T, P]) resize(n int) {
	old := *t
	t.makeRoom(n)
	for p := range old.all {
		t.place(p, p.hash())
	}
	t.count = old.count
}

// retain keeps what stays, in as many slots as that takes. These are made beforehand: things come in the order of their
// hashes, so they would all be at the front of a table that grows with them, each looking past all that came before.
func (t *table[T, P]) retain(stays func(P) bool) {
	kept := 0
	for p := range t.all {
		if stays(p) {
			kept++
		}
	}
	old := *t
	t.makeRoom(kept)
	for p := range old.all {
		if stays(p) {
			t.Add(p)
		}
	}
}

func (t *table[T, P]) place(p P, hash uint64) {
	i := t.start(hash)
	for t.tags[i] != 0 {
		if i++; i == len(t.slots) {
			i = 0
		}
	}
	t.tags[i], t.slots[i] = tag(hash), p
}

// all visits everything.
func (t *table[T, P]) all(yield func(P) bool) {
	for i, tag := range t.tags {
		if tag != 0 && !yield(t.slots[i]) {
			return
		}
	}
}
