// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package cache

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestPointsOfManyAttributesTakeManyPlaces(t *testing.T) {
	r := room{most: 1000}
	require.True(t, r.takePoint(manyAttributes-1))
	require.Equal(t, 1, r.points)
	require.True(t, r.takePoint(80*placeAttributes))
	require.Equal(t, 81, r.points)
	require.False(t, r.takePoint(80*placeAttributes), "together they have one of wideShare places")
	require.EqualValues(t, 80, r.overflow.Load())
	for !r.isFull() {
		require.True(t, r.takePoint(1))
	}
	require.False(t, r.takePoint(1))
	require.EqualValues(t, 81, r.overflow.Load())
	for range 1000 {
		require.True(t, r.takeResource(), "they have places of their own")
	}
	require.False(t, r.takeResource())
	require.EqualValues(t, 82, r.overflow.Load())
	r.empty()
	require.True(t, r.takePoint(80*placeAttributes))
}
