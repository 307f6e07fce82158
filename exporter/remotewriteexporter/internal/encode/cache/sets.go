// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package cache

import (
	"math"
	"slices"

	"github.com/godwit-otel/godwit/exporter/remotewriteexporter/internal/encode/store"
)

// sets are sets of values, by size: those of points, and those that rules make of them.
type sets struct {
	byWidth map[int]*store.Slab[uint32]
	recent  recent
	widths  map[int]*keys // of values that rules made
	ids     int           // of all sets
}

func newSets() sets {
	return sets{byWidth: map[int]*store.Slab[uint32]{}, widths: map[int]*keys{}}
}

// of returns the slab of sets of n values.
func (s *sets) of(n int) *store.Slab[uint32] {
	slab := s.byWidth[n]
	if slab == nil {
		slab = store.NewSlab[uint32](n)
		s.byWidth[n] = slab
	}
	return slab
}

// width returns the keys for n values that rules made.
func (s *sets) width(n int) *keys {
	k := s.widths[n]
	if k == nil {
		k = &keys{names: make([]string, n), values: s.of(n)}
		s.widths[n] = k
	}
	return k
}

// share removes the set that was added last if a recent one is equal, and returns the one that stays. points is the
// number of all points.
func (s *sets) share(of *store.Slab[uint32], n uint32, points int) uint32 {
	values := ids(of.Run(n))
	if len(values) > math.MaxUint16 {
		return n
	}
	few, is := s.recent.candidates(values, points)
	for _, was := range few {
		if was.width == is.width && was.tag == is.tag && slices.Equal(of.Run(was.number), values) {
			of.GiveBack(n)
			s.ids -= len(values)
			return was.number
		}
	}
	copy(few[1:], few)
	is.number = n
	few[0] = is
	return n
}

// sweep frees sets that are not kept.
func (s *sets) sweep(kept map[int][]bool, points int) {
	s.recent.forget(points)
	s.ids = 0
	for width, of := range s.byWidth {
		kept := kept[width]
		of.Sweep(func(n uint32) bool { return kept[n] })
		s.ids += width * of.Used()
	}
}
