// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"encoding/binary"
	"slices"
)

const (
	// maxSample is the most bytes that a sample takes as a field, with some reserve.
	maxSample = 40
	// timeSize is the size of a timestamp of this century.
	timeSize = 6
)

// AppendSample appends a sample as a field of its series, in either version. start is for 2.0 only, else zero.
func AppendSample(dst []byte, value uint64, time, start int64) []byte {
	return appendSample(dst, value, time, start, value != 0)
}

func appendSample(dst []byte, value uint64, time, start int64, hasValue bool) []byte {
	at := len(dst)
	dst = slices.Grow(dst, maxSample)[:at+maxSample]
	field := dst[at : at+maxSample]
	field[0] = byte(Sample)
	n := 2
	if hasValue {
		field[2] = 1<<3 | fixed64
		binary.LittleEndian.PutUint64(field[3:], value)
		n += 9
	}
	if time != 0 {
		field[n] = 2<<3 | varint
		n += 1 + putTime(field[n+1:], time)
	}
	if start != 0 {
		field[n] = 3<<3 | varint
		n += 1 + putTime(field[n+1:], start)
	}
	field[1] = byte(n - 2) // 31 at most
	return dst[:at+n]
}

// putTime writes a varint, with room for more bytes than it needs.
func putTime(dst []byte, t int64) int {
	if !usual(t) {
		return binary.PutUvarint(dst, uint64(t))
	}
	binary.LittleEndian.PutUint64(dst, usualTime(t))
	return timeSize
}

// usual reports whether a timestamp takes timeSize bytes, as milliseconds of this century do.
func usual(t int64) bool { return uint64(t)>>(7*(timeSize-1)) != 0 && uint64(t)>>(7*timeSize) == 0 }

// usualTime is the varint of a usual time.
func usualTime(t int64) uint64 {
	v := uint64(t)
	return v&0x7f | v&(0x7f<<7)<<1 | v&(0x7f<<14)<<2 | v&(0x7f<<21)<<3 | v&(0x7f<<28)<<4 | v>>35<<40 | 0x80_8080_8080
}

// Number is where the sample of a message is, so that another can be put in its place.
type Number struct {
	// Value is where the eight bytes of the value begin.
	Value        int
	fixed, start bool
}

// AppendNumber appends a sample to a message that begins at dst[message:]. It is like AppendSample, except that a value
// of zero takes as many bytes as others.
func AppendNumber(dst []byte, message int, value uint64, time, start int64) ([]byte, Number) {
	n := Number{Value: len(dst) + 3 - message, fixed: usual(time) && (start == 0 || usual(start)), start: start != 0}
	return appendSample(dst, value, time, start, true), n
}

// Fixed reports whether other samples can take its place.
func (n Number) Fixed() bool { return n.fixed }

// Fits reports whether a sample with these timestamps can.
func (n Number) Fits(time, start int64) bool {
	return usual(time) && (start != 0) == n.start && (start == 0 || usual(start))
}

// Put puts a sample that fits into a message.
func (n Number) Put(message []byte, value uint64, time, start int64) {
	field := message[n.Value:]
	binary.LittleEndian.PutUint64(field, value)
	put(field[9:], time)
	if n.start {
		put(field[16:], start)
	}
}

func put(dst []byte, time int64) {
	v := usualTime(time)
	binary.LittleEndian.PutUint32(dst, uint32(v))
	binary.LittleEndian.PutUint16(dst[4:], uint16(v>>32))
}

// AppendNumberHead appends the beginning of a sample of fixed size: the eight bytes of the value follow, and then its
// timestamps.
func AppendNumberHead(dst []byte, start bool) []byte {
	size := 1 + 8 + 1 + timeSize
	if start {
		size += 1 + timeSize
	}
	return append(dst, byte(Sample), byte(size), 1<<3|fixed64)
}

// AppendTimes appends the timestamps that end a sample of fixed size. They must be usual ones; start may be zero.
func AppendTimes(dst []byte, time, start int64) []byte {
	at := len(dst)
	dst = append(dst, 2<<3|varint, 0, 0, 0, 0, 0, 0)
	if start != 0 {
		dst = append(dst, 3<<3|varint, 0, 0, 0, 0, 0, 0)
	}
	PutTimes(dst[at:], time, start)
	return dst
}

// PutTimes replaces timestamps written by AppendTimes. Either both have a start or none.
func PutTimes(times []byte, time, start int64) {
	put(times[1:], time)
	if start != 0 {
		put(times[2+timeSize:], start)
	}
}

// Usual reports whether a timestamp takes as many bytes as most do: those of this century.
func Usual(time int64) bool { return usual(time) }

// Words is the number of eight-byte words, from the value on, in which samples differ.
func (n Number) Words() int {
	if n.start {
		return 3
	}
	return 2
}
