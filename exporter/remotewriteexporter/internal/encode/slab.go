// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package encode

import (
	"slices"
	"sync/atomic"
)

const (
	// slabBits says how many entries a slab allocates at a time, and slabChunk too.
	slabBits  = 8
	slabChunk = 1 << slabBits
	// largestChunk bounds what it allocates at a time where entries are wide, in Ts: one entry of tens of thousands needs no room for 256.
	largestChunk = 1 << 14
)

// slab holds entries of one width by number, from 1 on; 0 is none, and stays zero. Entries that refer to each other by number have no
// pointers, so that the garbage collector passes over any number of them. They stay where they are until a sweep.
//
// Entries are added under a lock, and may be read meanwhile by whoever got their number from where it was put since.
type slab[T any] struct {
	width  int                   // Ts of an entry
	bits   uint8                 // of numbers, that say where an entry is in its chunk
	chunks atomic.Pointer[[][]T] // nil where a sweep left nothing
	gaps   int                   // how many are nil
	free   []uint32
}

func newSlab[T any](width int) *slab[T] {
	s := &slab[T]{width: width, bits: slabBits}
	for s.bits > 1 && width<<s.bits > largestChunk {
		s.bits--
	}
	s.chunks.Store(&[][]T{})
	s.grow()
	return s
}

// one is an entry of width 1, of which chunks have slabChunk.
func (s *slab[T]) one(n uint32) *T { return &(*s.chunks.Load())[n/slabChunk][n%slabChunk] }

// run is an entry of any width.
func (s *slab[T]) run(n uint32) []T {
	bits := s.bits & 31 // as it is: the compiler need not care for shifts that are too far
	at := int(n&(1<<bits-1)) * s.width
	return (*s.chunks.Load())[n>>bits][at : at+s.width]
}

// size is one more than the largest number.
func (s *slab[T]) size() int { return len(*s.chunks.Load()) << s.bits }

// add gives out the number of an entry, which is zero.
func (s *slab[T]) add() uint32 {
	if len(s.free) == 0 {
		s.grow()
	}
	last := len(s.free) - 1
	n := s.free[last]
	s.free = s.free[:last]
	return n
}

// giveBack takes back the entry that was added last, which nobody knows of.
func (s *slab[T]) giveBack(n uint32) {
	clear(s.run(n))
	s.free = append(s.free, n)
}

func (s *slab[T]) grow() {
	chunks, at := *s.chunks.Load(), 0
	chunk := make([]T, s.width<<s.bits)
	if s.gaps > 0 {
		for chunks[at] != nil {
			at++
		}
		chunks[at] = chunk // where no number leads yet
		s.gaps--
	} else {
		at = len(chunks)
		chunks = append(chunks, chunk)
		s.chunks.Store(&chunks)
	}
	first := at << s.bits
	for n := first + 1<<s.bits - 1; n >= max(first, 1); n-- {
		s.free = append(s.free, uint32(n))
	}
}

// each visits the entries of width 1 in order, those that are free among them.
func (s *slab[T]) each(do func(n uint32, entry *T)) {
	for i, chunk := range *s.chunks.Load() {
		for at := range chunk {
			do(uint32(i<<s.bits+at), &chunk[at])
		}
	}
}

// sweep frees what is not to be kept, and the chunks of which nothing is. Nobody may use the slab meanwhile.
func (s *slab[T]) sweep(keep func(n uint32) bool) {
	s.free = s.free[:0]
	chunks := *s.chunks.Load()
	for i, chunk := range slices.Backward(chunks) { // so that the first are used first
		if chunk == nil {
			continue
		}
		before, first := len(s.free), i<<s.bits
		for n := first + 1<<s.bits - 1; n >= max(first, 1); n-- {
			if !keep(uint32(n)) {
				clear(s.run(uint32(n)))
				s.free = append(s.free, uint32(n))
			}
		}
		if len(s.free)-before == 1<<s.bits {
			s.free = s.free[:before]
			chunks[i] = nil
			s.gaps++
		}
	}
	if cap(s.free) > 2*len(s.free)+slabChunk {
		s.free = append(make([]uint32, 0, len(s.free)), s.free...)
	}
}
