// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package request

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestEachStepIsAnotherPlace: the cycles of a square of any size visit each of its places once, and the row of a
// message is the previous column, except where a cycle begins.
func TestEachStepIsAnotherPlace(t *testing.T) {
	for _, prime := range primes {
		k := int(prime)
		s := &square{cells: make([]uint32, k)}
		seen := make([]bool, k*k)
		before := 0
		for step := range k * k {
			i, j := s.at(step)
			require.False(t, seen[i*k+j], "step %d of %d", step, k)
			seen[i*k+j] = true
			if step%k > 0 && step > k {
				require.Equal(t, before, i, "step %d of %d", step, k)
			}
			before = j
		}
	}
}

func TestPrimesOfSquares(t *testing.T) {
	assert.Equal(t, minGrid, int(primes[0]))
	assert.Zero(t, largestPrime(minGrid-1))
	for n := minGrid; n < 300; n++ {
		want := min(n, 127)
		for divisible(want) {
			want--
		}
		require.Equal(t, want, largestPrime(n))
	}
}

func divisible(n int) bool {
	for d := 2; d < n; d++ {
		if n%d == 0 {
			return true
		}
	}
	return false
}
