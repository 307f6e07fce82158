// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package fastprometheusreceiver

import (
	"context"
	"fmt"
	"math/bits"
	"sync"

	"github.com/godwit-otel/godwit/internal/memlimit"
	"github.com/godwit-otel/godwit/receiver/fastprometheusreceiver/internal/fetch"
)

// Sizes of the buffers that are used again, in powers of two. Larger ones are allocated when needed.
const (
	minBuffer = 4 << 10
	maxBuffer = 4 << 20
)

// bodiesShare is the share of the memory that all bodies in flight may take together, in addition to fetch.Share for
// each of them.
var bodiesShare = memlimit.Share{Part: 8, Least: 8 << 20, Most: 128 << 20}

// bodyPart limits the memory of one body, to one part in this many of the memory for all.
const bodyPart = 8

// buffers are shared by all targets to receive bodies. The garbage collector takes those that are idle for a while, so
// that one huge page does not hold memory for ever.
type buffers struct {
	sizes   [11]sync.Pool // of *[]byte, from minBuffer to maxBuffer
	holders sync.Pool     // of *[]byte without a buffer

	most int64 // the most that may be lent in buffers larger than fetch.Share

	mu    sync.Mutex
	lent  int64
	freed chan struct{} // closed when a buffer comes back; nil if nobody waits for that
}

// Take implements [fetch.Memory].
func (b *buffers) Take(size int) []byte {
	size = bufferSize(size)
	if !b.lend(size) {
		return nil
	}
	return b.buffer(size)
}

// Wait implements [fetch.Memory].
func (b *buffers) Wait(ctx context.Context, size int) ([]byte, error) {
	size = bufferSize(size)
	if int64(size) > b.most/bodyPart {
		return nil, fmt.Errorf("%w: more than %s in zstd, which cannot be read by and by: have the target compress the page with gzip",
			fetch.ErrBodySize, memlimit.Size(b.most/bodyPart))
	}
	for {
		if b.lend(size) {
			return b.buffer(size), nil
		}
		b.mu.Lock()
		if b.freed == nil {
			b.freed = make(chan struct{})
		}
		freed := b.freed
		fits := b.lent+int64(size) <= b.most // one may have come back meanwhile
		b.mu.Unlock()
		if fits {
			continue
		}
		select {
		case <-freed:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

// Give implements [fetch.Memory].
func (b *buffers) Give(buf []byte) {
	if cap(buf) > fetch.Share {
		b.mu.Lock()
		b.lent -= int64(cap(buf))
		if b.freed != nil {
			close(b.freed)
			b.freed = nil
		}
		b.mu.Unlock()
	}
	class := sizeClass(cap(buf))
	if minBuffer<<class > cap(buf) {
		class-- // between two sizes: it serves the smaller one
	}
	if class < 0 || cap(buf) > maxBuffer {
		return
	}
	holder, ok := b.holders.Get().(*[]byte)
	if !ok {
		holder = new([]byte)
	}
	*holder = buf[:0]
	b.sizes[class].Put(holder)
}

// lend records that a buffer is lent, and reports whether the limits for one body and for all of them allow it. Small
// ones are always lent.
func (b *buffers) lend(size int) bool {
	if size <= fetch.Share {
		return true
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.lent+int64(size) > b.most || int64(size) > b.most/bodyPart {
		return false
	}
	b.lent += int64(size)
	return true
}

// buffer returns a buffer of a size that [bufferSize] returned.
func (b *buffers) buffer(size int) []byte {
	if size > maxBuffer {
		return make([]byte, size)
	}
	holder, ok := b.sizes[sizeClass(size)].Get().(*[]byte)
	if !ok {
		return make([]byte, size)
	}
	buf := *holder
	*holder = nil
	b.holders.Put(holder)
	return buf[:size:size]
}

// held returns how many bytes are lent, without small buffers.
func (b *buffers) held() int64 {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.lent
}

// bufferSize is the size of the buffer that is lent for a body of size bytes.
func bufferSize(size int) int {
	if size > maxBuffer {
		return size
	}
	return minBuffer << sizeClass(size)
}

// sizeClass returns the first class with room for size bytes.
func sizeClass(size int) int {
	if size <= minBuffer {
		return 0
	}
	return bits.Len(uint(size-1) / minBuffer)
}
