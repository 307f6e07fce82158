// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package amount

import (
	rand "math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/godwit-otel/godwit/internal/alloctest"
)

// saved returns the encoded value, to compare two of them: whether missing counts are nil makes no difference.
func (v *Value) saved() string { return string(v.Append(nil)) }

// TestValuesInAnArena: values in an arena equal those with memory of their own, and kept values stay the same when the
// arena is reused.
func TestValuesInAnArena(t *testing.T) {
	random := rand.New(rand.NewPCG(7, 7))
	raw := func() []byte {
		all := make([]byte, random.IntN(40))
		for i := range all {
			all[i] = byte(random.IntN(12))
		}
		return all
	}
	var arena, difference Arena
	var kept [3]Value
	for range 5000 {
		var want [len(kept)]Value
		for i := range kept {
			m := anyPoint(byte(random.IntN(5)), raw())
			in := ValueIn(&arena, m, 0)
			want[i] = ValueAt(m, 0)
			require.Equal(t, want[i].saved(), in.saved())
			if i > 0 {
				less, ok := want[i].Minus(want[i-1])
				lessIn, okIn := in.MinusIn(&difference, kept[i-1])
				require.Equal(t, ok, okIn)
				require.Equal(t, less.saved(), lessIn.saved())
			}
			kept[i].Keep(&in)
			difference.Reset()
		}
		arena.Reset()
		for n := random.IntN(2 * leastCounts); n > 0; n-- {
			arena.take(1)[0] = 1 << 60
		}
		arena.Reset()
		for i := range kept {
			require.Equal(t, want[i].saved(), kept[i].saved())
		}
	}
}

// TestKeepTakesWhatIsThere: a value with the same number of counts needs no new memory, and no more counts are kept
// than it has.
func TestKeepTakesWhatIsThere(t *testing.T) {
	const histogram = 2
	m := anyPoint(histogram, []byte{5, 1, 2, 3, 4, 5})
	var arena Arena
	var kept Value
	require.Zero(t, alloctest.PerRun(func() {
		v := ValueIn(&arena, m, 0)
		v, _ = v.MinusIn(&arena, v)
		kept.Keep(&v)
		arena.Reset()
	}))
	require.Len(t, kept.Cells, 5)
	few := ValueIn(&arena, anyPoint(histogram, []byte{2, 1, 2}), 0)
	kept.Keep(&few)
	require.Equal(t, 2, cap(kept.Cells))
	none := ValueIn(&arena, anyPoint(histogram, []byte{0}), 0)
	kept.Keep(&none)
	require.Nil(t, kept.Cells)
}

// TestAHugeArenaIsNotKept: one batch must not occupy memory for ever.
func TestAHugeArenaIsNotKept(t *testing.T) {
	var arena Arena
	first := arena.take(1)
	first[0] = 3
	arena.take(maxCounts + 1)
	require.Equal(t, uint64(3), first[0], "it stays where it is")
	arena.Reset()
	require.Zero(t, cap(arena.counts))
}
