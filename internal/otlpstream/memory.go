// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package otlpstream

import (
	"math/bits"
	"sync"
	"sync/atomic"

	"google.golang.org/grpc/mem"
)

// Memory holds a payload while anyone uses it, and another payload after that. Whoever holds it counts as a user,
// including gRPC until it has written the payload, and the last user to release it gives it back. Memory that is never
// released is left to the garbage collector. A nil *Memory ignores all calls.
type Memory struct {
	room  []byte // all of it
	data  []byte // the part that is used
	users atomic.Int32
}

// NewMemory returns memory of the given size in bytes, with arbitrary contents and one user.
func NewMemory(size int) *Memory {
	var m *Memory
	class, room := memoryClass(size)
	if class >= 0 {
		m, _ = memories[class].Get().(*Memory)
	}
	if m == nil {
		m = &Memory{room: make([]byte, room)}
	}
	m.data = m.room[:size]
	m.users.Store(1)
	return m
}

// Bytes returns the memory itself.
func (m *Memory) Bytes() []byte { return m.data }

// Extend resizes it to the given number of bytes, if it is large enough. It must not have another user yet.
func (m *Memory) Extend(size int) bool {
	if m == nil || size > len(m.room) {
		return false
	}
	m.data = m.room[:size]
	return true
}

// Retain adds a user. Only a user may call it.
func (m *Memory) Retain() {
	if m != nil {
		m.users.Add(1)
	}
}

// Release removes a user.
func (m *Memory) Release() {
	if m == nil || m.users.Add(-1) > 0 {
		return
	}
	if class, _ := memoryClass(cap(m.room)); class >= 0 {
		memories[class].Put(m)
	}
}

// buffer returns the memory as a buffer for gRPC, which is a user until it frees that.
func (m *Memory) buffer() mem.Buffer {
	m.Retain()
	return mem.NewBuffer(&m.data, freed{m})
}

// freed is the pool to which gRPC returns the buffer.
type freed struct{ m *Memory }

// Get is required of pools.
func (freed) Get(length int) *[]byte { b := make([]byte, length); return &b }

// Put takes back the buffer.
func (f freed) Put(*[]byte) { f.m.Release() }

// Memory of 2^leastMemory to 2^mostMemory bytes is used again: smaller is not worth it, and gRPC does not count who uses
// it; larger is rare. It comes in eight sizes to each power of two, so little of it is idle.
const (
	leastMemory = 10
	mostMemory  = 26
	memorySizes = 8
)

var memories [(mostMemory - leastMemory) * memorySizes]sync.Pool

// memoryClass returns the class of the memory for the given number of bytes, negative where it is used once, and its
// size.
func memoryClass(size int) (class, room int) {
	if size <= 1<<leastMemory || size > 1<<mostMemory {
		return -1, size
	}
	n := bits.Len(uint(size-1)) - 1 // the size is in (2^n, 2^(n+1)]
	step := 1 << n / memorySizes
	steps := (size - 1<<n + step - 1) / step
	return (n-leastMemory)*memorySizes + steps - 1, 1<<n + steps*step
}
