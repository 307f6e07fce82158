// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package frame

import (
	"encoding/binary"
	"math/bits"
	"slices"

	"github.com/klauspost/compress/huff0"
)

// Types of literals.
const (
	rawLiterals      = 0
	sameLiterals     = 1
	newTreeLiterals  = 2
	lastTreeLiterals = 3
)

const (
	// minHuffman is the number of literals from which on compressing them is tried, minStreams that from which on they
	// are divided into four streams.
	minHuffman = 32
	minStreams = 1024
)

// appendLiterals appends the section of literals.
func (e *Encoder) appendLiterals(dst []byte) []byte {
	n := len(e.literals)
	compress, format := huff0.Compress1X, 0
	if n >= minStreams {
		compress, format = huff0.Compress4X, 1
	}
	var packed []byte
	var reused bool
	err := huff0.ErrIncompressible
	if n >= minHuffman {
		packed, reused, err = compress(e.literals, &e.huffman)
	}
	switch {
	case err == huff0.ErrUseRLE: //nolint:errorlint // a verdict, not an error
		return append(appendSize(dst, sameLiterals, n), e.literals[0])
	case err != nil:
		return append(appendSize(dst, rawLiterals, n), e.literals...)
	}
	kind := uint64(newTreeLiterals)
	if reused {
		kind = lastTreeLiterals
	}
	e.huffman.Reuse = huff0.ReusePolicyAllow
	width := 10 // of both sizes, in bits
	switch size := bits.Len(uint(max(n, len(packed)))); {
	case size > 14:
		width, format = 18, 3
	case size > 10:
		width, format = 14, 2
	}
	header := kind | uint64(format)<<2 | uint64(n)<<4 | uint64(len(packed))<<(4+width)
	for range (4 + 2*width) / 8 {
		dst = append(dst, byte(header))
		header >>= 8
	}
	return append(dst, packed...)
}

// appendSize appends the header of literals that are not compressed.
func appendSize(dst []byte, kind byte, n int) []byte {
	switch {
	case n < 1<<5:
		return append(dst, kind|byte(n)<<3)
	case n < 1<<12:
		return append(dst, kind|1<<2|byte(n)<<4, byte(n>>4))
	default:
		return append(dst, kind|3<<2|byte(n)<<4, byte(n>>4), byte(n>>12))
	}
}

// appendSequences appends the section of sequences.
func (e *Encoder) appendSequences(dst []byte) []byte {
	n := len(e.sequences)
	switch {
	case n < 0x80:
		dst = append(dst, byte(n))
	case n < 0x7f00:
		dst = append(dst, byte(n>>8)+0x80, byte(n))
	default:
		dst = append(dst, 0xff, byte(n-0x7f00), byte((n-0x7f00)>>8))
	}
	if n == 0 {
		return dst
	}
	modes := len(dst)
	dst = append(dst, 0)
	dst, literals := e.literalLengths.appendTable(dst, n, &predefinedLiterals)
	dst, offsets := e.offsets.appendTable(dst, n, &predefinedOffsets)
	dst, matches := e.matchLengths.appendTable(dst, n, &predefinedMatches)
	dst[modes] = literals<<6 | offsets<<4 | matches<<2
	return e.appendBits(dst)
}

// maxSequence is the most bytes that a sequence takes: 26 bits for states and 53 for numbers.
const maxSequence = 10

// appendBits appends the numbers of all sequences, from the last to the first: a decoder reads backwards.
func (e *Encoder) appendBits(dst []byte) []byte {
	ll, of, ml := e.literalLengths.table, e.offsets.table, e.matchLengths.table
	at := len(dst)
	dst = slices.Grow(dst, maxSequence*len(e.sequences)+16)
	room := dst[:cap(dst)]
	var pending uint64 // bits not yet written
	var held uint      // how many

	sequences := e.sequences
	last := len(sequences) - 1
	q := &sequences[last]
	llState, ofState, mlState := ll.first(q.literalCode), of.first(q.offsetCode), ml.first(q.matchCode)
	pending, held = q.more, uint(q.bits)
	for i := last - 1; i >= 0; i-- { // slices.Backward would keep variables out of registers
		binary.LittleEndian.PutUint64(room[at:], pending) // 63 at most
		at += int(held >> 3)
		pending >>= held & 56
		held &= 7

		q := &sequences[i]
		var low, n uint32
		ofState, low, n = of.next(ofState, q.offsetCode)
		pending |= uint64(low) << (held & 63)
		held += uint(n)
		mlState, low, n = ml.next(mlState, q.matchCode)
		pending |= uint64(low) << (held & 63)
		held += uint(n)
		llState, low, n = ll.next(llState, q.literalCode)
		pending |= uint64(low) << (held & 63)
		held += uint(n)
		if held+uint(q.bits) > 63 {
			binary.LittleEndian.PutUint64(room[at:], pending)
			at += int(held >> 3)
			pending >>= held & 56
			held &= 7
		}
		pending |= q.more << (held & 63) // what the codes leave open
		held += uint(q.bits)
	}
	binary.LittleEndian.PutUint64(room[at:], pending)
	at += int(held >> 3)
	pending >>= held & 56
	held &= 7
	for _, s := range [...]struct {
		state uint32
		log   uint8
	}{{mlState, ml.log}, {ofState, of.log}, {llState, ll.log}} {
		pending |= uint64(s.state) & (1<<s.log - 1) << held
		held += uint(s.log)
	}
	pending |= 1 << held // where a decoder begins
	held++
	binary.LittleEndian.PutUint64(room[at:], pending)
	return dst[:at+int(held+7)>>3]
}
