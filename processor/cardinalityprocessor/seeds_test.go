// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package cardinalityprocessor

import (
	"iter"
	"math/rand/v2"
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// livesVariable sets the number of lives for each test, with random seeds; with a number after an @, seeds begin with
// that one, to repeat a failure.
const livesVariable = "GODWIT_LIVES"

// seeds returns the first few seeds, or those that livesVariable sets.
func seeds(t *testing.T, few uint64) iter.Seq[uint64] {
	t.Helper()
	first, n := uint64(0), few
	if text := os.Getenv(livesVariable); text != "" {
		count, from, again := strings.Cut(text, "@")
		var err error
		n, err = strconv.ParseUint(count, 10, 32)
		require.NoError(t, err)
		if first = rand.Uint64N(1 << 48); again {
			first, err = strconv.ParseUint(from, 10, 64)
			require.NoError(t, err)
		}
		t.Logf("%d lives, of seeds from %d on", n, first)
	}
	return func(yield func(uint64) bool) {
		for seed := first; seed < first+n; seed++ {
			if !yield(seed) {
				return
			}
		}
	}
}
