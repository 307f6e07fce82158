// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package frame

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/godwit-otel/godwit/internal/alloctest"
)

// herd is data that consists of runs.
type herd struct {
	r    *rand.Rand
	data []byte
	runs []Run
}

// grow adds a run: the given number of stretches that differ in words, which may extend beyond their end.
func (h *herd) grow(length, count int, words []int, often int) {
	stretch := make([]byte, length)
	for i := range stretch {
		stretch[i] = byte(h.r.Uint32())
	}
	run := Run{At: len(h.data) + length, Length: length, Count: count - 1}
	for _, w := range words {
		if !run.Differ(w, 1) {
			break
		}
	}
	for range count {
		for _, w := range run.words[:run.used] {
			for i := int(w); i < min(int(w)+8, length); i++ {
				if h.r.IntN(often) == 0 {
					stretch[i] += byte(h.r.IntN(4))
				}
			}
		}
		h.data = append(h.data, stretch...)
	}
	if run.used > 0 && h.r.IntN(4) > 0 {
		run.Number = int(run.words[h.r.IntN(int(run.used))])
	}
	if n := len(h.runs); n > 0 && h.r.IntN(2) == 0 {
		run.Like = run.At - h.runs[h.r.IntN(n)].At
	}
	h.runs = append(h.runs, run)
}

// again repeats the last run, with another byte in each stretch.
func (h *herd) again() {
	last := h.runs[len(h.runs)-1]
	from := last.At - last.Length
	data := slices.Clone(h.data[from:])
	for i := 0; i < len(data); i += last.Length {
		data[i]++
	}
	h.data = append(h.data, data...)
	last.Like = len(data)
	last.At += len(data)
	h.runs = append(h.runs, last)
}

// first returns the first of words, or at.
func first(words []int, at int) int {
	if len(words) == 0 {
		return at
	}
	return words[0]
}

func newHerd(r *rand.Rand, size int) *herd {
	h := &herd{r: r}
	for len(h.data) < size {
		switch r.IntN(4) {
		case 0:
			h.data = append(h.data, messages(r, r.IntN(1000))...)
		case 1:
			if n := len(h.runs); n > 0 && h.runs[n-1].At > len(h.data)/2 {
				h.data = h.data[:len(h.data):len(h.data)]
				h.again()
			}
		default:
			length := 16 + r.IntN(110)
			var words []int
			for at := r.IntN(length - 8); at+8 <= length+min(first(words, at), 7) && len(words) < 8; at += 8 + r.IntN(16) {
				words = append(words, at)
			}
			h.grow(length, 2+r.IntN(1+r.IntN(4000)), words, 1+r.IntN(100))
		}
	}
	return h
}

func TestOthersReadRuns(t *testing.T) {
	r, d, e := rand.New(rand.NewPCG(3, 4)), reader(t), &Encoder{}
	for i := range 300 {
		h := newHerd(r, 1<<r.IntN(22))
		framed := e.Append(nil, h.data, Known{Runs: slices.Clone(h.runs)})
		got, err := d.DecodeAll(framed, nil)
		require.NoError(t, err, i)
		require.True(t, slices.Equal(h.data, got), i)
	}
}

// Declared runs compress about as well as those that a search finds.
func TestRunsAreWorthIt(t *testing.T) {
	h := &herd{r: rand.New(rand.NewPCG(3, 4))}
	for range 20 {
		h.grow(42, 100, []int{8, 20, 28}, 2)
		h.again()
	}
	var e Encoder
	found, told := len(e.Append(nil, h.data, Known{})), len(e.Append(nil, h.data, Known{Runs: slices.Clone(h.runs)}))
	assert.Less(t, told, found+found/10)
	for i := range h.runs {
		h.runs[i].Like = 0
	}
	alone := len(e.Append(nil, h.data, Known{Runs: slices.Clone(h.runs)}))
	assert.Less(t, told, alone-alone/4, "the second of two runs differs from the first in nothing that is not told")
}

func TestRunsHaveRoomForSomeWords(t *testing.T) {
	r := Run{Length: 200, Count: 3}
	assert.True(t, r.Differ(0, 2))
	assert.True(t, r.Differ(20, maxWords-3))
	assert.False(t, r.Differ(190, 2))
	assert.False(t, r.Differ(1<<16-8, 1), "too far")
	assert.Equal(t, 3, r.Count)
	assert.True(t, r.Differ(196, 1))
	assert.Equal(t, 2, r.Count, "what follows the last stretch is not known")
	assert.False(t, r.Differ(196, 1))
}

// A run may be declared to differ in the same places as another one, whose last word may extend beyond its end or not.
func TestRunsDifferAsOthers(t *testing.T) {
	told := func(length int, like *Run) Run {
		r := Run{At: 100, Length: length, Count: 9}
		if like != nil {
			r.DifferAs(like)
			return r
		}
		require.True(t, r.Differ(8, 2))
		require.True(t, r.Differ(36, 1))
		return r
	}
	short, long := told(40, nil), told(44, nil)
	require.Equal(t, 8, short.Count, "what follows its last stretch may differ")
	require.Equal(t, 9, long.Count)
	require.Equal(t, short, told(40, &long))
	require.Equal(t, long, told(44, &short))
}

