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

// Memory makes blocks whose bodies use the memory of earlier ones that are no longer needed. The garbage collector
// takes idle memory. Its zero value is ready.
type Memory struct{ free sync.Pool } // of *sharedBody

// sharedBody is the memory of one body. It is used again when its last user releases it, and never if one does not.
type sharedBody struct {
	home  *Memory
	bytes []byte
	users atomic.Int32
}

// leastPart is how many times as large as a body its memory may be, since queued blocks count by their bodies.
const leastPart = 4

// New makes a block of a copy of a compressed body, held by the caller until Free. If Free is never called, the garbage
// collector takes the memory.
func (m *Memory) New(h Header, body []byte) Block {
	l, _ := m.free.Get().(*sharedBody)
	switch {
	case l == nil:
		l = &sharedBody{home: m}
	case cap(l.bytes) > leastPart*len(body): // keep it for a larger body
		m.free.Put(l)
		l = &sharedBody{home: m}
	}
	if cap(l.bytes) < len(body) {
		l.bytes = make([]byte, len(body)+len(body)/8) // sizes vary
	}
	l.bytes = l.bytes[:len(body)]
	copy(l.bytes, body)
	l.users.Store(1)
	return Block{Header: h, body: l.bytes, lent: l}
}

// Hold adds a user of the body, who must call Free. The block must be held at that time.
func (b Block) Hold() {
	if b.lent != nil {
		b.lent.users.Add(1)
	}
}

// Free records that one user no longer needs the body.
func (b Block) Free() {
	if b.lent != nil {
		b.lent.release()
	}
}

func (l *sharedBody) release() {
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

// Reader reads the body, which it holds until it is closed. It may be closed during a read, as HTTP clients do, and
// more than once; reads after that fail.
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
