// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package catalog

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestBounds(t *testing.T) {
	var (
		b     Bounds
		lines [1000]Line
	)
	value := func(i int) float64 {
		switch i % 500 {
		case 0:
			return math.NaN()
		case 1:
			return math.Inf(1)
		case 2:
			return math.Copysign(0, -1)
		default:
			return float64(i%500) - 3
		}
	}
	for i := range lines {
		b.set(&lines[i], value(i))
	}
	for i := range lines {
		require.Equal(t, math.Float64bits(value(i)), math.Float64bits(b.Of(&lines[i])))
	}
	require.Len(t, b.common, rareBound)
	require.Len(t, b.rare, 2*(500-rareBound))
	b.set(&lines[999], 7)
	require.Equal(t, 7, int(b.Of(&lines[999])), "it may become another")
}
