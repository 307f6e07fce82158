// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package frame

import (
	"bytes"
	"math/rand/v2"
	"os/exec"
	"slices"
	"testing"

	"github.com/golang/snappy"
	"github.com/stretchr/testify/require"
)

// series are runs of messages of the same targets: a part of the series' own, a number, a part of the target's own, and
// another part of the series, in which targets differ now and then, as they do before the number. All of that is
// declared.
type series struct {
	r    *rand.Rand
	data []byte
	runs []Run
}

// seldom returns true once in the given number of calls, or never if it is 0.
func (s *series) seldom(often int) bool { return often > 0 && s.r.IntN(often) == 0 }

func (s *series) noise(n int) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(s.r.Uint32())
	}
	return b
}

// some adds runs of the same targets, whose messages have the same parts. Numbers and labels are those of the last run,
// or new.
func (s *series) some(runs, targets int) {
	r := s.r
	head, own, end := 4+r.IntN(40), r.IntN(40), r.IntN(3)*r.IntN(20)
	numbers, owns := make([][]byte, targets), make([][]byte, targets)
	for i := range targets {
		numbers[i], owns[i] = s.noise(8), s.noise(own)
	}
	length := head + 8 + own + end
	if length < 16 {
		return
	}
	often, seldom, before := r.IntN(4), r.IntN(40), r.IntN(3)*r.IntN(100) // once in how many messages the number, end, or label before the number differs
	var begins []int                                                      // of the previous runs
	for n := range runs {
		message := slices.Concat(s.noise(head), make([]byte, 8+own), s.noise(end))
		run := Run{At: len(s.data) + length, Length: length, Count: targets - 1}
		label := -1
		if head >= 12 && before > 0 {
			label = r.IntN(head - 11)
			run.Differ(label, 1)
		}
		words := (8 + own + 7) / 8
		if seldom > 0 {
			words = (8 + own + end + 7) / 8
		}
		for i := range words { // which may be too many
			if !run.Differ(head+8*i, 1) {
				return
			}
		}
		if r.IntN(8) > 0 {
			run.Number = head
		}
		if n > 0 {
			like := n - 1
			if r.IntN(4) == 0 {
				like = r.IntN(n) // which a search does not find
			}
			run.Like = run.At - length - begins[like]
		}
		begins = append(begins, len(s.data))
		for i := range targets {
			if s.seldom(often) {
				numbers[i][r.IntN(8)]++
			}
			if label >= 0 && s.seldom(before) {
				message[label+r.IntN(8)]++
			}
			if end > 0 && s.seldom(seldom) {
				message[length-1-r.IntN(end)]++
			}
			if s.seldom(200) && own > 0 {
				owns[i][r.IntN(own)]++
			}
			copy(message[head:], numbers[i])
			copy(message[head+8:], owns[i])
			s.data = append(s.data, message...)
		}
		s.runs = append(s.runs, run)
		if s.seldom(5) {
			s.data = append(s.data, s.noise(r.IntN(30))...)
		}
	}
}

// TestWhatIsToldNeedNotBeAlike: data that differs now and then from what was declared is decoded correctly, also in the
// last stretches of runs, blocks and requests.
func TestWhatIsToldNeedNotBeAlike(t *testing.T) {
	d, e, sn := reader(t), &Encoder{}, &Snappy{}
	var all, frames []byte
	for seed := range uint64(600) {
		s := &series{r: rand.New(rand.NewPCG(seed, 82))}
		for range 1 + s.r.IntN(4) {
			s.some(1+s.r.IntN(12), 1+s.r.IntN(1<<s.r.IntN(11)))
		}
		framed := e.Append(nil, s.data, Known{Runs: slices.Clone(s.runs)})
		got, err := d.DecodeAll(framed, nil)
		require.NoError(t, err, "seed %d", seed)
		require.True(t, bytes.Equal(s.data, got), "seed %d", seed)
		got, err = snappy.Decode(nil, sn.Append(nil, s.data, Known{Runs: slices.Clone(s.runs)}))
		require.NoError(t, err, "seed %d", seed)
		require.True(t, bytes.Equal(s.data, got), "seed %d, snappy", seed)
		all, frames = append(all, s.data...), append(frames, framed...)
	}
	program, err := exec.LookPath("zstd")
	if err != nil {
		t.Log("no zstd to ask")
		return
	}
	cmd := exec.CommandContext(t.Context(), program, "-d", "-c")
	cmd.Stdin = bytes.NewReader(frames)
	got, err := cmd.Output()
	require.NoError(t, err)
	require.True(t, bytes.Equal(all, got), "by the program of the format's authors")
}

// TestLongSequencesBetweenShortOnes: all bits of a sequence are written if each of its codes is rare, and followed by
// many bits.
func TestLongSequencesBetweenShortOnes(t *testing.T) {
	d, e := reader(t), &Encoder{}
	for seed := range uint64(40) {
		s := &series{r: rand.New(rand.NewPCG(seed, 64))}
		data := s.noise(600_000)
		for range 4 {
			data = append(data, messages(s.r, 40_000)...)
			data = append(data, s.noise(17_000+s.r.IntN(8000))...)
			from, n := s.r.IntN(500_000), 17_000+s.r.IntN(8000)
			data = append(data, data[from:from+n]...)
		}
		requireSame(t, d, e, data)
	}
}
