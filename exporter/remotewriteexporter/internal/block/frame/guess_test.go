// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package frame

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/godwit-otel/godwit/internal/alloctest"
)

// guessed are messages that differ from the one before in two places, a few in all, and guesses of them.
func guessed(r *rand.Rand, messages int) (data []byte, guesses []Guess) {
	for len(guesses) < 1+messages/20 {
		length := 20 + r.IntN(80)
		message := make([]byte, length)
		for i := range message {
			message[i] = byte(r.Uint32())
		}
		g := Guess{At: uint32(len(data) + length), Distance: uint32(length)}
		for range 1 + r.IntN(40) {
			message[length/3]++
			for i := range 1 + r.IntN(5) {
				message[length/2+i] = byte(r.Uint32())
			}
			if r.IntN(30) == 0 {
				message[r.IntN(length)]++
			}
			data = append(data, message...)
		}
		if g.End = uint32(len(data)); g.End > g.At {
			guesses = append(guesses, g)
		}
	}
	return data, guesses
}

// TestGuessesNeedNotBeRight: whatever they say, and wherever blocks end, what is read is what was written.
func TestGuessesNeedNotBeRight(t *testing.T) {
	r, d, e := rand.New(rand.NewPCG(8, 1)), reader(t), &Encoder{}
	for i := range 300 {
		data, guesses := guessed(r, 1<<r.IntN(15))
		if i%3 == 0 { // lies
			for j := range guesses {
				guesses[j].Distance = uint32(r.IntN(2 * len(data)))
			}
		}
		h := newHerd(r, 1<<r.IntN(16)) // runs behind them
		runs := slices.Clone(h.runs)
		for j := range runs {
			runs[j].At += len(data)
		}
		data = append(data, h.data...)
		framed := e.Append(nil, data, Known{Runs: runs, Guesses: slices.Clone(guesses)})
		got, err := d.DecodeAll(framed, nil)
		require.NoError(t, err, i)
		require.True(t, slices.Equal(data, got), i)
	}
}

func TestGuessesAreWorthIt(t *testing.T) {
	data, guesses := guessed(rand.New(rand.NewPCG(3, 4)), 20_000)
	var e Encoder
	found, told := len(e.Append(nil, data, Known{})), len(e.Append(nil, data, Known{Guesses: slices.Clone(guesses)}))
	assert.Less(t, told, found+found/50)
}

func TestGuessesAllocateNothing(t *testing.T) {
	data, guesses := guessed(rand.New(rand.NewPCG(3, 4)), 5000)
	e, again := &Encoder{}, slices.Clone(guesses)
	dst := e.Append(nil, data, Known{Guesses: again})
	assert.Zero(t, alloctest.PerRun(func() {
		copy(again, guesses)
		dst = e.Append(dst[:0], data, Known{Guesses: again})
	}))
}

func FuzzGuess(f *testing.F) {
	d := reader(f)
	f.Add([]byte("a message that differs in a few places, a message that differs in a new place"), uint32(39), uint32(70), uint32(39), uint8(0))
	f.Fuzz(func(t *testing.T, data []byte, at, end, distance uint32, times uint8) {
		data = slices.Repeat(data, 1+int(times))
		if int(at) > len(data) || end < at || int(end) > len(data) {
			return
		}
		var e Encoder
		framed := e.Append(nil, data, Known{Guesses: []Guess{{at, end, distance}}})
		got, err := d.DecodeAll(framed, nil)
		require.NoError(t, err)
		require.True(t, slices.Equal(data, got))
	})
}
