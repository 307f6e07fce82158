// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package frame

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math"
	"math/rand/v2"
	"os/exec"
	"slices"
	"testing"

	"github.com/klauspost/compress/zstd"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/godwit-otel/godwit/internal/alloctest"
)

// reader returns an independent decoder, with the window that frames claim to need.
func reader(t testing.TB) *zstd.Decoder {
	t.Helper()
	d, err := zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxWindow(Window))
	require.NoError(t, err)
	t.Cleanup(d.Close)
	return d
}

func requireSame(t testing.TB, d *zstd.Decoder, e *Encoder, src []byte) {
	t.Helper()
	framed := e.Append([]byte("before"), src, Known{})
	require.Equal(t, "before", string(framed[:6]))
	got, err := d.DecodeAll(framed[6:], nil)
	require.NoError(t, err, "%d bytes", len(src))
	if !slices.Equal(src, got) { // require would print a lot
		at := 0
		for at < min(len(src), len(got)) && src[at] == got[at] {
			at++
		}
		require.FailNow(t, "another content", "%d bytes, %d came back, they differ at %d", len(src), len(got), at)
	}
}

// messages returns messages like those of a request: each repeats the previous one except for a few bytes.
func messages(r *rand.Rand, size int) []byte {
	var data []byte
	for len(data) < size {
		m := make([]byte, 20+r.IntN(40))
		for i := range m {
			m[i] = byte(r.Uint32())
		}
		for range 1 + r.IntN(1000) {
			binary.LittleEndian.PutUint64(m[8:], math.Float64bits(float64(r.IntN(1000))))
			m[2]++
			m[17] += byte(r.IntN(3))
			data = append(data, m...)
		}
	}
	return data[:size]
}

var contents = map[string]func(r *rand.Rand, size int) []byte{
	"messages": messages,
	"noise": func(r *rand.Rand, size int) []byte {
		data := make([]byte, size)
		for i := range data {
			data[i] = byte(r.Uint32())
		}
		return data
	},
	"few bytes": func(r *rand.Rand, size int) []byte {
		data := make([]byte, size)
		for i := range data {
			data[i] = byte(r.IntN(3))
		}
		return data
	},
	"one byte": func(r *rand.Rand, size int) []byte { return slices.Repeat([]byte{byte(r.Uint32())}, size) },
	"pieces of itself": func(r *rand.Rand, size int) []byte {
		data := make([]byte, 0, size)
		for len(data) < size {
			from, n := r.IntN(len(data)+1), 1+r.IntN(1+r.IntN(5000))
			for i := range min(n, size-len(data)) {
				if from+i < len(data) && r.IntN(50) > 0 {
					data = append(data, data[from+i])
				} else {
					data = append(data, byte(r.IntN(200)))
				}
			}
		}
		return data
	},
	"noise, then messages": func(r *rand.Rand, size int) []byte {
		data := make([]byte, size/2)
		for i := range data {
			data[i] = byte(r.Uint32())
		}
		return slices.Concat(data, messages(r, size-len(data)))
	},
}

func TestOthersReadFrames(t *testing.T) {
	for name, content := range contents {
		t.Run(name, func(t *testing.T) {
			r, d, e := rand.New(rand.NewPCG(1, 2)), reader(t), &Encoder{}
			for _, limit := range []int{0, 1 << 8, 1 << 16, maxBlock, Window} { // where headers and blocks change
				for _, more := range []int{-1, 0, 1, margin - 1, margin, margin + 1, 256, 257} {
					if size := limit + more; size >= 0 {
						requireSame(t, d, e, content(r, size))
					}
				}
			}
			for range 50 {
				requireSame(t, d, e, content(r, r.IntN(1<<r.IntN(21))))
			}
		})
	}
}

