// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package inflate

import (
	"bytes"
	stdflate "compress/flate"
	stdgzip "compress/gzip"
	"encoding/binary"
	"errors"
	"hash/crc32"
	"io"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/klauspost/compress/flate"
	"github.com/klauspost/compress/gzip"
	"github.com/stretchr/testify/require"

	"github.com/godwit-otel/godwit/internal/alloctest"
)

const plenty = 64 << 20

// bodies returns inputs for the encoders: each leads to other blocks, codes or matches.
func bodies() map[string][]byte {
	r := rand.New(rand.NewPCG(1, 2))
	noise := make([]byte, 100<<10)
	for i := range noise {
		noise[i] = byte(r.Uint32())
	}
	skewed := make([]byte, 80<<10) // code lengths up to the maximum
	for i := range skewed {
		skewed[i] = byte(r.ExpFloat64() * 6)
	}
	var periods bytes.Buffer // matches at each small distance
	for n := 1; n < 40; n++ {
		periods.WriteString(strings.Repeat(string(noise[:n]), 400/n+3))
	}
	far := append(append(bytes.Clone(noise[:32<<10]), noise[:100]...), noise[:32<<10]...)
	return map[string][]byte{
		"empty": nil, "byte": []byte("a"), "run": bytes.Repeat([]byte("a"), 100<<10), "noise": noise, "skewed": skewed,
		"periods": periods.Bytes(), "far": far, "page": page(57<<10, 1), "large": page(300<<10, 2),
	}
}

func deflated(tb testing.TB, body []byte, level int) []byte {
	tb.Helper()
	var b bytes.Buffer
	w, err := flate.NewWriter(&b, level)
	require.NoError(tb, err)
	_, err = w.Write(body)
	require.NoError(tb, err)
	require.NoError(tb, w.Close())
	return b.Bytes()
}

// stream collects the output of Stream through the smallest window.
func stream(d *Decoder, src []byte, limit int64) ([]byte, error) {
	var out []byte
	n, err := d.Stream(make([]byte, MinWindow), src, limit, func(chunk []byte) error {
		out = append(out, chunk...)
		return nil
	})
	if err == nil && n != int64(len(out)) {
		return nil, errors.New("the count is not what was yielded")
	}
	return out, err
}

func TestDecodesWhatEachLevelWrites(t *testing.T) {
	d := &Decoder{}
	for name, body := range bodies() {
		for level := flate.HuffmanOnly; level <= flate.BestCompression; level++ {
			raw := deflated(t, body, level)
			out, rest, err := d.Inflate(nil, append(bytes.Clone(raw), "rest"...), plenty)
			require.NoError(t, err, "%s at level %d", name, level)
			require.True(t, bytes.Equal(body, out), "%s at level %d", name, level)
			require.Equal(t, "rest", string(rest), "%s at level %d", name, level)

			gz := gzipped(t, body, level)
			out, err = d.Gunzip([]byte("kept"), gz, plenty)
			require.NoError(t, err, "%s at level %d", name, level)
			require.True(t, bytes.Equal(append([]byte("kept"), body...), out), "%s at level %d", name, level)
			out, err = stream(d, gz, plenty)
			require.NoError(t, err, "%s at level %d", name, level)
			require.True(t, bytes.Equal(body, out), "%s at level %d", name, level)
		}
	}
}

// A compressor writes a fixed block for input that is too short for a code of its own.
func TestDecodesFixedBlocks(t *testing.T) {
	raw := deflated(t, []byte("up 1\nup 1\nup 1\n"), 9)
	require.Equal(t, byte(1), raw[0]>>1&3, "the block is not fixed")
	out, _, err := new(Decoder).Inflate(nil, raw, plenty)
	require.NoError(t, err)
	require.Equal(t, "up 1\nup 1\nup 1\n", string(out))
}

func TestReadsEveryHeaderField(t *testing.T) {
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	w.Name, w.Comment, w.Extra = "metrics", "a page", []byte("extra")
	_, err := w.Write([]byte("up 1\n"))
	require.NoError(t, err)
	require.NoError(t, w.Close())
	full := b.Bytes()
	d := &Decoder{}
	out, err := d.Gunzip(nil, full, plenty)
	require.NoError(t, err)
	require.Equal(t, "up 1\n", string(out))

	// With the header's own checksum, which is rare.
	end := headerLen + 2 + len("extra") + len("metrics\x00") + len("a page\x00")
	summed := bytes.Clone(full[:end])
	summed[3] |= flagHeaderSum
	summed = binary.LittleEndian.AppendUint16(summed, uint16(crc32.ChecksumIEEE(summed)))
	summed = append(summed, full[end:]...)
	out, err = d.Gunzip(nil, summed, plenty)
	require.NoError(t, err)
	require.Equal(t, "up 1\n", string(out))
	summed[5]++
	_, err = d.Gunzip(nil, summed, plenty)
	require.ErrorIs(t, err, ErrHeader)
}

