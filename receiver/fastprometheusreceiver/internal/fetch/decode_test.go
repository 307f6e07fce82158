// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package fetch

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"io"
	"testing"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"
	"github.com/stretchr/testify/require"

	"github.com/godwit-otel/godwit/internal/alloctest"
	"github.com/godwit-otel/godwit/internal/racetest"
)

func TestDecodesEachEncoding(t *testing.T) {
	racetest.Sequential(t)
	d := &Decoder{}
	whole, err := zstd.NewWriter(nil, zstd.WithEncoderConcurrency(1))
	require.NoError(t, err)
	for _, size := range []int{0, 1, 57 << 10, large - 100, large + 100, 2 * large} {
		page := pageOf(size)
		f := func(encoding Encoding, body []byte) {
			t.Helper()
			got, err := decode(d, Response{Encoding: encoding, Body: body}, 0)
			require.NoError(t, err, "%s, %d bytes", encoding, size)
			require.True(t, bytes.Equal(page, got), "%s, %d bytes", encoding, size)
		}
		f(Identity, page)
		f(Gzip, gzipped(t, page))
		f(Gzip, append(gzipped(t, page[:size/3]), gzipped(t, page[size/3:])...))
		if size > 0 { // an encoder writes no frame for an empty page
			f(Zstd, zstded(t, page))
			f(Zstd, zstded(t, page, zstd.WithEncoderLevel(zstd.SpeedBetterCompression)))
			f(Zstd, whole.EncodeAll(page, nil))
			f(Zstd, append(skippable(zstded(t, page[:size/3])), skippable(whole.EncodeAll(page[size/3:], nil))...))
		}
	}
	require.LessOrEqual(t, cap(d.buf), large+64<<10)
}

// skippable prepends a frame without content.
func skippable(frames []byte) []byte {
	b := binary.LittleEndian.AppendUint32(nil, 0x184d2a53)
	b = binary.LittleEndian.AppendUint32(b, 5)
	return append(append(b, "extra"...), frames...)
}

// A large page comes in pieces, and the decoder never holds more than one.
func TestStreamsLargePages(t *testing.T) {
	page := pageOf(3 * large)
	for encoding, body := range map[Encoding][]byte{Gzip: gzipped(t, page), Zstd: zstded(t, page)} {
		d := &Decoder{}
		n, chunks := 0, 0
		_, err := d.Decode(Response{Encoding: encoding, Body: body}, 0, func(chunk []byte) error {
			require.True(t, bytes.Equal(page[n:n+len(chunk)], chunk))
			require.LessOrEqual(t, len(chunk), piece+window+1024)
			n += len(chunk)
			chunks++
			return nil
		})
		require.NoError(t, err)
		require.Equal(t, len(page), n)
		require.Greater(t, chunks, 3*large/piece-1)
		require.LessOrEqual(t, cap(d.buf), large+64<<10, encoding)
	}
}

// A page as large as the limit is too large, as in Prometheus.
func TestStopsAtTheBodySizeLimit(t *testing.T) {
	racetest.Sequential(t)
	d := &Decoder{}
	for _, size := range []int{1000, large, large + 1, 2 * large} {
		page := pageOf(size)
		for _, r := range []Response{
			{Encoding: Identity, Body: page}, {Encoding: Gzip, Body: gzipped(t, page)}, {Encoding: Zstd, Body: zstded(t, page)},
		} {
			_, err := decode(d, r, int64(size)+1)
			require.NoError(t, err)
			for _, limit := range []int{1, size / 2, size} {
				_, err = decode(d, r, int64(limit))
				require.ErrorIs(t, err, ErrBodySize, "%s of %d bytes at %d", r.Encoding, size, limit)
				require.Equal(t, ReasonBodySize, Reason(err))
			}
		}
	}
}

func TestStopsBombs(t *testing.T) {
	racetest.Sequential(t)
	zeros := make([]byte, 16<<20)
	for encoding, body := range map[Encoding][]byte{Gzip: gzipped(t, zeros), Zstd: zstded(t, zeros)} {
		d := &Decoder{}
		for _, limit := range []int64{1000, 10 << 20} {
			got := int64(0)
			_, err := d.Decode(Response{Encoding: encoding, Body: body}, limit, func(chunk []byte) error {
				got += int64(len(chunk))
				return nil
			})
			require.ErrorIs(t, err, ErrBodySize)
			require.Less(t, got, limit)
			require.LessOrEqual(t, cap(d.buf), large+64<<10)
		}
	}
	// Without a limit, the maximum is one gibibyte.
	huge, err := zstd.NewWriter(nil, zstd.WithEncoderConcurrency(1))
	require.NoError(t, err)
	body := bytes.Repeat(huge.EncodeAll(zeros, nil), DefaultLimit/len(zeros)+1)
	_, err = (&Decoder{}).Decode(Response{Encoding: Zstd, Body: body}, 0, func([]byte) error { return nil })
	require.ErrorIs(t, err, ErrBodySize)

	// The limit also applies to many small members, whatever size the last one declares.
	small := bytes.Repeat(gzipped(t, make([]byte, 1<<20)), 8)
	_, err = decode(&Decoder{}, Response{Encoding: Gzip, Body: small}, 4<<20)
	require.ErrorIs(t, err, ErrBodySize)
	got, err := decode(&Decoder{}, Response{Encoding: Gzip, Body: small}, 0)
	require.NoError(t, err)
	require.Len(t, got, 8<<20)
}

