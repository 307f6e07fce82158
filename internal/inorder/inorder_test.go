// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package inorder

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestItSortsAsSlicesDoes(t *testing.T) {
	t.Parallel()
	type thing struct{ key, place int }
	compare := func(a, b thing) int { return a.key - b.key }
	for seed := range uint64(200) {
		r := rand.New(rand.NewPCG(seed, 1))
		all := make([]thing, r.IntN(100))
		for i := range all {
			all[i] = thing{r.IntN(10), i}
		}
		want := slices.Clone(all)
		slices.SortStableFunc(want, compare)
		Sort(all, compare)
		require.Equal(t, want, all)
	}
}
