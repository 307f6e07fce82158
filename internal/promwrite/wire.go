// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package promwrite

import (
	"errors"
	"math"
)

var (
	errTruncated = errors.New("message ends inside a field")
	errVarint    = errors.New("varint is longer than 64 bits")
	errTag       = errors.New("field number is out of range")
	errGroup     = errors.New("wire type is unknown")
	errWireType  = errors.New("wire type does not fit the field")
	errPacked    = errors.New("packed numbers end inside a number")
)

// Protobuf's wire types. Groups (3 and 4) are extinct: proto3 never had them.
const (
	wireVarint  = 0
	wireFixed64 = 1
	wireBytes   = 2
	wireFixed32 = 5
)

const maxFieldNumber = 1<<29 - 1

// field is one field of a message: its number, and the payload as a number or as bytes.
type field struct {
	number uint32
	wire   uint8
	value  uint64 // varint, fixed64, fixed32
	data   string // bytes; aliases the message
}

// next reads the field at the head of msg and returns what follows it.
func (f *field) next(msg string) (string, error) {
	tag, n, err := uvarint(msg)
	if err != nil {
		return "", err
	}
	if tag>>3 == 0 || tag>>3 > maxFieldNumber {
		return "", errTag
	}
	f.number, f.wire = uint32(tag>>3), uint8(tag&7)
	msg = msg[n:]
	switch f.wire {
	case wireVarint:
		if f.value, n, err = uvarint(msg); err != nil {
			return "", err
		}
		return msg[n:], nil
	case wireFixed64:
		if len(msg) < 8 {
			return "", errTruncated
		}
		f.value = fixed64(msg)
		return msg[8:], nil
	case wireBytes:
		size, n, err := uvarint(msg)
		if err != nil {
			return "", err
		}
		msg = msg[n:]
		if size > uint64(len(msg)) {
			return "", errTruncated
		}
		f.data = msg[:size]
		return msg[size:], nil
	case wireFixed32: // in none of our messages, so only skipped
		if len(msg) < 4 {
			return "", errTruncated
		}
		return msg[4:], nil
	}
	return "", errGroup
}

func (f *field) uvarint() (uint64, error) {
	if f.wire != wireVarint {
		return 0, errWireType
	}
	return f.value, nil
}

func (f *field) int64() (int64, error) {
	v, err := f.uvarint()
	return int64(v), err
}

func (f *field) double() (float64, error) {
	if f.wire != wireFixed64 {
		return 0, errWireType
	}
	return math.Float64frombits(f.value), nil
}

func (f *field) bytes() (string, error) {
	if f.wire != wireBytes {
		return "", errWireType
	}
	return f.data, nil
}

// appendUvarints appends the field's varints, packed or single: a decoder must accept either.
func (f *field) appendUvarints(dst []uint64) ([]uint64, error) {
	switch f.wire {
	case wireVarint:
		return append(dst, f.value), nil
	case wireBytes:
		for data := f.data; data != ""; {
			v, n, err := uvarint(data)
			if err != nil {
				return dst, errPacked
			}
			dst = append(dst, v)
			data = data[n:]
		}
		return dst, nil
	}
	return dst, errWireType
}

// appendZigzags is appendUvarints for zigzag-encoded numbers.
func (f *field) appendZigzags(dst []int64) ([]int64, error) {
	switch f.wire {
	case wireVarint:
		return append(dst, zigzag(f.value)), nil
	case wireBytes:
		for data := f.data; data != ""; {
			v, n, err := uvarint(data)
			if err != nil {
				return dst, errPacked
			}
			dst = append(dst, zigzag(v))
			data = data[n:]
		}
		return dst, nil
	}
	return dst, errWireType
}

// appendDoubles is appendUvarints for doubles.
func (f *field) appendDoubles(dst []float64) ([]float64, error) {
	switch f.wire {
	case wireFixed64:
		return append(dst, math.Float64frombits(f.value)), nil
	case wireBytes:
		if len(f.data)%8 != 0 {
			return dst, errPacked
		}
		for data := f.data; data != ""; data = data[8:] {
			dst = append(dst, math.Float64frombits(fixed64(data)))
		}
		return dst, nil
	}
	return dst, errWireType
}

func zigzag(v uint64) int64 { return int64(v>>1) ^ -int64(v&1) }

// uvarint decodes the varint at the start of s and returns its size.
func uvarint(s string) (uint64, int, error) {
	if s != "" && s[0] < 0x80 { // fast path: one byte covers tags, most lengths and most references
		return uint64(s[0]), 1, nil
	}
	return longUvarint(s)
}

func longUvarint(s string) (uint64, int, error) {
	if len(s) > 1 && s[1] < 0x80 { // fast path: lengths of series, and references to all but the first symbols
		return uint64(s[0]&0x7f) | uint64(s[1])<<7, 2, nil
	}
	var v uint64
	for i := range min(len(s), 10) {
		b := s[i]
		if i == 9 && b > 1 {
			return 0, 0, errVarint
		}
		v |= uint64(b&0x7f) << (7 * i)
		if b < 0x80 {
			return v, i + 1, nil
		}
	}
	if len(s) >= 10 {
		return 0, 0, errVarint
	}
	return 0, 0, errTruncated
}

// fixed64 reads eight little-endian bytes; the compiler makes it one load.
func fixed64(s string) uint64 {
	_ = s[7]
	return uint64(s[0]) | uint64(s[1])<<8 | uint64(s[2])<<16 | uint64(s[3])<<24 |
		uint64(s[4])<<32 | uint64(s[5])<<40 | uint64(s[6])<<48 | uint64(s[7])<<56
}
