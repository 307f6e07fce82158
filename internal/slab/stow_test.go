// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package slab

import (
	"fmt"
	"math/rand/v2"
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pmetric"
)

type (
	numbers = pmetric.NumberDataPointSlice
	number  = pmetric.NumberDataPoint
)

// Stowed elements are as good as removed, come back with their contents, and nothing else does.
func TestStowedElementsAreRemovedAndComeBack(t *testing.T) {
	for seed := range uint64(50) {
		t.Run(fmt.Sprint("seed=", seed), func(t *testing.T) {
			random := rand.New(rand.NewPCG(seed, 4))
			points, want := pmetric.NewNumberDataPointSlice(), pmetric.NewNumberDataPointSlice()
			stowed := map[int64]bool{}
			next := int64(0)
			for range 40 {
				switch random.IntN(3) {
				case 0:
					out := make([]bool, points.Len())
					for i := range out {
						out[i] = random.IntN(3) == 0
						if out[i] && hides() {
							stowed[points.At(i).IntValue()] = true
						}
					}
					i := -1
					want.RemoveIf(func(number) bool {
						i++
						return out[i]
					})
					before := points.Len()
					kept := Stow[numbers, number](points, out)
					if hides() {
						require.Equal(t, before-points.Len(), kept)
					} else {
						require.Zero(t, kept)
					}
				case 1:
					n, had := points.Len()+random.IntN(5), points.Len()
					found := Unstow[numbers, number](points, n)
					require.Equal(t, min(n-had, len(stowed)), found)
					require.Equal(t, had+found, points.Len())
					for i := had; i < points.Len(); i++ {
						p := points.At(i)
						require.True(t, stowed[p.IntValue()], "%d was not stowed", p.IntValue())
						delete(stowed, p.IntValue())
						v, ok := p.Attributes().Get("n")
						require.True(t, ok)
						require.Equal(t, p.IntValue(), v.Int())
						p.CopyTo(want.AppendEmpty())
					}
				default:
					if Unstow[numbers, number](points, points.Len()+1) == 1 { // otherwise it would be overwritten
						p := points.At(points.Len() - 1)
						delete(stowed, p.IntValue())
						p.CopyTo(want.AppendEmpty())
						break
					}
					p := points.AppendEmpty()
					p.SetIntValue(next)
					p.Attributes().PutInt("n", next)
					p.CopyTo(want.AppendEmpty())
					next++
				}
				runtime.GC()
				require.Equal(t, want.Len(), points.Len())
				for i := range want.Len() {
					require.Equal(t, want.At(i).IntValue(), points.At(i).IntValue())
				}
			}
		})
	}
}

// hides reports whether elements can be stowed at all.
func hides() bool {
	points := pmetric.NewNumberDataPointSlice()
	points.AppendEmpty()
	return Stow[numbers, number](points, []bool{true}) == 1
}

// The unused capacity of a slice contains no elements, whoever allocated it.
func TestUnusedRoomHoldsNothing(t *testing.T) {
	points := pmetric.NewNumberDataPointSlice()
	points.EnsureCapacity(10)
	require.Zero(t, Unstow[numbers, number](points, 10))
	points.AppendEmpty()
	points.RemoveIf(func(number) bool { return true })
	require.Zero(t, Unstow[numbers, number](points, 10))
	s := Kept()
	const n = 20
	for range 10 {
		_, points = s.AppendGauge(pmetric.NewMetricSlice(), n)
		require.Zero(t, Unstow[numbers, number](points, n))
		for range n {
			s.AppendNumber(points)
		}
		s.Again()
	}
}
