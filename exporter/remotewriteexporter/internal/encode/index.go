// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package encode

import "iter"

// index finds the entries of a slab by hash. Those of one hash, and their neighbours, are side by side, so that what is
// not there costs one look into memory.
type index struct {
	slots []indexed // a power of two of them, some of them always free
	used  int
}

// indexed is an entry's number, 0 where there is none.
type indexed struct {
	hash, entry uint32
}

const minIndex = 8

// of yields the entries of a hash.
func (x *index) of(hash uint32) iter.Seq[uint32] {
	return func(yield func(uint32) bool) {
		if x.used == 0 {
			return
		}
		last := uint32(len(x.slots) - 1)
		for i := hash & last; x.slots[i].entry != 0; i = (i + 1) & last {
			if s := x.slots[i]; s.hash == hash && !yield(s.entry) {
				return
			}
		}
	}
}

func (x *index) insert(hash, entry uint32) {
	if 5*(x.used+1) > 4*len(x.slots) {
		x.resize(max(minIndex, 2*len(x.slots)))
	}
	x.used++
	x.put(indexed{hash, entry})
}

func (x *index) put(s indexed) {
	last := uint32(len(x.slots) - 1)
	i := s.hash & last
	for x.slots[i].entry != 0 {
		i = (i + 1) & last
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

// sweep removes what is not to be kept, and the room that leaves too much.
func (x *index) sweep(keep func(entry uint32) bool) {
	left := 0
	for i := range x.slots {
		if s := &x.slots[i]; s.entry != 0 {
			if keep(s.entry) {
				left++
			} else {
				s.entry = 0
			}
		}
	}
	if left == x.used {
		return
	}
	// What stays has to move up to where it will be looked for.
	x.used = left
	n := len(x.slots)
	for n > minIndex && 5*left <= 4*(n/4) {
		n /= 2
	}
	x.resize(n)
}

func (x *index) each(do func(entry uint32)) {
	for _, s := range x.slots {
		if s.entry != 0 {
			do(s.entry)
		}
	}
}
