// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package frame

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestShorterStretchesAreAlike: the end of a stretch of a different length is found in the previous one, at an
// increasing distance.
func TestShorterStretchesAreAlike(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 7))
	noise := func(n int) []byte {
		b := make([]byte, n)
		for i := range b {
			b[i] = byte(r.Uint32())
		}
		return b
	}
	var targets [][]byte
	for range 100 {
		targets = append(targets, noise(24))
	}
	var data []byte
	var runs []Run
	for i, head := range []int{16, 29, 16, 21} {
		length := head + 8 + 24
		run := Run{At: len(data) + length, Length: length, Count: len(targets) - 1}
		require.True(t, run.Differ(head, 4))
		if i > 0 {
			before := &runs[i-1]
			run.Like, run.Drift = run.At+head-(before.At+before.Length-32), length-before.Length
		}
		begin := noise(head)
		for _, of := range targets {
			data = slices.Concat(data, begin, noise(8), of)
		}
		runs = append(runs, run)
	}
	size := func(runs []Run) int {
		framed := new(Encoder).Append(nil, data, Known{Runs: slices.Clone(runs)})
		got, err := reader(t).DecodeAll(framed, nil)
		require.NoError(t, err)
		require.True(t, slices.Equal(data, got))
		return len(framed)
	}
	told := size(runs)
	for i := range runs {
		runs[i].Drift = 0
	}
	still := size(runs)
	assert.Less(t, told, still-still/4)
}

// TestDriftNeedNotBeRight: both compressions verify the distances.
func TestDriftNeedNotBeRight(t *testing.T) {
	r, d, e := rand.New(rand.NewPCG(1, 9)), reader(t), &Encoder{}
	for i := range 100 {
		h := newHerd(r, 1<<(8+r.IntN(12)))
		for j := range h.runs {
			h.runs[j].Like, h.runs[j].Drift = r.IntN(len(h.data)), r.IntN(200)-100
		}
		got, err := d.DecodeAll(e.Append(nil, h.data, Known{Runs: slices.Clone(h.runs)}), nil)
		require.NoError(t, err, i)
		require.True(t, slices.Equal(h.data, got), i)
		requireSnappy(t, &Snappy{}, h.data, Known{Runs: slices.Clone(h.runs)})
	}
}
