// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package delta

import (
	"encoding/binary"
	"math"
	"math/bits"
)

// Most floats that people measure are decimals with few digits: counts, bytes, seconds with two places behind the point. As binary
// fractions two of them that are close have few bits in common, as integers at the same scale their difference is small.
// A scale is a number of places, or raw for a float that has too many.
type scale uint8

const (
	mostPlaces scale = 9
	raw        scale = 10
	// mostInteger keeps integers where floats are exact.
	mostInteger = 1 << 53
)

var powers = [...]float64{1, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9}

// integer returns the float of these bits as an integer at a scale, and whether that restores the float exactly.
func (s scale) integer(v uint64) (n int64, exact bool) {
	scaled := math.RoundToEven(math.Float64frombits(v) * powers[s])
	if !(math.Abs(scaled) <= mostInteger) { // also for NaN
		return 0, false
	}
	n = int64(scaled)
	return n, s.float(n) == v
}

// float returns an integer at a scale as the bits of a float.
func (s scale) float(n int64) uint64 { return math.Float64bits(float64(n) / powers[s]) }

// scaleOf returns the smallest scale at which a float is exact.
func scaleOf(v uint64) scale {
	for s := range raw {
		if _, exact := s.integer(v); exact {
			return s
		}
	}
	return raw
}

func zigzag(n int64) uint64   { return uint64(n)<<1 ^ uint64(n>>63) }
func unzigzag(u uint64) int64 { return int64(u>>1) ^ -int64(u&1) }

// appendMove appends how a float moved that is not what it was, and returns the scale it has now. A move is a number: an even one
// is the difference at the scale it had, or how many bytes have changed if it had none; they follow. An odd one says which scale
// it has now, and the float follows.
func appendMove(dst []byte, s scale, before, now uint64) ([]byte, scale) {
	if s < raw {
		if n, exact := s.integer(now); exact {
			m, _ := s.integer(before)
			return binary.AppendUvarint(dst, zigzag(n-m)<<1), s
		}
	}
	if other := scaleOf(now); other != s {
		dst = binary.AppendUvarint(dst, uint64(other)<<1|1)
		if other == raw {
			return binary.LittleEndian.AppendUint64(dst, now), other
		}
		n, _ := other.integer(now)
		return binary.AppendUvarint(dst, zigzag(n)), other
	}
	changed := before ^ now
	size := (bits.Len64(changed) + 7) / 8
	var word [8]byte
	binary.LittleEndian.PutUint64(word[:], changed)
	return append(append(dst, byte(size<<1)), word[:size]...), raw
}

// move reads what appendMove has written.
func (r *reader) move(s scale, before uint64) (now uint64, to scale) {
	token := r.uvarint()
	if token&1 == 0 {
		if s < raw {
			m, _ := s.integer(before)
			return s.float(m + unzigzag(token>>1)), s
		}
		var word [8]byte
		copy(word[:], r.bytes(min(token>>1, 8)))
		return before ^ binary.LittleEndian.Uint64(word[:]), raw
	}
	if token>>1 > uint64(raw) {
		r.fail()
		return 0, raw
	}
	to = scale(token >> 1)
	if to == raw {
		return r.word(), to
	}
	return to.float(unzigzag(r.uvarint())), to
}

// reader reads a form. After an error it only returns zeros.
type reader struct {
	rest   []byte
	failed bool
}

func (r *reader) fail() { r.rest, r.failed = nil, true }

func (r *reader) uvarint() uint64 {
	v, n := binary.Uvarint(r.rest)
	if n <= 0 {
		r.fail()
		return 0
	}
	r.rest = r.rest[n:]
	return v
}

// bytes returns the next n bytes, which still belong to the form.
func (r *reader) bytes(n uint64) []byte {
	if n > uint64(len(r.rest)) {
		r.fail()
		return nil
	}
	b := r.rest[:n]
	r.rest = r.rest[n:]
	return b
}

func (r *reader) word() uint64 {
	b := r.bytes(8)
	if b == nil {
		return 0
	}
	return binary.LittleEndian.Uint64(b)
}
