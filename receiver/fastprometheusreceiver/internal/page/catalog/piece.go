// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

//nolint:gosec // what it reads behind a piece was put there by newPiece
package catalog

import (
	"encoding/binary"
	"hash/maphash"
	"unsafe"
)

// A piece is the first byte of a part of a text: of its length as a varint, which the part follows. A string would take
// 16 bytes more, for each line, and one more access to memory whenever a page is compared with it.
type piece byte

// PieceBytes is the memory that a piece takes in addition to its text, on average: the length, and what the allocator
// rounds up.
const PieceBytes = 6

// longPiece is the length from which on a length takes several bytes.
const longPiece = 0x80

func newPiece[T string | []byte](t T) *piece {
	size := 1
	for n := len(t); n >= longPiece; n >>= 7 {
		size++
	}
	b := append(binary.AppendUvarint(make([]byte, 0, size+len(t)), uint64(len(t))), t...)
	return (*piece)(&b[0])
}

// text returns the part. It is the piece's memory.
func (p *piece) text() string {
	if n := int(*p); n < longPiece {
		return p.behind(1, n)
	}
	return p.longText()
}

func (p *piece) longText() string {
	n := 0
	for at := 0; ; at++ {
		b := int(*(*piece)(unsafe.Add(unsafe.Pointer(p), at)))
		if n |= b & (longPiece - 1) << (7 * at); b < longPiece {
			return p.behind(at+1, n)
		}
	}
}

func (p *piece) behind(at, n int) string {
	if n == 0 { // there may be no such byte
		return ""
	}
	return unsafe.String((*byte)(unsafe.Add(unsafe.Pointer(p), at)), n)
}

func (p *piece) isEmpty() bool { return *p == 0 }

func (p *piece) hash() uint64 { return maphash.String(seed, p.text()) }
