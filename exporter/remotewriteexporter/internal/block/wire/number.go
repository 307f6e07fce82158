// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"encoding/binary"
	"slices"
)

const (
	// maxSample is the most bytes that a sample takes up as a field, with some room.
	maxSample = 40
	// timeSize is how many bytes a time of this century takes.
	timeSize = 6
)

// AppendSample appends a sample as a field of its series, in either version: start is for 2.0 alone, zero else.
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

// putTime writes a varint where there is room for more.
func putTime(dst []byte, t int64) int {
	if !usual(t) {
		return binary.PutUvarint(dst, uint64(t))
	}
	binary.LittleEndian.PutUint64(dst, usualTime(t))
	return timeSize
}

// usual says whether a time takes timeSize bytes, as milliseconds of this century do.
func usual(t int64) bool { return uint64(t)>>(7*(timeSize-1)) != 0 && uint64(t)>>(7*timeSize) == 0 }

// usualTime is the varint of a usual time.
func usualTime(t int64) uint64 {
	v := uint64(t)
	return v&0x7f | v&(0x7f<<7)<<1 | v&(0x7f<<14)<<2 | v&(0x7f<<21)<<3 | v&(0x7f<<28)<<4 | v>>35<<40 | 0x80_8080_8080
}

// Number is where the sample of a message is, for others to be put in its place.
type Number struct {
	// Value is where the eight bytes of the value begin.
	Value        int
	fixed, start bool
}

// AppendNumber appends a sample to a message that begins at the index message of dst. It is as AppendSample does it, but
// for a value of zero, which takes up as much as others.
func AppendNumber(dst []byte, message int, value uint64, time, start int64) ([]byte, Number) {
	n := Number{Value: len(dst) + 3 - message, fixed: usual(time) && (start == 0 || usual(start)), start: start != 0}
	return appendSample(dst, value, time, start, true), n
}

// Fixed says whether there are other samples that take up as much.
func (n Number) Fixed() bool { return n.fixed }

// Fits says whether a sample of these times does.
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

// AppendNumberHead appends how a sample of fixed size begins: the value's eight bytes follow, and then its times.
func AppendNumberHead(dst []byte, start bool) []byte {
	size := 1 + 8 + 1 + timeSize
	if start {
		size += 1 + timeSize
	}
	return append(dst, byte(Sample), byte(size), 1<<3|fixed64)
}

// AppendTimes appends the times that end a sample of fixed size. They are usual ones; start may be zero.
func AppendTimes(dst []byte, time, start int64) []byte {
	at := len(dst)
	dst = append(dst, 2<<3|varint, 0, 0, 0, 0, 0, 0)
	if start != 0 {
		dst = append(dst, 3<<3|varint, 0, 0, 0, 0, 0, 0)
	}
	PutTimes(dst[at:], time, start)
	return dst
}

// PutTimes puts other times where AppendTimes put some. There is a start in both or in none.
func PutTimes(times []byte, time, start int64) {
	put(times[1:], time)
	if start != 0 {
		put(times[2+timeSize:], start)
	}
}

// Usual says whether a time takes as many bytes as most do: those of this century.
func Usual(time int64) bool { return usual(time) }

// Words is how many words of eight bytes there are from the value on in which samples differ.
func (n Number) Words() int {
	if n.start {
		return 3
	}
	return 2
}
