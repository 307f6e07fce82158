// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package block

import (
	"bytes"
	"fmt"
	"io"
	"sync"
	"sync/atomic"

	"github.com/godwit-otel/godwit/internal/handback"
)

// Memory makes blocks whose bodies go into memory of earlier ones that nobody needs any more. The garbage collector has what no
// block needs for a while. Its zero value is ready.
type Memory struct{ free sync.Pool } // of *lent

// lent is the memory of one body. It comes back when its last user releases it, and never if one does not.
type lent struct {
	home  *Memory
	bytes []byte
	users atomic.Int32
}

// A body takes a part of its memory at least, one in leastPart: what is queued counts with what it holds.
const leastPart = 4

// New makes a block of a copy of a compressed body, which whoever makes it holds until Free. If somebody never frees it, the garbage
// collector has the memory.
func (m *Memory) New(h Header, body []byte) Block {
	l, _ := m.free.Get().(*lent)
	switch {
	case l == nil:
		l = &lent{home: m}
	case cap(l.bytes) > leastPart*len(body): // for a larger one
		m.free.Put(l)
		l = &lent{home: m}
	}
	if cap(l.bytes) < len(body) {
		l.bytes = make([]byte, len(body)+len(body)/8) // the next is seldom of the same size
	}
	l.bytes = l.bytes[:len(body)]
	copy(l.bytes, body)
	l.users.Store(1)
	return Block{Header: h, body: l.bytes, lent: l}
}

// Hold says that somebody else needs the body until Free, while it is held.
func (b Block) Hold() {
	if b.lent != nil {
		b.lent.users.Add(1)
	}
}

// Free says that who held the block needs its body no more.
func (b Block) Free() {
	if b.lent != nil {
		b.lent.release()
	}
}

func (l *lent) release() {
	switch n := l.users.Add(-1); {
	case n < 0:
		panic(fmt.Sprintf("a body was freed %d times too often", -n))
	case n > 0:
		return
	}
	if handback.Poisons() {
		clear(l.bytes)
	}
	l.home.free.Put(l)
}

// Reader reads the body, which it holds until it is closed. It may be closed while somebody reads, as HTTP clients do, and more than
// once: what is read after that fails.
func (b Block) Reader() io.ReadCloser {
	b.Hold()
	return &bodyReader{of: b, rest: *bytes.NewReader(b.body)}
}

type bodyReader struct {
	mu   sync.Mutex
	of   Block // the zero block once it is closed
	rest bytes.Reader
}

func (r *bodyReader) Read(p []byte) (int, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.of.body == nil {
		return 0, fmt.Errorf("cannot read a request that was closed: %w", io.ErrClosedPipe)
	}
	return r.rest.Read(p)
}

func (r *bodyReader) Close() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.of.Free()
	r.of = Block{}
	r.rest.Reset(nil)
	return nil
}
