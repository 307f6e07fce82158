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

	// windowLog is how far back matches go. A request of 50k samples is 2 to 3 MB, but laid out so that what is alike is
	// near: a window of all of it measured the same bytes, and costs the memory of who decodes.
	windowLog = 20
	// Window is how far back that is, in bytes.
	Window   = 1 << windowLog
	maxBlock = 128 << 10

	// singleSegment says in a frame's descriptor that the window is the content.
	singleSegment = 1 << 5
)

// Types of blocks.
const (
	rawBlock        = 0
	compressedBlock = 2
)

// Encoder makes one frame at a time. Its zero value is ready.
type Encoder struct {
	seen      [1 << hashBits]uint32 // by hash, base plus where it was last
	base      uint32                // of the frame
	literals  []byte
	sequences []sequence
	recent    recent
	runs      []Run // still to come
	huffman   huff0.Scratch

	literalLengths, offsets, matchLengths coder
}

// recent are the offsets that a decoder remembers, the last one first.
type recent struct{ last, before, third uint32 }

// Append appends src as a frame to dst. What is known of it is used up.
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

// begin forgets the frame before.
func (e *Encoder) begin(size int) {
	if next := uint64(e.base) + uint64(size); e.base == 0 || next > 1<<32-1 {
		clear(e.seen[:])
		e.base = 1
	}
	e.recent = recent{1, 4, 8}
	e.forget()
}

// forget says that a decoder has no tables.
func (e *Encoder) forget() {
	e.huffman.Reuse = huff0.ReusePolicyNone
	e.literalLengths.last, e.offsets.last, e.matchLengths.last = nil, nil, nil
}

func appendHeader(dst []byte, size int) []byte {
	dst = binary.LittleEndian.AppendUint32(dst, magic)
	var descriptor byte // says how long the size is
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

// appendBlock appends src from at to end as a block, without a search where it is random.
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
		e.recent = before // a decoder learns nothing from a raw block
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
