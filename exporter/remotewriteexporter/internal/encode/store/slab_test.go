// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package store

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/godwit-otel/godwit/internal/racetest"
)

func TestIndexFindsWhatItKeeps(t *testing.T) {
	racetest.Sequential(t)
	const n = 10_000
	for _, hash := range []func(uint32) uint32{
		func(i uint32) uint32 { return i * 2654435761 },
		func(i uint32) uint32 { return i * 2654435761 >> 4 &^ 3 }, // some equal, all close together
	} {
		var x Index
		for range x.Of(1) {
			t.Fatal("found in nothing")
		}
		for i := uint32(1); i <= n; i++ {
			x.Insert(hash(i), i)
		}
		check := func(kept func(uint32) bool) {
			t.Helper()
			left := 0
			for i := uint32(1); i <= n; i++ {
				times := 0
				for entry := range x.Of(hash(i)) {
					if entry == i {
						times++
					}
				}
				want := 0
				if kept(i) {
					want, left = 1, left+1
				}
				require.Equal(t, want, times)
			}
			assert.Equal(t, left, x.used)
			each := 0
			for _, s := range x.Slots {
				if s.Entry != 0 {
					assert.True(t, kept(s.Entry))
					each++
				}
			}
			assert.Equal(t, left, each)
		}
		all := func(uint32) bool { return true }
		some := func(i uint32) bool { return i%100 == 0 }
		check(all)
		assert.LessOrEqual(t, len(x.Slots), 2*n)
		x.Sweep(all)
		check(all)
		x.Sweep(some)
		check(some)
		assert.LessOrEqual(t, len(x.Slots), 4*n/100)
		x.Sweep(func(uint32) bool { return false })
		check(func(uint32) bool { return false })
		assert.Len(t, x.Slots, minIndex)
	}
}

func TestSlabKeepsNumbersAndGivesChunksBack(t *testing.T) {
	racetest.Sequential(t)
	for width, chunk := range map[int]int{1: slabChunk, 3: slabChunk, largestChunk / slabChunk: slabChunk, 100: 128, 3000: 4, 60_000: 2} {
		checkSlab(t, width, chunk)
	}
}

func checkSlab(t *testing.T, width, chunk int) {
	t.Helper()
	s := NewSlab[uint32](width)
	require.Len(t, (*s.chunks.Load())[0], chunk*width)
	n := uint32(20 * chunk)
	add := func() uint32 {
		i := s.Add()
		require.Equal(t, make([]uint32, width), s.Run(i), "as if new")
		s.Run(i)[width-1] = i
		return i
	}
	check := func(i uint32) {
		require.Equal(t, make([]uint32, width-1), s.Run(i)[:width-1])
		require.Equal(t, i, s.Run(i)[width-1])
	}
	for i := uint32(1); i <= n; i++ {
		require.Equal(t, i, add())
	}
	chunks := func() (held int) {
		for _, c := range *s.chunks.Load() {
			if c != nil {
				held++
			}
		}
		return held
	}
	require.Equal(t, 21, chunks())
	s.Sweep(func(i uint32) bool { return i >= n/2 && i%2 == 0 })
	require.Equal(t, 12, chunks(), "the first, and those of the second half")
	for i := n / 2; i <= n; i += 2 {
		check(i)
	}
	seen := map[uint32]bool{}
	for range n / 2 {
		i := add()
		require.False(t, seen[i] || i >= n/2 && i <= n && i%2 == 0, "%d is taken", i)
		seen[i] = true
	}
	for i := range seen {
		check(i)
	}
	for i := n / 2; i <= n; i += 2 {
		check(i)
	}
	assert.LessOrEqual(t, s.Size(), int(n)+chunk, "gaps are filled first")
	s.Sweep(func(uint32) bool { return false })
	assert.Equal(t, 1, chunks())
	assert.Equal(t, make([]uint32, width), s.Run(0))
}
