// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package catalog

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
)

// A table that was put aside has the things in use when it is next needed, whatever it had before.
func TestTablesPutAsideAreFilledAgain(t *testing.T) {
	var all []*piece
	for i := range 1000 {
		all = append(all, newPiece([]byte{byte(i), byte(i >> 8)}))
	}
	for name, do := range map[string]func(t *table[piece, *piece]){
		"find":   func(t *table[piece, *piece]) { t.find(0, func(*piece) bool { return false }) },
		"remove": func(t *table[piece, *piece]) { t.remove(newPiece("other")) },
		"insert": func(t *table[piece, *piece]) { t.Add(all[99]) },
		"retain": func(t *table[piece, *piece]) { t.retain(func(*piece) bool { return true }) },
		"all":    func(t *table[piece, *piece]) { t.all(func(*piece) bool { return false }) },
	} {
		var x table[piece, *piece]
		for _, p := range all {
			x.Add(p)
		}
		used := all[100:]
		x.putAside(slices.Values(slices.Concat(used, used[:50])))
		require.Empty(t, x.slots, name)
		require.Equal(t, 1000, x.count, name)
		do(&x)
		want := used
		if name == "insert" {
			want = all[99:]
		}
		require.Equal(t, len(want), x.count, name)
		for i, p := range all {
			found := x.find(p.hash(), func(other *piece) bool { return other == p })
			require.Equal(t, i >= 1000-len(want), found != nil, name)
		}
	}
}
