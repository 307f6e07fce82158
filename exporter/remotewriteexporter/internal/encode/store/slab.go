// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

// Package store keeps up to millions of entries, by number: entries in slabs, texts as symbols, and indexes that find either by
// hash. It has no pointer per entry, so that the garbage collector skips any number of them.
//
// Numbers start at 1; 0 means none, and the empty text. A swept number may be assigned again, so nobody may hold it then.
package store

import (
	"slices"
	"sync/atomic"
)

const (
	// slabBits is the size of a chunk in entries, as is slabChunk.
	slabBits  = 8
	slabChunk = 1 << slabBits
	// largestChunk limits a chunk of wide entries, in Ts: one entry of tens of thousands needs no room for 256.
	largestChunk = 1 << 14
)

// Slab holds entries of one width by number, from 1 on; 0 is none, and stays zero. Entries that refer to each other by
// number have no pointers, so the garbage collector skips them. They stay where they are until a sweep.
//
// Entries are added under a lock, and may be read concurrently by those who got their number from something published
// since.
type Slab[T any] struct {
	width  int                   // Ts of an entry
	bits   uint8                 // bits of a number that are the index in its chunk
	chunks atomic.Pointer[[][]T] // nil where a sweep left nothing
	gaps   int                   // number of nil chunks
	Free   []uint32
}

// NewSlab makes a slab of entries that are width Ts each.
func NewSlab[T any](width int) *Slab[T] {
	s := &Slab[T]{width: width, bits: slabBits}
	for s.bits > 1 && width<<s.bits > largestChunk {
		s.bits--
	}
	s.chunks.Store(&[][]T{})
	s.grow()
	return s
}

// One returns an entry of width 1; such chunks have slabChunk entries.
func (s *Slab[T]) One(n uint32) *T { return &(*s.chunks.Load())[n/slabChunk][n%slabChunk] }

// Run returns an entry of any width.
func (s *Slab[T]) Run(n uint32) []T {
	bits := s.bits & 31 // unchanged; tells the compiler that shifts are in range
	at := int(n&(1<<bits-1)) * s.width
	return (*s.chunks.Load())[n>>bits][at : at+s.width]
}

// Size is one more than the largest number.
func (s *Slab[T]) Size() int { return len(*s.chunks.Load()) << s.bits }

// Used is the number of entries.
func (s *Slab[T]) Used() int { return s.Size() - s.gaps<<s.bits - len(s.Free) }

// Add returns the number of a new entry, which is zero.
func (s *Slab[T]) Add() uint32 {
	if len(s.Free) == 0 {
		s.grow()
	}
	last := len(s.Free) - 1
	n := s.Free[last]
	s.Free = s.Free[:last]
	return n
}

// GiveBack removes the entry that was added last, whose number nobody has.
func (s *Slab[T]) GiveBack(n uint32) {
	clear(s.Run(n))
	s.Free = append(s.Free, n)
}

func (s *Slab[T]) grow() {
	chunks, at := *s.chunks.Load(), 0
	chunk := make([]T, s.width<<s.bits)
	if s.gaps > 0 {
		for chunks[at] != nil {
			at++
		}
		chunks[at] = chunk // no number refers to it yet
		s.gaps--
	} else {
		at = len(chunks)
		chunks = append(chunks, chunk)
		s.chunks.Store(&chunks)
	}
	first := at << s.bits
	for n := first + 1<<s.bits - 1; n >= max(first, 1); n-- {
		s.Free = append(s.Free, uint32(n))
	}
}

// Each visits the entries of width 1 in order, including free ones.
func (s *Slab[T]) Each(do func(n uint32, entry *T)) {
	for i, chunk := range *s.chunks.Load() {
		for at := range chunk {
			do(uint32(i<<s.bits+at), &chunk[at])
		}
	}
}

// Sweep frees entries that are not kept, and empty chunks. Nobody may use the slab meanwhile.
func (s *Slab[T]) Sweep(keep func(n uint32) bool) {
	s.Free = s.Free[:0]
	chunks := *s.chunks.Load()
	for i, chunk := range slices.Backward(chunks) { // so that the first ones are used first
		if chunk == nil {
			continue
		}
		before, first := len(s.Free), i<<s.bits
		for n := first + 1<<s.bits - 1; n >= max(first, 1); n-- {
			if !keep(uint32(n)) {
				clear(s.Run(uint32(n)))
				s.Free = append(s.Free, uint32(n))
			}
		}
		if len(s.Free)-before == 1<<s.bits {
			s.Free = s.Free[:before]
			chunks[i] = nil
			s.gaps++
		}
	}
	if cap(s.Free) > 2*len(s.Free)+slabChunk {
		s.Free = append(make([]uint32, 0, len(s.Free)), s.Free...)
	}
}