// Data that differs from the previous stretch, but equals another run, is one match there, whatever else differs.
func TestWhatAnotherRunHasIsFoundThere(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 6))
	h := &herd{r: r}
	var targets [100][6]byte
	for i := range targets {
		for j := range targets[i] {
			targets[i][j] = byte(r.Uint32())
		}
	}
	for series := range 20 {
		stretch := make([]byte, 40)
		for i := range stretch {
			stretch[i] = byte(r.Uint32())
		}
		run := Run{At: len(h.data) + len(stretch), Length: len(stretch), Count: len(targets) - 1}
		require.True(t, run.Differ(8, 1))
		require.True(t, run.Differ(20, 1))
		if series > 0 {
			run.Like = len(targets) * len(stretch)
		}
		for i := range targets {
			stretch[9] = byte(r.Uint32())
			copy(stretch[20:], targets[i][:])
			h.data = append(h.data, stretch...)
		}
		h.runs = append(h.runs, run)
	}
	var e Encoder
	told := len(e.Append(nil, h.data, Known{Runs: slices.Clone(h.runs)}))
	requireSame(t, reader(t), &e, h.data)
	for i := range h.runs {
		h.runs[i].Like = 0
	}
	alone := len(e.Append(nil, h.data, Known{Runs: slices.Clone(h.runs)}))
	assert.Less(t, told, alone/2)
}

// A stretch whose number equals that of another run, or is new, is two matches: one in the previous stretch, one in the
// other run. It may end with a part of its series, and may differ from the previous one before the number, now and
// then.
func TestStretchesOfAnotherRunAreTwoMatches(t *testing.T) {
	for ending := range 20 {
		for _, often := range []int{0, 2, 50} { // once in how many stretches the label before the number differs
			t.Run(fmt.Sprint(ending, " ", often), func(t *testing.T) {
				r, d := rand.New(rand.NewPCG(7, 8)), reader(t)
				const label, number, target, count, series = 3, 14, 30, 100, 25
				length := 44 + ending
				var numbers [count][8]byte
				var targets [count][2]byte
				var labels [count]byte
				for i := range numbers {
					for j := range numbers[i] {
						numbers[i][j] = byte(r.Uint32())
					}
					targets[i] = [2]byte{byte(i), byte(r.Uint32())}
					if often > 0 && r.IntN(often) == 0 {
						labels[i] = 1
					}
				}
				var data []byte
				var runs []Run
				for n := range series {
					stretch := make([]byte, length)
					for i := range number {
						stretch[i] = byte(r.Uint32())
					}
					for i := range ending {
						stretch[length-1-i] = byte(r.Uint32())
					}
					run := Run{At: len(data) + length, Length: length, Count: count - 1, Number: number}
					require.True(t, run.Differ(label, 1))
					require.True(t, run.Differ(number, 2))
					require.True(t, run.Differ(target, 1))
					if n > 0 {
						run.Like = count * length
					}
					for i := range count {
						copy(stretch[number:], numbers[i][:])
						for j := range r.IntN(9) * r.IntN(2) { // of that many bytes of its own
							stretch[number+j] += byte(r.Uint32())
						}
						copy(stretch[target:], targets[i][:])
						stretch[label] = labels[i]
						data = append(data, stretch...)
					}
					runs = append(runs, run)
				}
				var e Encoder
				framed := e.Append(nil, data, Known{Runs: slices.Clone(runs)})
				got, err := d.DecodeAll(framed, nil)
				require.NoError(t, err)
				require.True(t, slices.Equal(data, got))
				if often == 0 && len(data) < maxBlock {
					require.Less(t, len(e.sequences), count*series*9/4, "two of nearly each stretch")
				}
			})
		}
	}
}

func TestRunsAllocateNothing(t *testing.T) {
	h := newHerd(rand.New(rand.NewPCG(3, 4)), 1<<20)
	e, runs := &Encoder{}, slices.Clone(h.runs)
	dst := e.Append(nil, h.data, Known{Runs: runs})
	assert.Zero(t, alloctest.PerRun(func() {
		copy(runs, h.runs)
		dst = e.Append(dst[:0], h.data, Known{Runs: runs})
	}))
}

// FuzzRun lets bytes differ wherever that was declared.
func FuzzRun(f *testing.F) {
	d := reader(f)
	f.Add([]byte("a message that differs in a few places, as others do"), []byte("differences"), uint8(3), uint8(20), uint16(100), int32(300))
	f.Add([]byte("?2??3=>2000000000=52<?2==0"), []byte("0"), uint8(0), uint8(95), uint16(100), int32(208)) // another run at the beginning
	f.Add([]byte("what a message begins with, a number, what it ends with"), []byte("\x00\x00\x00\x01\x00"), uint8(21), uint8(30), uint16(300), int32(55*20))
	f.Fuzz(func(t *testing.T, stretch, differences []byte, first, second uint8, count uint16, like int32) {
		if len(stretch) < 16 || len(stretch) > 200 || len(differences) == 0 {
			return
		}
		word, next := int(first)%len(stretch), int(second)%len(stretch)
		r := Run{At: len(stretch), Length: len(stretch), Count: int(count), Like: int(like)}
		if next < word+8 || next+8 > len(stretch)+word || !r.Differ(word, 1) || !r.Differ(next, 1) {
			return
		}
		if word+8 <= len(stretch) {
			r.Number = word
		}
		data := slices.Clone(stretch)
		for i := range int(count) {
			for j, w := range r.words[:r.used] {
				for k := int(w); k < min(int(w)+8, len(stretch)); k++ {
					stretch[k] ^= differences[(i*(j+1)+k)%len(differences)]
				}
			}
			data = append(data, stretch...)
		}
		var e Encoder
		framed := e.Append(nil, data, Known{Runs: []Run{r}})
		got, err := d.DecodeAll(framed, nil)
		require.NoError(t, err)
		require.True(t, slices.Equal(data, got))
	})
}
