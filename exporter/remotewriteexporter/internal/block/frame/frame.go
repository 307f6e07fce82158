// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

// Package frame writes zstd frames (RFC 8878) of requests: messages that each repeat the one before except for a
// few bytes. Any zstd decoder reads them.
//
// The writer of the messages knows where those bytes are, and passes that as a Run. Elsewhere an Encoder first tries
// the distance of the last match, which finds nearly all repeats in less time than a full search. It
// borrows its input, and holds less than a megabyte. It looks back at most a megabyte, which is what a
// decoder must keep.
package frame

import (
	"encoding/binary"

	"github.com/klauspost/compress/huff0"
)

const (
	magic = 0xfd2fb528

	// windowLog limits how far back matches refer. A request of 50k samples is 2 to 3 MB, but similar messages are
	// close together: a window of the whole request gave the same size, and costs the decoder more memory.
	windowLog = 20
	// Window is that distance in bytes.
	Window   = 1 << windowLog
	maxBlock = 128 << 10

	// singleSegment is the bit of a frame's descriptor that says that the window is the content.
	singleSegment = 1 << 5
)

// Types of blocks.
const (
	rawBlock        = 0
	compressedBlock = 2
)

// Encoder makes one frame at a time. Its zero value is ready.
type Encoder struct {
	seen      [1 << hashBits]uint32 // by hash: base plus the last position with it
	base      uint32                // of the frame
	literals  []byte
	sequences []sequence
	recent    recent
	runs      []Run // those not reached yet
	huffman   huff0.Scratch

	literalLengths, offsets, matchLengths coder
}

// recent are the offsets that a decoder remembers, the latest first.
type recent struct{ last, before, third uint32 }

// Append appends src as a frame to dst. It consumes the hints in known.
func (e *Encoder) Append(dst, src []byte, known Known) []byte {
	e.begin(len(src))
	e.runs = known.Runs
	dst = appendHeader(dst, len(src))
	for at := 0; ; {
		end, random := known.Random.cut(at, min(at+maxBlock, len(src)))
		dst = e.appendBlock(dst, src, at, end, random)
		if at = end; at == len(src) {
			e.base += uint32(len(src))
			e.runs = nil
			return dst
		}
	}
}

// begin resets the state that depends on the frame before.
func (e *Encoder) begin(size int) {
	if next := uint64(e.base) + uint64(size); e.base == 0 || next > 1<<32-1 {
		clear(e.seen[:])
		e.base = 1
	}
	e.recent = recent{1, 4, 8}
	e.forget()
}

// forget prepares for a decoder that has no tables from earlier blocks.
func (e *Encoder) forget() {
	e.huffman.Reuse = huff0.ReusePolicyNone
	e.literalLengths.last, e.offsets.last, e.matchLengths.last = nil, nil, nil
}

func appendHeader(dst []byte, size int) []byte {
	dst = binary.LittleEndian.AppendUint32(dst, magic)
	var descriptor byte // says how many bytes the size has
	switch {
	case size >= 256+1<<16:
		descriptor = 2 << 6
	case size >= 256:
		descriptor = 1 << 6
	}
	if size <= Window {
		dst = append(dst, descriptor|singleSegment)
	} else {
		dst = append(dst, descriptor, (windowLog-10)<<3)
	}
	switch descriptor >> 6 {
	case 2:
		return binary.LittleEndian.AppendUint32(dst, uint32(size))
	case 1:
		return binary.LittleEndian.AppendUint16(dst, uint16(size-256))
	default:
		return append(dst, byte(size))
	}
}

// appendBlock appends src[at:end] as a block. Random data is not searched for matches.
func (e *Encoder) appendBlock(dst, src []byte, at, end int, random bool) []byte {
	before := e.recent
	start := len(dst)
	dst = append(dst, 0, 0, 0)
	if random {
		e.literals, e.sequences = append(e.literals[:0], src[at:end]...), e.sequences[:0]
	} else {
		e.find(src, at, end)
	}
	dst = e.appendLiterals(dst)
	dst = e.appendSequences(dst)
	content, kind := start+3, compressedBlock
	if len(dst)-content >= end-at {
		e.recent = before // a raw block leaves a decoder's state unchanged
		e.forget()
		kind, dst = rawBlock, append(dst[:content], src[at:end]...)
	}
	header := uint32(len(dst)-content)<<3 | uint32(kind)<<1
	if end == len(src) {
		header |= 1
	}
	dst[start], dst[start+1], dst[start+2] = byte(header), byte(header>>8), byte(header>>16)
	return dst
}
