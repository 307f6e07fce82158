// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

// Package store writes and reads saved state, under a key that only this limiter knows.
package store

import (
	"encoding/binary"
	"errors"
	"hash/crc32"

	"go.opentelemetry.io/collector/pdata/pcommon"
)

// Magic begins all saved values. It changes with the format and with the way fingerprints are made.
const Magic = "godwit cardinality 3\n"

// ErrDamaged is for data that cannot be read.
var ErrDamaged = errors.New("snapshot is damaged")

// Reader decodes a snapshot. After an error it returns zeros.
type Reader struct {
	Rest []byte
	Err  error
}

// NewReader returns a reader of saved data, if its checksum is right.
func NewReader(saved []byte) (*Reader, error) {
	n := len(saved) - crc32.Size
	if n < len(Magic) || string(saved[:len(Magic)]) != Magic ||
		crc32.ChecksumIEEE(saved[:n]) != binary.LittleEndian.Uint32(saved[n:]) {
		return nil, ErrDamaged
	}
	return &Reader{Rest: saved[len(Magic):n]}, nil
}

// Bytes reads n bytes.
func (r *Reader) Bytes(n int) []byte {
	if n > len(r.Rest) {
		r.Fail()
		return nil
	}
	b := r.Rest[:n]
	r.Rest = r.Rest[n:]
	return b
}

// Byte reads one byte.
func (r *Reader) Byte() byte {
	if b := r.Bytes(1); b != nil {
		return b[0]
	}
	return 0
}

// Word reads eight bytes.
func (r *Reader) Word() uint64 {
	if b := r.Bytes(8); b != nil {
		return binary.LittleEndian.Uint64(b)
	}
	return 0
}

// Uvarint reads a number that is not negative.
func (r *Reader) Uvarint() uint64 {
	v, n := binary.Uvarint(r.Rest)
	if n <= 0 {
		r.Fail()
		return 0
	}
	r.Rest = r.Rest[n:]
	return v
}

// Varint reads a number.
func (r *Reader) Varint() int64 {
	v, n := binary.Varint(r.Rest)
	if n <= 0 {
		r.Fail()
		return 0
	}
	r.Rest = r.Rest[n:]
	return v
}

// Count reads a number of elements, each of which takes at least size bytes.
func (r *Reader) Count(size int) int {
	n := r.Uvarint()
	if n > uint64(len(r.Rest)/size) {
		r.Fail()
		return 0
	}
	return int(n)
}

// Fail makes the rest unreadable.
func (r *Reader) Fail() { r.Rest, r.Err = nil, ErrDamaged }

// Counts reads a list of numbers, nil if empty.
func (r *Reader) Counts() []uint64 {
	var counts []uint64 // nil if empty
	for range r.Count(1) {
		counts = append(counts, r.Uvarint())
	}
	return counts
}

// String reads what AppendString wrote.
func (r *Reader) String() string { return string(r.Bytes(r.Count(1))) }

// Time reads what AppendTimes wrote.
func (r *Reader) Time() pcommon.Timestamp { return pcommon.Timestamp(r.Word()) }

// AppendTimes appends timestamps.
func AppendTimes(dst []byte, times ...pcommon.Timestamp) []byte {
	for _, t := range times {
		dst = binary.LittleEndian.AppendUint64(dst, uint64(t))
	}
	return dst
}

// AppendString appends a text with its length.
func AppendString(dst []byte, s string) []byte {
	return append(binary.AppendUvarint(dst, uint64(len(s))), s...)
}

// AppendFlags appends up to eight flags in one byte.
func AppendFlags(dst []byte, flags ...bool) []byte {
	var b byte
	for i, set := range flags {
		if set {
			b |= 1 << i
		}
	}
	return append(dst, b)
}
