// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

// Package siphash is SipHash-1-3 of strings, words and bytes: 64 bits that nobody can predict, or make collide,
// without the key. The hash tables of several languages use it against hostile keys.
//
// Nothing here allocates.
package siphash

import (
	"encoding/binary"
	"math/bits"
)

// KeySize is the length of a key in bytes.
const KeySize = 16

// Key is secret.
type Key struct{ k0, k1 uint64 }

// NewKey returns the key of these bytes.
func NewKey(b [KeySize]byte) Key {
	return Key{binary.LittleEndian.Uint64(b[:8]), binary.LittleEndian.Uint64(b[8:])}
}

// Bytes returns what the key was made of.
func (k Key) Bytes() (b [KeySize]byte) {
	binary.LittleEndian.PutUint64(b[:8], k.k0)
	binary.LittleEndian.PutUint64(b[8:], k.k1)
	return b
}

// String hashes a string.
func (k Key) String(s string) uint64 {
	v0, v1, v2, v3 := k.begin()
	last := uint64(len(s)) << 56
	for len(s) >= 8 {
		word := uint64(s[0]) | uint64(s[1])<<8 | uint64(s[2])<<16 | uint64(s[3])<<24 |
			uint64(s[4])<<32 | uint64(s[5])<<40 | uint64(s[6])<<48 | uint64(s[7])<<56
		s = s[8:]
		v0, v1, v2, v3 = first(v0, v1, v2, v3^word)
		v0, v1, v2, v3 = second(v0, v1, v2, v3)
		v0 ^= word
	}
	i := 0
	if len(s) >= 4 {
		last |= uint64(s[0]) | uint64(s[1])<<8 | uint64(s[2])<<16 | uint64(s[3])<<24
		i = 4
	}
	for ; i < len(s); i++ {
		last |= uint64(s[i]) << (8 * i & 63)
	}
	return end(v0, v1, v2, v3, last)
}

// Word hashes 8 bytes, the first of them the lowest.
func (k Key) Word(word uint64) uint64 {
	v0, v1, v2, v3 := k.begin()
	v0, v1, v2, v3 = first(v0, v1, v2, v3^word)
	v0, v1, v2, v3 = second(v0, v1, v2, v3)
	return end(v0^word, v1, v2, v3, 8<<56)
}

// Bytes are bytes that are not in a slice.
type Bytes interface {
	Len() int
	At(i int) byte
}

// OfBytes hashes as String does.
func OfBytes[B Bytes](k Key, b B) uint64 {
	v0, v1, v2, v3 := k.begin()
	var word uint64
	for i := range b.Len() {
		word |= uint64(b.At(i)) << (8 * i & 63)
		if i%8 == 7 {
			v0, v1, v2, v3 = first(v0, v1, v2, v3^word)
			v0, v1, v2, v3 = second(v0, v1, v2, v3)
			v0 ^= word
			word = 0
		}
	}
	return end(v0, v1, v2, v3, word|uint64(b.Len())<<56)
}

func (k Key) begin() (v0, v1, v2, v3 uint64) {
	return k.k0 ^ 0x736f6d6570736575, k.k1 ^ 0x646f72616e646f6d, k.k0 ^ 0x6c7967656e657261, k.k1 ^ 0x7465646279746573
}

// first and second are the halves of a round: as one function they would not be inlined.
func first(v0, v1, v2, v3 uint64) (w0, w1, w2, w3 uint64) {
	v0 += v1
	v2 += v3
	return bits.RotateLeft64(v0, 32), bits.RotateLeft64(v1, 13) ^ v0, v2, bits.RotateLeft64(v3, 16) ^ v2
}

func second(v0, v1, v2, v3 uint64) (w0, w1, w2, w3 uint64) {
	v0 += v3
	v2 += v1
	return v0, bits.RotateLeft64(v1, 17) ^ v2, bits.RotateLeft64(v2, 32), bits.RotateLeft64(v3, 21) ^ v0
}

// end adds the last word, which has the length, and finishes.
func end(v0, v1, v2, v3, last uint64) uint64 {
	v0, v1, v2, v3 = first(v0, v1, v2, v3^last)
	v0, v1, v2, v3 = second(v0, v1, v2, v3)
	v0 ^= last
	v2 ^= 0xff
	for range 3 {
		v0, v1, v2, v3 = first(v0, v1, v2, v3)
		v0, v1, v2, v3 = second(v0, v1, v2, v3)
	}
	return v0 ^ v1 ^ v2 ^ v3
}