// TestZstdReadsFrames runs the reference implementation, which checks more than others.
func TestZstdReadsFrames(t *testing.T) {
	program, err := exec.LookPath("zstd")
	if err != nil {
		t.Skip("no zstd to ask")
	}
	check := func(name string, src []byte, runs ...Run) {
		t.Run(name, func(t *testing.T) {
			cmd := exec.CommandContext(t.Context(), program, "-d", "-c")
			cmd.Stdin = bytes.NewReader(new(Encoder).Append(nil, src, Known{Runs: runs}))
			got, err := cmd.Output()
			require.NoError(t, err)
			assert.True(t, bytes.Equal(src, got))
		})
	}
	r := rand.New(rand.NewPCG(5, 6))
	for name, content := range contents {
		for _, size := range []int{0, 1, 100, 5000, maxBlock + 1, 3 << 20} {
			check(fmt.Sprint(name, " ", size), content(r, size))
		}
	}
	for i := range 20 {
		h := newHerd(r, 1<<(i+2))
		check(fmt.Sprint("runs ", len(h.data)), h.data, h.runs...)
	}
}

func TestPositionsBeginAnewBeforeTheyOverflow(t *testing.T) {
	r, d, e := rand.New(rand.NewPCG(1, 2)), reader(t), &Encoder{}
	requireSame(t, d, e, messages(r, 100_000))
	e.base = math.MaxUint32 - 50_000
	requireSame(t, d, e, messages(r, 100_000))
	require.Less(t, e.base, uint32(200_000))
}

func TestFramesAreAsSmallAsThoseOfOthers(t *testing.T) {
	other, err := zstd.NewWriter(nil, zstd.WithEncoderLevel(zstd.SpeedFastest), zstd.WithEncoderCRC(false), zstd.WithWindowSize(Window))
	require.NoError(t, err)
	defer other.Close()
	for _, size := range []int{1000, 20_000, 2_000_000} {
		src := messages(rand.New(rand.NewPCG(1, 2)), size)
		ours, theirs := len(new(Encoder).Append(nil, src, Known{})), len(other.EncodeAll(src, nil))
		assert.LessOrEqual(t, ours, theirs+theirs/20, "of %d bytes", size)
	}
}

func TestNothingIsAllocatedForTheNextFrame(t *testing.T) {
	src, e := messages(rand.New(rand.NewPCG(1, 2)), 1_000_000), &Encoder{}
	dst := e.Append(nil, src, Known{})
	assert.Zero(t, alloctest.PerRun(func() { dst = e.Append(dst[:0], src, Known{}) }))
}

// Every possible code fits into the arrays, and has the remaining bits of its number.
func TestCodesOfEveryNumber(t *testing.T) {
	for _, test := range []struct {
		code func(uint32) uint8
		bits *[64]uint8
		most uint32
	}{{literalCode, &literalBits, maxBlock}, {matchCode, &matchBits, maxBlock - 3}} {
		first := uint32(0) // number of the code
		for n := range test.most {
			code := test.code(n)
			if n > 0 && code != test.code(n-1) {
				require.Equal(t, test.code(n-1)+1, code)
				first = n
			}
			if n-first != n&(1<<test.bits[code]-1) { // a hundred thousand are too many for require
				require.FailNow(t, "another number", "%d has code %d, which begins with %d", n, code, first)
			}
		}
		require.LessOrEqual(t, test.code(test.most), uint8(codeMask))
	}
}

func TestEachCodeGetsAShare(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for range 10_000 {
		var counts [64]uint32
		n, top := 0, 0
		for range 2 + r.IntN(52) {
			code, count := r.IntN(53), 1+r.IntN(1<<r.IntN(16))
			counts[code] += uint32(count)
			n, top = n+count, max(top, code)
		}
		var made table
		made.normalize(&counts, n, top, maxLog)
		sum := 0
		for code, share := range made.norm {
			require.Equal(t, counts[code] > 0, share > 0)
			sum += int(share)
		}
		require.Equal(t, 1<<made.log, sum)
	}
}

func FuzzFrame(f *testing.F) {
	d := reader(f)
	f.Add([]byte(nil), 1, 1)
	f.Add([]byte("another message, and yet another message"), 3, 7)
	f.Add(messages(rand.New(rand.NewPCG(1, 2)), 2000), 200, 11)
	f.Fuzz(func(t *testing.T, data []byte, times, change int) {
		var e Encoder
		requireSame(t, d, &e, data)
		// Repeated, with a change now and then.
		times = min(max(times, 1), 1+(1<<19)/(len(data)+1))
		many := slices.Repeat(data, times)
		for i := max(change, 1); i < len(many); i += max(change, 1) {
			many[i] += byte(i)
		}
		requireSame(t, d, &e, many)
		requireSame(t, d, &e, data) // previous data is forgotten
	})
}
