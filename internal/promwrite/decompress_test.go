// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package promwrite

import (
	"bytes"
	"math/rand/v2"
	"runtime"
	"slices"
	"testing"

	"github.com/klauspost/compress/s2"
	"github.com/klauspost/compress/zstd"
	"github.com/stretchr/testify/require"

	"github.com/godwit-otel/godwit/internal/alloctest"
)

func compress(tb testing.TB, encoding Encoding, plain []byte) []byte {
	switch encoding {
	case Snappy:
		return s2.EncodeSnappy(nil, plain)
	case Zstd:
		encoder, err := zstd.NewWriter(nil)
		require.NoError(tb, err)
		defer encoder.Close()
		return encoder.EncodeAll(plain, nil)
	}
	return plain
}

func TestDecompress(t *testing.T) {
	d, err := NewDecompressor(1 << 20)
	require.NoError(t, err)
	for _, encoding := range []Encoding{Snappy, Zstd, Identity} {
		for _, size := range []int{0, 1, 100, 1 << 20} {
			plain := bytes.Repeat([]byte("godwit"), size/6+1)[:size]
			body := compress(t, encoding, plain)
			got, err := d.Decompress(nil, encoding, body)
			require.NoError(t, err)
			require.Equal(t, string(plain), string(got))

			dst := make([]byte, 0, size+64)
			require.Zero(t, alloctest.PerRun(func() {
				if _, err := d.Decompress(dst, encoding, body); err != nil {
					t.Fatal(err)
				}
			}), "%s of %d bytes into a buffer with room", encoding, size)
		}
	}
}

func TestDecompressRefusesWhatIsNotWhatItSays(t *testing.T) {
	d, err := NewDecompressor(1 << 20)
	require.NoError(t, err)
	for _, encoding := range []Encoding{Snappy, Zstd} {
		_, err = d.Decompress(nil, encoding, []byte("\x05\xffnot compressed at all"))
		require.ErrorContains(t, err, "cannot decompress 23 bytes of "+encoding.String())
		require.NotErrorIs(t, err, ErrTooLarge)
	}
	_, err = d.Decompress(nil, 9, nil)
	require.Error(t, err)
	_, err = NewDecompressor(0)
	require.Error(t, err)
}

func TestDecompressStopsBombsBeforeTheyNeedRoom(t *testing.T) {
	const limit, size = 1 << 20, 64 << 20
	d, err := NewDecompressor(limit)
	require.NoError(t, err)
	zeros := make([]byte, size)
	bombs := map[Encoding][][]byte{
		Snappy:   {compress(t, Snappy, zeros), {0xff, 0xff, 0xff, 0xff, 0x0f}, compress(t, Snappy, zeros[:limit+1])},
		Zstd:     {compress(t, Zstd, zeros), streamed(t, zeros), compress(t, Zstd, zeros[:limit+1])},
		Identity: {zeros[:limit+1]},
	}
	// There may be several frames: together they must not exceed the limit either.
	bombs[Zstd] = append(bombs[Zstd], bytes.Repeat(compress(t, Zstd, zeros[:limit/2]), 3))
	for encoding, bodies := range bombs {
		for _, body := range bodies {
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			_, err := d.Decompress(nil, encoding, body)
			runtime.ReadMemStats(&after)
			require.ErrorIs(t, err, ErrTooLarge, "%s of %d bytes", encoding, len(body))
			require.Less(t, after.TotalAlloc-before.TotalAlloc, uint64(16*limit))
		}
	}
}

// streamed returns a frame without its size.
func streamed(tb testing.TB, plain []byte) []byte {
	var out bytes.Buffer
	encoder, err := zstd.NewWriter(&out)
	require.NoError(tb, err)
	_, err = encoder.Write(plain)
	require.NoError(tb, err)
	require.NoError(tb, encoder.Close())
	return out.Bytes()
}

// TestSizeIsThatOfAllFrames: a body may be several frames, each with or without its size.
func TestSizeIsThatOfAllFrames(t *testing.T) {
	const limit = 8 << 20
	d, err := NewDecompressor(limit)
	require.NoError(t, err)
	noise := rand.New(rand.NewPCG(1, 2))
	plain := make([]byte, 300_000)
	for i := range plain {
		plain[i] = byte(noise.IntN(1 + i>>16)) // increasingly difficult to compress
	}
	frames := map[string][]byte{
		"says":       compress(t, Zstd, plain),
		"not":        streamed(t, plain),
		"raw":        streamed(t, plain[290_000:]),
		"zeros":      streamed(t, make([]byte, 200_000)),
		"empty":      compress(t, Zstd, nil),
		"none":       streamed(t, nil),
		"is skipped": append([]byte("\x5a\x2a\x4d\x18\x05\x00\x00\x00"), "hello"...),
	}
	for one, a := range frames {
		for other, b := range frames {
			body := slices.Concat(a, b)
			got, err := d.Decompress(nil, Zstd, body)
			require.NoError(t, err, "%s, then %s", one, other)
			require.GreaterOrEqual(t, d.Size(Zstd, body), len(got), "%s, then %s", one, other)
			require.LessOrEqual(t, d.Size(Zstd, body), len(got)+6*maxZstdBlock, "%s, then %s", one, other)
		}
	}
	require.Equal(t, 2*len(plain), d.Size(Zstd, bytes.Repeat(frames["says"], 2)))
	require.Equal(t, limit, d.Size(Zstd, bytes.Repeat(frames["says"], 100)))
	require.Zero(t, d.Size(Zstd, nil))
}

func FuzzDecompress(f *testing.F) {
	plain := []byte("godwit godwit godwit")
	for _, encoding := range []Encoding{Snappy, Zstd, Identity} {
		f.Add(uint8(encoding), compress(f, encoding, plain))
	}
	f.Add(uint8(Zstd), streamed(f, plain))
	f.Add(uint8(Zstd), slices.Concat(streamed(f, plain), compress(f, Zstd, plain), []byte("\x50\x2a\x4d\x18\x01\x00\x00\x00."), streamed(f, nil)))
	const limit = 1 << 16
	d, err := NewDecompressor(limit)
	require.NoError(f, err)
	f.Fuzz(func(t *testing.T, encoding uint8, body []byte) {
		got, err := d.Decompress(nil, Encoding(encoding), body)
		size := d.Size(Encoding(encoding), body)
		require.LessOrEqual(t, size, limit)
		if err == nil {
			require.LessOrEqual(t, len(got), size)
		}
	})
}