func TestJoinsMembers(t *testing.T) {
	a, b := page(300<<10, 1), page(40<<10, 2)
	src := append(append(gzipped(t, a, 6), gzipped(t, nil, 6)...), gzipped(t, b, 1)...)
	want := append(bytes.Clone(a), b...)
	d := &Decoder{}
	out, err := d.Gunzip(nil, src, plenty)
	require.NoError(t, err)
	require.True(t, bytes.Equal(want, out))
	out, err = stream(d, src, plenty)
	require.NoError(t, err)
	require.True(t, bytes.Equal(want, out))
}

// A match may reach back to the beginning of its own stream, but not to bytes before it in the buffer.
func TestKeepsToItsOwnHistory(t *testing.T) {
	var b bytes.Buffer
	w, err := flate.NewWriterDict(&b, 9, []byte("a dictionary that nobody sent"))
	require.NoError(t, err)
	_, err = w.Write([]byte("a dictionary that nobody sent"))
	require.NoError(t, err)
	require.NoError(t, w.Close())
	_, _, err = new(Decoder).Inflate([]byte("a dictionary that nobody sent"), b.Bytes(), plenty)
	require.ErrorIs(t, err, ErrCorrupt)
}

func TestStopsAtTheLimit(t *testing.T) {
	bomb := gzipped(t, make([]byte, 8<<20), 9)
	d := &Decoder{}
	f := func(src []byte, limit int, want error) {
		t.Helper()
		out, err := d.Gunzip(nil, src, limit)
		require.ErrorIs(t, err, want)
		require.LessOrEqual(t, cap(out), limit+Slack)
		_, err = stream(d, src, int64(limit))
		require.ErrorIs(t, err, want)
	}
	f(bomb, 1<<20, ErrLimit)
	f(bomb, 8<<20-1, ErrLimit)
	f(bomb, 8<<20, nil)
	f(gzipped(t, make([]byte, 1<<20), 0), 1000, ErrLimit)
	f(gzipped(t, []byte("x"), 6), 0, ErrLimit)
	f(gzipped(t, nil, 6), 0, nil)
	members := bytes.Repeat(gzipped(t, make([]byte, 1000), 6), 1001)
	f(members, 1000*1000, ErrLimit)
	f(members, 1001*1000, nil)
}

// The declared size of a body determines the buffer only up to a multiple of its compressed size.
func TestMistrustsTheSizeHint(t *testing.T) {
	src := gzipped(t, []byte("up 1\n"), 6)
	for i := range 4 {
		src[len(src)-1-i] = 0xff
	}
	require.Equal(t, mostRatio*len(src), SizeHint(src))
	out, err := new(Decoder).Gunzip(nil, src, plenty)
	require.ErrorIs(t, err, ErrChecksum)
	require.LessOrEqual(t, cap(out), mostRatio*len(src)+Slack)
	require.Zero(t, SizeHint(src[:10]))
}

func TestFailsOnEveryTruncation(t *testing.T) {
	d := &Decoder{}
	for _, level := range []int{flate.HuffmanOnly, 0, 6} {
		src := gzipped(t, page(2<<10, 1), level)
		for n := range src {
			_, err := d.Gunzip(nil, src[:n], plenty)
			require.Error(t, err, n)
			require.NotErrorIs(t, err, ErrLimit, n)
			_, err = stream(d, src[:n], plenty)
			require.Error(t, err, n)
		}
	}
}

func TestFailsOnWhatIsNoGzip(t *testing.T) {
	d := &Decoder{}
	f := func(src []byte, want error) {
		t.Helper()
		_, err := d.Gunzip(nil, src, plenty)
		require.ErrorIs(t, err, want)
	}
	good := gzipped(t, []byte("up 1\n"), 6)
	f(nil, ErrTruncated)
	f([]byte("# TYPE up gauge\n"), ErrHeader)
	f(append(bytes.Clone(good), "trailing garbage"...), ErrHeader)
	f(append(bytes.Clone(good), 0x1f, 0x8b), ErrTruncated)
	sum := bytes.Clone(good)
	sum[len(sum)-8]++
	f(sum, ErrChecksum)
	size := bytes.Clone(good)
	size[len(size)-4]++
	f(size, ErrChecksum)
	for _, flag := range []byte{flagExtra, flagName, flagComment, flagHeaderSum} {
		f([]byte{0x1f, 0x8b, 8, flag, 0, 0, 0, 0, 0, 0}, ErrTruncated)
		f([]byte{0x1f, 0x8b, 8, flag, 0, 0, 0, 0, 0, 0, 255, 255}, map[bool]error{true: ErrHeader, false: ErrTruncated}[flag == flagHeaderSum])
	}
}

