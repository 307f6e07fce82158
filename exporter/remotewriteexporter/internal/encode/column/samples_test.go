// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package column

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/godwit-otel/godwit/internal/alloctest"
)

// TestSamplesInPiecesAreTheListThatWasAdded compares with a slice at every length at which something changes, and with
// the rest after clear.
func TestSamplesInPiecesAreTheListThatWasAdded(t *testing.T) {
	var s samples
	for _, n := range []int{0, 1, 15, 16, 17, pieceSize - 1, pieceSize, pieceSize + 1, 3*pieceSize - 1, 3 * pieceSize, 3*pieceSize + 5, 7} {
		var want []Sample
		for i := range n {
			v := Sample{Of: uint32(i), Bits: uint64(n)}
			*s.Add() = v
			want = append(want, v)
		}
		require.Equal(t, n, s.Len())
		for i := range want {
			require.Equal(t, want[i], *s.At(i))
		}
		var room []Sample
		for first := 0; first < n; first += 1 + n/7 {
			for end := first; end <= n; end += 1 + n/5 {
				var got []Sample
				got, room = s.Some(room, first, end)
				require.Len(t, got, end-first)
				if end > first {
					require.Equal(t, want[first:end], got)
				}
			}
		}
		s.clear()
		require.Zero(t, s.Len())
		require.LessOrEqual(t, len(s.pieces), 1)
	}
}

func TestPiecesAreUsedAgain(t *testing.T) {
	var s samples
	fill := func() {
		for range 5 * pieceSize {
			s.Add().Bits = 1
		}
		s.clear()
	}
	fill()
	require.Zero(t, alloctest.PerRun(fill))
}
