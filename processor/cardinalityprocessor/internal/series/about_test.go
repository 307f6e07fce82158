// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package series

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// TestABatchOfTheWindowBeforeForgetsNothing: of two batches, the one that was decided first may be the last to update
// its groups.
func TestABatchOfTheWindowBeforeForgetsNothing(t *testing.T) {
	a := &about{}
	a.born(5)
	a.born(6)
	a.born(5)
	require.Equal(t, [2]int{2, 1}, a.births)
	a.born(7)
	require.Equal(t, [2]int{1, 2}, a.births)
	a.born(9)
	require.Equal(t, [2]int{1, 0}, a.births)
}
