// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package promwrite

import "github.com/klauspost/compress/zstd"

const (
	// maxZstdBlock is the largest decompressed size of a zstd block.
	maxZstdBlock = 128 << 10

	zstdBlockHead = 3
	zstdChecksum  = 4
)

// Kinds of blocks: the first are not compressed, the second repeat one byte.
const (
	zstdRaw = iota
	zstdRepeated
)

// zstdSize is the largest size that the frames of a body can decompress to, or limit if that is less. A frame that was
// compressed piece by piece does not give its size, but its blocks do. Anything that is no frame ends it, as it ends
// decompression.
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
		size += min(blocks, uint64(limit)) // sums of these cannot overflow
	}
	return int(min(size, uint64(limit)))
}

// zstdBlocks returns the largest size that the blocks of a frame can decompress to, and what follows them.
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
