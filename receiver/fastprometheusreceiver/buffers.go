// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package fastprometheusreceiver

import (
	"math/bits"
	"sync"
)

// Sizes of the buffers that bodies are received into. Larger ones go to the garbage collector: one huge page must not
// pin memory for ever.
const (
	minBuffer = 4 << 10
	maxBuffer = 4 << 20
)

// buffers are shared by all targets, sorted by powers of two. What is taken is put back.
type buffers struct {
	sizes [11]sync.Pool // of *[]byte, from minBuffer to maxBuffer
}

// get returns an empty buffer with room for size bytes.
func (b *buffers) get(size int) *[]byte {
	class := sizeClass(size)
	if class < len(b.sizes) {
		if buf, ok := b.sizes[class].Get().(*[]byte); ok {
			return buf
		}
		size = minBuffer << class
	}
	buf := make([]byte, 0, size)
	return &buf
}

func (b *buffers) put(buf *[]byte) {
	class := sizeClass(cap(*buf))
	if minBuffer<<class > cap(*buf) {
		class-- // grown to something between two sizes: it serves the smaller
	}
	if class < 0 || class >= len(b.sizes) {
		return
	}
	*buf = (*buf)[:0]
	b.sizes[class].Put(buf)
}

// sizeClass returns the first class with room for size bytes.
func sizeClass(size int) int {
	if size <= minBuffer {
		return 0
	}
	return bits.Len(uint(size-1) / minBuffer)
}
