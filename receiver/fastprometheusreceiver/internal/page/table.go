// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package page

// A table finds things by a hash. It takes less than half of the memory of a map, for it keeps no hash: it asks again when
// it grows. Nothing is ever removed.
type table[T any, P interface {
	*T
	hash() uint64
}] struct {
	slots []P
	count int
}

// find returns what has the hash and is the one asked for.
func (t *table[T, P]) find(hash uint64, is func(P) bool) P {
	for i := hash; len(t.slots) > 0; i++ {
		p := t.slots[i&uint64(len(t.slots)-1)]
		if p == nil || is(p) {
			return p
		}
	}
	return nil
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

// add adds what is not there yet.
func (t *table[T, P]) add(p P) { t.insert(p, p.hash()) }

func (t *table[T, P]) insert(p P, hash uint64) {
	if isFull(t.count, len(t.slots)) {
		old := *t
		t.makeRoom(old.count + 1)
		for p := range old.all {
			t.place(p, p.hash())
		}
	}
	t.place(p, hash)
	t.count++
}

// makeRoom makes the slots for so many things.
func (t *table[T, P]) makeRoom(n int) {
	slots := 16
	for isFull(n, slots) {
		slots *= 2
	}
	t.slots = make([]P, slots)
}

// isFull tells whether so many things need more slots. In a large table memory counts; in others half of the slots stay
// free, since each thing that new ones are compared with is a look elsewhere.
func isFull(count, slots int) bool {
	if slots > 1<<17 {
		return 4*count >= 3*slots
	}
	return 2*count >= slots
}

func (t *table[T, P]) place(p P, i uint64) {
	for t.slots[i&uint64(len(t.slots)-1)] != nil {
		i++
	}
	t.slots[i&uint64(len(t.slots)-1)] = p
}

// all visits everything.
func (t *table[T, P]) all(yield func(P) bool) {
	for _, p := range t.slots {
		if p != nil && !yield(p) {
			return
		}
	}
}
