// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package stats

import (
	"math/rand/v2"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestExtrapolation(t *testing.T) {
	f := func(all, in, series int) {
		t.Helper()
		random := rand.New(rand.NewPCG(1, 4))
		met := map[int]bool{}
		found := 0
		for i := range series {
			met[random.IntN(all)] = true
			if i+1 == in {
				found = len(met)
			}
		}
		require.InEpsilon(t, len(met), extrapolate(float64(found), float64(in), float64(series)), 0.05)
	}
	f(10, 1_000, 100_000)
	f(2_000, 1_000, 100_000)
	f(3_000, 3_000, 30_000)
	require.InDelta(t, 80_000, extrapolate(10_000, 10_000, 80_000), 0)
}

func TestDistinctThingsAreEstimatedFromASample(t *testing.T) {
	f := func(distinct, members int) {
		t.Helper()
		const factor = 64
		random := rand.New(rand.NewPCG(1, 2))
		met := map[string]int{}
		for i := range distinct * members {
			if random.IntN(factor) == 0 {
				met[strconv.Itoa(i%distinct)]++
			}
		}
		got := Distinct(met, factor)
		require.InDelta(t, distinct, got.Value, 0.1*float64(distinct))
		require.LessOrEqual(t, got.Value+2*got.Error, 1+float64(distinct*members))
	}
	f(4_000, 300)
	f(2_000, 100)
	f(100, 1000)
	require.Equal(t, Estimate{Value: 2}, Distinct(map[string]int{"a": 1, "b": 5}, 1))

	met, random := map[string]int{}, rand.New(rand.NewPCG(1, 3))
	for i := range 310_000 { // 3000 have a hundred members each, and 10,000 have one
		if random.IntN(64) == 0 {
			met[strconv.Itoa(max(i-300_000, -i%3000))]++
		}
	}
	got := Distinct(met, 64)
	require.InDelta(t, 13_000, got.Value, 2*got.Error)
}
