// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package inflate

import (
	"bytes"
	"errors"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/klauspost/compress/flate"
	"github.com/stretchr/testify/require"

	"github.com/godwit-otel/godwit/internal/alloctest"
)

// inParts decodes src in parts of the sizes that cut returns, through the smallest window.
func inParts(p *Parts, src []byte, limit int64, cut func() int) ([]byte, error) {
	p.Reset()
	var out, scratch []byte
	buf := make([]byte, MinWindow)
	for {
		n := min(cut(), len(src))
		part := bytes.Clone(src[:n]) // a copy, because the decoder must not keep it
		last := n == len(src)
		total, err := p.Decode(buf, &scratch, part, last, limit, func(chunk []byte) error {
			out = append(out, chunk...)
			return nil
		})
		clear(part)
		clear(buf)
		if err != nil {
			return nil, err
		}
		if total != int64(len(out)) {
			return nil, errors.New("the count is not what was yielded")
		}
		if last {
			return out, nil
		}
		src = src[n:]
	}
}

func every(n int) func() int { return func() int { return n } }

func TestPartsAreTheWhole(t *testing.T) {
	p := &Parts{}
	random := rand.New(rand.NewPCG(7, 7))
	for name, body := range bodies() {
		for level := flate.HuffmanOnly; level <= flate.BestCompression; level++ {
			src := gzipped(t, body, level)
			src = append(src, gzipped(t, []byte("another member\n"), level)...)
			want := append(bytes.Clone(body), "another member\n"...)
			for _, cut := range []func() int{every(1 << 20), every(4 << 10), func() int { return random.IntN(2000) }} {
				out, err := inParts(p, src, plenty, cut)
				require.NoError(t, err, "%s at level %d", name, level)
				require.True(t, bytes.Equal(want, out), "%s at level %d", name, level)
			}
		}
	}
}

// Wherever the input is cut, in a header, a code, a symbol or a footer, no byte is lost.
func TestPartsOfAByte(t *testing.T) {
	p := &Parts{}
	for _, level := range []int{flate.HuffmanOnly, 0, 1, 9} {
		body := page(20<<10, 5)
		src := append(gzipped(t, body, level), gzipped(t, []byte("up 1\n"), level)...)
		for _, cut := range []int{1, 2, 7, 8, 9} {
			out, err := inParts(p, src, plenty, every(cut))
			require.NoError(t, err, "level %d, %d bytes", level, cut)
			require.True(t, bytes.Equal(append(bytes.Clone(body), "up 1\n"...), out))
		}
		for n := range 300 {
			_, err := inParts(p, src[:n], plenty, every(5))
			require.ErrorIs(t, err, ErrTruncated, "%d bytes of level %d", n, level)
		}
	}
}

func TestPartsStopAtTheLimit(t *testing.T) {
	p := &Parts{}
	bomb := gzipped(t, make([]byte, 8<<20), 9)
	_, err := inParts(p, bomb, 8<<20-1, every(1000))
	require.ErrorIs(t, err, ErrLimit)
	out, err := inParts(p, bomb, 8<<20, every(1000))
	require.NoError(t, err)
	require.Len(t, out, 8<<20)
}

// A header that does not end is rejected.
func TestEndlessHeaderInParts(t *testing.T) {
	p := &Parts{}
	src := append([]byte{0x1f, 0x8b, 8, flagName, 0, 0, 0, 0, 0, 0}, strings.Repeat("x", 2*maxHeader)...)
	_, err := inParts(p, src, plenty, every(4<<10))
	require.ErrorIs(t, err, ErrHeader)
	require.LessOrEqual(t, cap(p.tail), 2*maxHeader)
}

func TestPartsEndWithTheirReader(t *testing.T) {
	p := &Parts{}
	var scratch []byte
	for _, full := range []error{errors.New("full"), ErrTruncated} {
		p.Reset()
		_, err := p.Decode(make([]byte, MinWindow), &scratch, gzipped(t, make([]byte, 1<<20), 6), false, plenty, func([]byte) error { return full })
		require.ErrorIs(t, err, full)
	}
	p.Reset()
	_, err := p.Decode(make([]byte, MinWindow-1), &scratch, nil, true, plenty, nil)
	require.ErrorContains(t, err, "window")
}

func TestPartsDoNotAllocateOnceWarm(t *testing.T) {
	src := gzipped(t, page(300<<10, 1), 6)
	p, buf := &Parts{}, make([]byte, MinWindow)
	var scratch []byte
	take := func([]byte) error { return nil }
	decode := func() {
		p.Reset()
		for at := 0; at < len(src); at += 10_000 {
			end := min(at+10_000, len(src))
			if _, err := p.Decode(buf, &scratch, src[at:end], end == len(src), plenty, take); err != nil {
				t.Error(err)
			}
		}
	}
	decode()
	require.Zero(t, alloctest.PerRun(decode))
}

// FuzzParts damages valid bodies and cuts them: in parts, they decode as they do as a whole.
func FuzzParts(f *testing.F) {
	f.Add(uint64(1), int8(6), uint16(100), byte(1), uint16(1000))
	f.Add(uint64(2), int8(-2), uint16(0), byte(0), uint16(1))
	f.Add(uint64(3), int8(0), uint16(3000), byte(255), uint16(33))
	d, p := &Decoder{}, &Parts{}
	f.Fuzz(func(t *testing.T, seed uint64, level int8, at uint16, flip byte, cut uint16) {
		body := page(1+int(seed%(96<<10)), seed)
		src := gzipped(t, body, int(uint8(level)%12)-2)
		src = append(src, src[:len(src)*int(flip%3)/2]...)
		src[int(at)%len(src)] ^= flip
		want, wantErr := d.Gunzip(nil, src, plenty)
		got, err := inParts(p, src, plenty, every(1+int(cut)))
		require.Equal(t, wantErr == nil, err == nil, "whole: %v, parts: %v", wantErr, err)
		if err == nil {
			require.True(t, bytes.Equal(want, got))
		}
	})
}