func TestStreamEndsWithItsReader(t *testing.T) {
	full := errors.New("full")
	d := &Decoder{}
	calls := 0
	_, err := d.Stream(make([]byte, MinWindow), gzipped(t, make([]byte, 1<<20), 6), plenty, func([]byte) error {
		calls++
		return full
	})
	require.ErrorIs(t, err, full)
	require.Equal(t, 1, calls)
	_, err = d.Stream(make([]byte, MinWindow-1), nil, plenty, nil)
	require.ErrorContains(t, err, "window")
}

func TestDoesNotAllocateOnceWarm(t *testing.T) {
	src := gzipped(t, page(57<<10, 1), 6)
	d, buf := &Decoder{}, make([]byte, 0, 64<<10)
	require.Zero(t, alloctest.PerRun(func() {
		if _, err := d.Gunzip(buf, src, plenty); err != nil {
			t.Error(err)
		}
	}))
}

// oracle returns klauspost's result for src. It takes a stream cut off within a fixed block for a complete one, so src
// also counts as invalid if the standard decoder fails. Bytes may follow a deflate stream.
func oracle(src []byte, gzipped bool) (out []byte, left int, err error) {
	in, again := bytes.NewReader(src), bytes.NewReader(src)
	fast, std := io.Reader(flate.NewReader(in)), io.Reader(stdflate.NewReader(again))
	if gzipped {
		if fast, err = gzip.NewReader(in); err != nil {
			return nil, 0, err
		}
		if std, err = stdgzip.NewReader(again); err != nil {
			return nil, 0, err
		}
	}
	if _, err := io.Copy(io.Discard, io.LimitReader(std, plenty)); err != nil {
		return nil, 0, err
	}
	out, err = io.ReadAll(io.LimitReader(fast, plenty))
	return out, in.Len(), err
}

func FuzzInflate(f *testing.F) {
	for _, body := range bodies() {
		for _, level := range []int{flate.HuffmanOnly, 0, 1, 6, 9} {
			f.Add(deflated(f, body[:min(len(body), 2<<10)], level))
		}
	}
	f.Add([]byte{5, 0xc0, 0x81, 8, 0, 0, 0, 0, 0x20, 0x7f, 0xeb, 0x1b})
	f.Add([]byte("2801\x1210")) // cut off within a fixed block
	d := &Decoder{}
	f.Fuzz(func(t *testing.T, src []byte) {
		want, left, wantErr := oracle(src, false)
		if len(want) == plenty {
			return
		}
		got, rest, err := d.Inflate(nil, src, plenty)
		require.Equal(t, wantErr == nil, err == nil, "oracle: %v, here: %v", wantErr, err)
		if err == nil {
			require.True(t, bytes.Equal(want, got))
			require.Len(t, rest, left)
		}
	})
}

// FuzzMutated damages valid bodies after their header: nearly valid input gets further than random bytes.
func FuzzMutated(f *testing.F) {
	f.Add(uint64(1), int8(6), uint16(100), byte(1))
	f.Add(uint64(2), int8(-2), uint16(0), byte(0))
	f.Add(uint64(3), int8(0), uint16(3000), byte(255))
	d := &Decoder{}
	f.Fuzz(func(t *testing.T, seed uint64, level int8, at uint16, flip byte) {
		body := page(1+int(seed%(96<<10)), seed)
		src := gzipped(t, body, int(uint8(level)%12)-2)
		src[headerLen+int(at)%(len(src)-headerLen)] ^= flip
		want, _, wantErr := oracle(src, true)
		got, err := d.Gunzip(nil, src, plenty)
		require.Equal(t, wantErr == nil, err == nil, "oracle: %v, here: %v", wantErr, err)
		windowed, streamErr := stream(d, src, plenty)
		require.Equal(t, err == nil, streamErr == nil, "whole: %v, stream: %v", err, streamErr)
		if err == nil {
			require.True(t, bytes.Equal(want, got))
			require.True(t, bytes.Equal(want, windowed))
		}
	})
}
