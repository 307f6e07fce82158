// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package stats

import (
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"
)

// At the beginning of a window all counts need a sketch: senders must not wait for its memory.
func TestAWindowTakesTheMemoryOfOneThatIsForgotten(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	var marks [1100]mark
	for i := range marks {
		marks[i] = markOf(random.Uint64())
	}
	var d distinct
	window := func() {
		for _, m := range marks[:500] {
			d.add(m)
		}
		d.turn()
	}
	window()
	window()
	require.Equal(t, 2*sketchBytes, d.bytes())
	require.Zero(t, testing.AllocsPerRun(10, window))
	require.Equal(t, 2*sketchBytes, d.bytes())
	for _, m := range marks[1000:] {
		d.add(m)
	}
	require.InDelta(t, 600, d.estimate(), 600*3*StandardError)
	require.InDelta(t, 100, d.fresh(), 600*3*StandardError, "nothing is left of the window before the last")
	for want := range 2 {
		d.turn()
		require.Equal(t, 2*(1-want)*sketchBytes, d.bytes(), "what is not needed is given back")
	}
	require.Zero(t, d.estimate())
}