// zstd windows may have 8 MiB at most.
func TestBoundsTheWindow(t *testing.T) {
	page := pageOf(1000)
	f := func(window int, encode func([]byte) []byte) {
		t.Helper()
		_, err := decode(&Decoder{}, Response{Encoding: Zstd, Body: encode(page)}, 0)
		if window <= maxWindow {
			require.NoError(t, err)
			return
		}
		require.ErrorIs(t, err, zstd.ErrWindowSizeExceeded)
		require.Equal(t, ReasonEncoding, Reason(err))
	}
	for _, window := range []int{maxWindow, 2 * maxWindow} {
		f(window, func(page []byte) []byte {
			return zstded(t, page, zstd.WithWindowSize(window), zstd.WithSingleSegment(false))
		})
		f(window, func(page []byte) []byte {
			big := bytes.Repeat(page, 2*large/len(page))
			return zstded(t, big, zstd.WithWindowSize(window))
		})
	}
}

func TestSaysWhatDoesNotDecode(t *testing.T) {
	d := &Decoder{}
	page, big := pageOf(1000), pageOf(2*large)
	f := func(encoding Encoding, body []byte, want string) {
		t.Helper()
		_, err := decode(d, Response{Encoding: encoding, Body: body}, 0)
		require.ErrorContains(t, err, "cannot decode "+encoding.String()+" body of ")
		require.ErrorContains(t, err, want)
		require.Equal(t, ReasonEncoding, Reason(err))
	}
	f(Gzip, nil, "unexpected EOF")
	f(Gzip, page, "gzip: invalid header")
	f(Zstd, nil, "unexpected EOF")
	f(Zstd, page, "magic")
	for _, page := range [][]byte{page, big} {
		gz, zs := gzipped(t, page), zstded(t, page)
		f(Gzip, gz[:len(gz)-1], "unexpected EOF")
		f(Gzip, gz[:len(gz)/2], "unexpected EOF")
		f(Gzip, append(bytes.Clone(gz), "x"...), "gzip: invalid header")
		f(Zstd, zs[:len(zs)-1], "")
		f(Zstd, zs[:len(zs)/2], "unexpected EOF")
		f(Zstd, append(bytes.Clone(zs), "more"...), "magic")
		gz[len(gz)-5] ^= 1
		f(Gzip, gz, "gzip: invalid checksum")
		zs[len(zs)-1] ^= 1
		f(Zstd, zs, "")
	}
	got, err := decode(d, Response{Encoding: Gzip, Body: gzipped(t, page)}, 0)
	require.NoError(t, err, "a decoder works on after an error")
	require.True(t, bytes.Equal(page, got))
}

func TestReturnsItsReadersError(t *testing.T) {
	d := &Decoder{}
	enough := fmt.Errorf("malformed line: %w", io.EOF)
	for _, page := range [][]byte{pageOf(1000), pageOf(2 * large)} {
		for _, r := range []Response{
			{Encoding: Identity, Body: page}, {Encoding: Gzip, Body: gzipped(t, page)}, {Encoding: Zstd, Body: zstded(t, page)},
		} {
			calls := 0
			_, err := d.Decode(r, 0, func([]byte) error {
				calls++
				return enough
			})
			require.ErrorIs(t, err, enough)
			require.EqualError(t, err, enough.Error())
			require.Equal(t, ReasonOther, Reason(err))
			require.Equal(t, 1, calls)
		}
	}
}

func TestDecodingDoesNotAllocateOnceWarm(t *testing.T) {
	page := pageOf(57 << 10)
	for _, r := range []Response{
		{Encoding: Identity, Body: page}, {Encoding: Gzip, Body: gzipped(t, page)}, {Encoding: Zstd, Body: zstded(t, page)},
	} {
		d := &Decoder{}
		require.Zero(t, alloctest.PerRun(func() {
			if _, err := d.Decode(r, 1<<30, func([]byte) error { return nil }); err != nil {
				t.Error(err)
			}
		}), r.Encoding)
	}
}

// FuzzDecode checks that no body causes a panic, and that the results equal those of klauspost's streaming decoders.
func FuzzDecode(f *testing.F) {
	page := pageOf(3000)
	for _, body := range [][]byte{page, nil, bytes.Repeat([]byte("a"), 100<<10)} {
		f.Add(true, gzipped(f, body))
		f.Add(false, zstded(f, body))
	}
	f.Add(false, skippable(zstded(f, page)))
	d := &Decoder{}
	in := bytes.NewReader(nil)
	oracle, err := zstd.NewReader(in, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxWindow(maxWindow), zstd.WithDecodeBuffersBelow(0))
	require.NoError(f, err)
	f.Cleanup(oracle.Close)
	const limit = 4 << 20
	f.Fuzz(func(t *testing.T, isGzip bool, body []byte) {
		in.Reset(body)
		r := Response{Encoding: Zstd, Body: body}
		var want []byte
		var wantErr error
		if isGzip {
			r.Encoding = Gzip
			var gz *gzip.Reader
			if gz, wantErr = gzip.NewReader(in); wantErr == nil {
				want, wantErr = io.ReadAll(io.LimitReader(gz, limit))
			}
		} else if wantErr = oracle.Reset(in); wantErr == nil {
			want, wantErr = io.ReadAll(io.LimitReader(oracle, limit))
		}
		got, err := decode(d, r, limit)
		if err == nil && wantErr == nil {
			require.True(t, bytes.Equal(want, got))
		}
		if len(want) == limit {
			require.Error(t, err)
		}
	})
}
