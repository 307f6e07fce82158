// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package amount

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestAdvanceIsDifferenceAndSum: Advance does what subtracting, adding and copying do, or nothing.
func TestAdvanceIsDifferenceAndSum(t *testing.T) {
	advanced, refused := 0, 0
	for seed := range uint64(20_000) {
		r := rand.New(rand.NewPCG(seed, 1))
		shape := []Shape{ShapeNumber, ShapeHistogram, ShapeSummary}[r.IntN(3)]
		last, total, v := randomAmount(r, shape), randomAmount(r, shape), randomAmount(r, shape)
		if r.IntN(3) > 0 { // it counts on
			v = last.Clone()
			more := randomAmount(r, shape)
			more.Cells = more.Cells[:min(len(more.Cells), len(v.Cells))]
			v.Count, v.Sum = v.Count+more.Count, v.Sum+more.Sum
			for i, n := range more.Cells {
				v.Cells[i] += n
			}
			if shape == ShapeNumber && !v.IsFloat && v.Integer < math.MaxInt64-5 {
				v.Integer += int64(r.IntN(5))
			}
		}
		if r.IntN(50) == 0 {
			total.Shape = Shape(r.IntN(4))
		}
		was, sum, next := last.Clone(), total.Clone(), v.Clone()
		if !v.Advance(&last, &total) {
			require.Equal(t, was, last, seed)
			require.Equal(t, sum, total, seed)
			require.Equal(t, next, v, seed)
			refused++
			continue
		}
		advanced++
		grown, ok := next.Minus(was)
		require.True(t, ok, seed)
		require.True(t, sum.Add(grown), seed)
		was.Keep(&next)
		require.Equal(t, was, last, seed)
		require.Equal(t, sum, total, seed)
		require.Equal(t, next, v, seed)
	}
	require.Greater(t, advanced, 5_000)
	require.Greater(t, refused, 5_000)
}

// randomAmount is mostly small, and sometimes at the edge of what fits.
func randomAmount(r *rand.Rand, shape Shape) Value {
	count := func() uint64 {
		if r.IntN(20) == 0 {
			return math.MaxInt64 - r.Uint64N(3)
		}
		return r.Uint64N(6)
	}
	float := func() float64 {
		if r.IntN(20) == 0 {
			return math.MaxFloat64 * float64(1-2*r.IntN(2))
		}
		return float64(r.IntN(100)) / 10
	}
	v := Value{Shape: shape}
	if shape == ShapeNumber {
		if v.IsFloat = r.IntN(2) == 0; v.IsFloat {
			v.Float = float()
		} else {
			v.Integer = int64(count()) * int64(1-2*r.IntN(2))
		}
		return v
	}
	v.Count, v.Sum, v.HasSum = count(), float(), r.IntN(8) > 0
	if shape == ShapeHistogram {
		for range []int{0, 3, 3, 3, 5}[r.IntN(5)] {
			v.Cells = append(v.Cells, count())
		}
	}
	return v
}
