// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package catalog

import (
	"hash/maphash"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestPiecesHaveTheirTexts(t *testing.T) {
	for _, n := range []int{0, 1, 2, longPiece - 1, longPiece, longPiece + 1, 1<<14 - 1, 1 << 14, 1<<14 + 1, 1 << 21} {
		text := strings.Repeat("x", max(n-1, 0)) + "yz"[:min(n, 1)]
		for _, p := range []*piece{newPiece(text), newPiece([]byte(text))} {
			require.Equal(t, text, p.text(), n)
			require.Equal(t, n == 0, p.isEmpty())
			require.Equal(t, maphash.String(seed, text), p.hash())
		}
	}
}

// A text that is only the name takes no memory besides it.
func TestBareTextsAreTheirNames(t *testing.T) {
	n := &Name{Final: "a", exposed: "b"}
	require.Same(t, bare, Whole(n, "b").body)
	require.Same(t, bare, Whole(n, []byte("b")).body)
	other := Whole(n, "a")
	require.NotSame(t, bare, other.body)
	for want, l := range map[string]*Line{"a": {text: other}, "b": {text: Whole(n, "b")}} {
		require.Equal(t, want, l.String())
		require.Equal(t, maphash.String(seed, want), l.hash())
		require.True(t, l.Is([]byte(want)))
		require.Equal(t, 1, l.Match([]byte(want+" 1"), nil))
		require.False(t, l.Is([]byte("c")))
	}
}
