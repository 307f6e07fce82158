// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package stencil

import (
	"encoding/binary"
	"math/bits"
)

// Types of fields, as in the lower three bits of their tags.
const (
	typeVarint  = 0
	typeFixed64 = 1
	typeBytes   = 2
)

// tail is written from its end to its beginning, as pdata does: so the length of a message is known when it has to be
// written.
type tail struct {
	buf []byte
	at  int // where the written part begins
}

// size returns how much is written.
func (t *tail) size() int { return len(t.buf) - t.at }

func (t *tail) written() []byte { return t.buf[t.at:] }

func (t *tail) reset() { t.at = len(t.buf) }

// take returns room for n bytes before the written part.
func (t *tail) take(n int) []byte {
	if t.at < n {
		size := t.size()
		bigger := make([]byte, 2*(size+n))
		copy(bigger[len(bigger)-size:], t.written())
		t.buf, t.at = bigger, len(bigger)-size
	}
	t.at -= n
	return t.buf[t.at : t.at+n]
}

func (t *tail) varint(v uint64) { putVarint(t.take(sizeOfVarint(v)), v) }

// tag writes the tag of a field below 16.
func (t *tail) tag(field, kind byte) { t.take(1)[0] = field<<3 | kind }

// message writes the beginning of a message whose content is all that was written since the given size.
func (t *tail) message(field byte, size int) {
	t.varint(uint64(t.size() - size))
	t.tag(field, typeBytes)
}

// string writes a string, omitted if it is empty.
func (t *tail) string(field byte, s string) {
	if len(s) > 0 {
		t.bytes(field, s)
	}
}

func (t *tail) bytes(field byte, s string) {
	copy(t.take(len(s)), s)
	t.varint(uint64(len(s)))
	t.tag(field, typeBytes)
}

// count writes a number, omitted if it is zero.
func (t *tail) count(field byte, v uint64) {
	if v != 0 {
		t.varint(v)
		t.tag(field, typeVarint)
	}
}

// fixed writes eight bytes.
func (t *tail) fixed(field byte, v uint64) {
	b := t.take(9)
	b[0] = field<<3 | typeFixed64
	binary.LittleEndian.PutUint64(b[1:], v)
}

func sizeOfVarint(v uint64) int { return (bits.Len64(v|1) + 6) / 7 }

// putVarint fills b.
func putVarint(b []byte, v uint64) {
	for i := range len(b) - 1 {
		b[i] = byte(v) | 0x80
		v >>= 7
	}
	b[len(b)-1] = byte(v)
}
