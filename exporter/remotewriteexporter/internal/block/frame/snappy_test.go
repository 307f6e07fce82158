// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package frame

import (
	"bytes"
	"encoding/binary"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/golang/snappy"
	"github.com/klauspost/compress/s2"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/godwit-otel/godwit/internal/alloctest"
)

// requireSnappy checks with two independent decoders.
func requireSnappy(t testing.TB, e *Snappy, src []byte, known Known) {
	t.Helper()
	packed := e.Append([]byte("before"), src, known)
	require.Equal(t, "before", string(packed[:6]))
	if known.Covered() == 0 {
		require.LessOrEqual(t, len(packed)-6, s2.MaxEncodedLen(len(src)))
	}
	for _, decode := range []func(dst, src []byte) ([]byte, error){snappy.Decode, s2.Decode} {
		got, err := decode(nil, packed[6:])
		require.NoError(t, err, "%d bytes", len(src))
		require.True(t, bytes.Equal(src, got), "%d bytes", len(src))
	}
}

func TestOthersReadSnappy(t *testing.T) {
	for name, content := range contents {
		t.Run(name, func(t *testing.T) {
			r, e := rand.New(rand.NewPCG(1, 2)), &Snappy{}
			for _, limit := range []int{0, 60, 1 << 8, 1 << 16, 1 << 20} { // where tags and offsets change
				for _, more := range []int{-1, 0, 1, margin - 1, margin, margin + 1} {
					if size := limit + more; size >= 0 {
						requireSnappy(t, e, content(r, size), Known{})
					}
				}
			}
			for range 50 {
				requireSnappy(t, e, content(r, r.IntN(1<<r.IntN(21))), Known{})
			}
		})
	}
}

func TestOthersReadRunsInSnappy(t *testing.T) {
	r, e := rand.New(rand.NewPCG(3, 4)), &Snappy{}
	for range 300 {
		h := newHerd(r, 1<<r.IntN(22))
		requireSnappy(t, e, h.data, Known{Runs: slices.Clone(h.runs)})
	}
}

// Echoes are verified: the result is correct, whatever is declared.
func TestOthersReadEchoesInSnappy(t *testing.T) {
	r, e := rand.New(rand.NewPCG(7, 8)), &Snappy{}
	for range 500 {
		h := newHerd(r, 1<<r.IntN(20))
		known := Known{Echoes: echoes(r, len(h.data))}
		if r.IntN(2) == 0 {
			known.Runs = slices.Clone(h.runs)
		}
		requireSnappy(t, e, h.data, known)
	}
}

// echoes returns echoes anywhere, often of the same data again or directly after the last one.
func echoes(r *rand.Rand, size int) (list []Echo) {
	for at := 1; at < size; at += r.IntN(1 + r.IntN(200)) {
		list = append(list, Echo{At: uint32(at), From: uint32(at - 1 - r.IntN(min(at, 1<<r.IntN(18))))})
	}
	return list
}

// TestEchoesAreOneCopyEach: repeated pieces after new numbers take one copy each, wherever they were.
func TestEchoesAreOneCopyEach(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	pieces := make([][]byte, 50)
	for i := range pieces {
		pieces[i] = make([]byte, 30)
		for j := range pieces[i] {
			pieces[i][j] = byte(r.Uint32())
		}
	}
	const rounds = 40
	var data []byte
	var known Known
	last := map[int]int{}
	for range rounds {
		for _, i := range r.Perm(len(pieces)) {
			data = append(data, byte(r.Uint32()), byte(r.Uint32())) // a number
			if at, ok := last[i]; ok {
				known.Echoes = append(known.Echoes, Echo{At: uint32(len(data)), From: uint32(at)})
			}
			last[i] = len(data)
			data = append(data, pieces[i]...)
		}
	}
	requireSnappy(t, &Snappy{}, data, Known{Echoes: slices.Clone(known.Echoes)})
	size := len(new(Snappy).Append(nil, data, known))
	assert.LessOrEqual(t, size, len(pieces)*34+len(pieces)*rounds*6+100)
}

// Every possible copy is decoded correctly.
func TestCopiesOfEveryLength(t *testing.T) {
	for _, offset := range []int{1, 4, nearOffset, nearOffset + 1, maxOffset} {
		for n := minMatch; n < 300; n++ {
			src := make([]byte, offset, offset+n)
			for i := range src {
				src[i] = byte(i * i >> 3)
			}
			for range n {
				src = append(src, src[len(src)-offset])
			}
			e := &Snappy{src: src, dst: binary.AppendUvarint(nil, uint64(len(src)))}
			e.literal(0, offset)
			e.copy(offset, n)
			got, err := snappy.Decode(nil, e.dst)
			require.NoError(t, err)
			require.True(t, bytes.Equal(src, got), "%d bytes from %d before", n, offset)
		}
	}
}

// Declared runs take fewer bytes than what other encoders find.
func TestRunsInSnappyAreWorthIt(t *testing.T) {
	h := &herd{r: rand.New(rand.NewPCG(3, 4))}
	for range 20 {
		h.grow(42, 100, []int{8, 20, 28}, 2)
		h.again()
	}
	told := len(new(Snappy).Append(nil, h.data, Known{Runs: slices.Clone(h.runs)}))
	found := len(s2.EncodeSnappy(nil, h.data))
	assert.Less(t, told, found)
}

func TestSnappyAllocatesNothing(t *testing.T) {
	h := newHerd(rand.New(rand.NewPCG(3, 4)), 1<<20)
	e, runs := &Snappy{}, slices.Clone(h.runs)
	dst := e.Append(nil, h.data, Known{Runs: runs})
	assert.Zero(t, alloctest.PerRun(func() {
		copy(runs, h.runs)
		dst = e.Append(dst[:0], h.data, Known{Runs: runs})
	}))
}

func FuzzSnappy(f *testing.F) {
	f.Add([]byte("a message that differs in a few places, as others do"), []byte("differences"), uint8(3), uint8(20), uint16(100), int32(300))
	f.Fuzz(func(t *testing.T, stretch, differences []byte, first, second uint8, count uint16, like int32) {
		e := &Snappy{}
		requireSnappy(t, e, stretch, Known{})
		if len(differences) > 0 {
			var known Known
			for at := 1; at < len(stretch); at += 1 + int(differences[at%len(differences)]) {
				known.Echoes = append(known.Echoes, Echo{At: uint32(at), From: uint32(int(first) % at)})
			}
			requireSnappy(t, e, stretch, known)
		}
		if len(stretch) < 16 || len(stretch) > 200 || len(differences) == 0 {
			return
		}
		word, next := int(first)%len(stretch), int(second)%len(stretch)
		r := Run{At: len(stretch), Length: len(stretch), Count: int(count), Like: int(like)}
		if next < word+8 || next+8 > len(stretch)+word || !r.Differ(word, 1) || !r.Differ(next, 1) {
			return
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
		requireSnappy(t, e, data, Known{Runs: []Run{r}})
	})
}
