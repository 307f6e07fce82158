// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package websocket

import "encoding/binary"

type opcode byte

const (
	opContinuation opcode = 0
	opText         opcode = 1
	opBinary       opcode = 2
	opClose        opcode = 8
	opPing         opcode = 9
	opPong         opcode = 10
)

func (op opcode) isControl() bool { return op >= opClose }

// The contents of a frame's first two bytes.
const (
	bitFinal     = 0x80
	bitsReserved = 0x70
	bitsOpcode   = 0x0f
	bitMasked    = 0x80
	bitsLength   = 0x7f

	length16 = 126 // the length is in two bytes that follow
	length64 = 127 // in eight

	maxControl = 125 // largest payload of a control frame
	maxHeader  = 2 + 8 + keySize
)

// header precedes the payload of a frame.
type header struct {
	op     opcode
	final  bool
	masked bool
	key    [keySize]byte
	length uint64
}

// headerLength returns the length of the header with these first two bytes.
func headerLength(first [2]byte) int {
	n := 2
	switch first[1] & bitsLength {
	case length16:
		n += 2
	case length64:
		n += 8
	}
	if first[1]&bitMasked != 0 {
		n += keySize
	}
	return n
}

// parseHeader reads a complete header.
func parseHeader(b []byte) header {
	h := header{op: opcode(b[0] & bitsOpcode), final: b[0]&bitFinal != 0, masked: b[1]&bitMasked != 0}
	switch rest := b[2:]; b[1] & bitsLength {
	case length16:
		h.length = uint64(binary.BigEndian.Uint16(rest))
	case length64:
		h.length = binary.BigEndian.Uint64(rest)
	default:
		h.length = uint64(b[1] & bitsLength)
	}
	if h.masked {
		copy(h.key[:], b[len(b)-keySize:])
	}
	return h
}

// appendHeader appends the header of a frame that is a whole message.
func appendHeader(dst []byte, op opcode, length int, masked bool, key [keySize]byte) []byte {
	mask := byte(0)
	if masked {
		mask = bitMasked
	}
	dst = append(dst, bitFinal|byte(op))
	switch {
	case length < length16:
		dst = append(dst, mask|byte(length))
	case length < 1<<16:
		dst = binary.BigEndian.AppendUint16(append(dst, mask|length16), uint16(length))
	default:
		dst = binary.BigEndian.AppendUint64(append(dst, mask|length64), uint64(length))
	}
	if masked {
		dst = append(dst, key[:]...)
	}
	return dst
}
