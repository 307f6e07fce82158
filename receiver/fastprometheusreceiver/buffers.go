// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package fastprometheusreceiver

import (
	"math/bits"
	"sync"
)

// Sizes of the buffers that bodies are received into, in powers of two. There are larger ones, each for pages of its size.
const (
	minBuffer = 4 << 10
	maxBuffer = 4 << 20
)

// buffers are shared by all targets. What is taken is put back. Those that nobody takes for a while go to the garbage
// collector, so that no page that was huge once pins memory for ever.
type buffers struct {
	sizes [11]sync.Pool // of *[]byte, from minBuffer to maxBuffer
	large sync.Pool
}

// get returns an empty buffer with room for size bytes.
func (b *buffers) get(size int) *[]byte {
	class := sizeClass(size)
	if class < len(b.sizes) {
		if buf, ok := b.sizes[class].Get().(*[]byte); ok {
			return buf
		}
		size = minBuffer << class
	} else if buf, ok := b.large.Get().(*[]byte); ok && cap(*buf) >= size {
		return buf
	}
	buf := make([]byte, 0, size)
	return &buf
}

func (b *buffers) put(buf *[]byte) {
	class := sizeClass(cap(*buf))
	if minBuffer<<class > cap(*buf) {
		class-- // grown to something between two sizes: it serves the smaller
	}
	*buf = (*buf)[:0]
	switch {
	case cap(*buf) > maxBuffer:
		b.large.Put(buf)
	case class >= 0:
		b.sizes[class].Put(buf)
	}
}

// sizeClass returns the first class with room for size bytes.
func sizeClass(size int) int {
	if size <= minBuffer {
		return 0
	}
	return bits.Len(uint(size-1) / minBuffer)
}
