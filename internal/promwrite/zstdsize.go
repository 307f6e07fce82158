// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package promwrite

import "github.com/klauspost/compress/zstd"

const (
	// maxZstdBlock is the most that a block of zstd is decompressed to.
	maxZstdBlock = 128 << 10

	zstdBlockHead = 3
	zstdChecksum  = 4
)

// Kinds of blocks, of which the first are as they are, and the second one byte again and again.
const (
	zstdRaw = iota
	zstdRepeated
)

// zstdSize is the most bytes that the frames of a body can be decompressed to, or limit if that is less. A frame that was compressed piece by
// piece says nothing of its size, but its blocks do. Whatever is no frame ends it: nobody decompresses what follows.
func zstdSize(src []byte, limit int) int {
	size := uint64(0)
	for len(src) > 0 && size < uint64(limit) {
		var h zstd.Header
		if h.Decode(src) != nil {
			break
		}
		src = src[h.HeaderSize:]
		if h.Skippable {
			src = src[min(uint64(h.SkippableSize), uint64(len(src))):]
			continue
		}
		blocks, rest := zstdBlocks(src)
		src = rest
		if h.HasFCS {
			blocks = h.FrameContentSize
		}
		if h.HasCheckSum {
			src = src[min(zstdChecksum, len(src)):]
		}
		size += min(blocks, uint64(limit)) // which together do not wrap
	}
	return int(min(size, uint64(limit)))
}

// zstdBlocks is the most that the blocks of a frame are decompressed to, and what follows them.
func zstdBlocks(src []byte) (size uint64, rest []byte) {
	for len(src) >= zstdBlockHead {
		head := uint32(src[0]) | uint32(src[1])<<8 | uint32(src[2])<<16
		src = src[zstdBlockHead:]
		isLast, kind, n := head&1 != 0, head>>1&3, int(head>>3)
		switch kind {
		case zstdRaw:
			size += uint64(n)
		case zstdRepeated:
			size += uint64(n)
			n = 1
		default:
			size += maxZstdBlock
		}
		src = src[min(n, len(src)):]
		if isLast {
			return size, src
		}
	}
	return size, nil
}
