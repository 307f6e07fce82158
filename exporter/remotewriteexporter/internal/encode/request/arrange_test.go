// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package request

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/godwit-otel/godwit/exporter/remotewriteexporter/internal/encode/cache"
)

// TestArrangementIsASort compares with an explicit sort, for random layouts and resources.
func TestArrangementIsASort(t *testing.T) {
	a := &arrangement{}
	together := 0
	for seed := range uint64(300) {
		r := rand.New(rand.NewPCG(seed, 5))
		n, layouts := 1+r.IntN(300), 1+r.IntN(20)
		var list []*cache.Series
		var places []uint32
		for place := uint32(0); len(list) < n; place++ {
			for range 1 + r.IntN(1+r.IntN(20)) {
				list = append(list, &cache.Series{Layout: uint32(1 + r.IntN(layouts))})
				places = append(places, place)
			}
		}
		a.byLayout(list, layouts+1, func(slot uint32) uint32 { return places[slot] })

		resources, first, rank := map[uint32]map[uint32]bool{}, map[uint32]int{}, make([]int, len(list))
		seen := map[[2]uint32]int{}
		for i, s := range list {
			if resources[s.Layout] == nil {
				resources[s.Layout], first[s.Layout] = map[uint32]bool{}, i
			}
			resources[s.Layout][places[i]] = true
			rank[i] = seen[[2]uint32{s.Layout, places[i]}]
			seen[[2]uint32{s.Layout, places[i]}]++
		}
		key := func(slot uint32) []int {
			if l := list[slot].Layout; len(resources[l]) >= minRun {
				together++
				return []int{first[l], rank[slot], int(slot)}
			}
			return []int{int(slot), 0, 0}
		}
		var want []uint32
		for i := range list {
			want = append(want, uint32(i))
		}
		slices.SortFunc(want, func(x, y uint32) int { return slices.Compare(key(x), key(y)) })
		require.Equal(t, want, a.order)
		for i, slot := range a.order {
			require.Equal(t, uint32(i), a.position[slot])
		}
	}
	require.Positive(t, together)
}
