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

// add adds what is not there yet.
func (t *table[T, P]) add(p P) {
	if 4*t.count >= 3*len(t.slots) {
		old := t.slots
		t.slots = make([]P, max(16, 2*len(old)))
		for _, p := range old {
			if p != nil {
				t.place(p)
			}
		}
	}
	t.place(p)
	t.count++
}

func (t *table[T, P]) place(p P) {
	i := p.hash()
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
