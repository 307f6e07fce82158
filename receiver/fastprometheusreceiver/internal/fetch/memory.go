// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package fetch

import (
	"context"
	"errors"
)

// Share is the memory that every body in flight may have, whatever the others hold: enough for a usual compressed page
// of a node exporter, and for the head of any response.
const Share = 64 << 10

// Memory lends the buffers that bodies are received into. It is safe for concurrent use.
type Memory interface {
	// Take returns a buffer of at least size bytes. It returns nil if size is more than Share and bodies hold too much
	// already.
	Take(size int) []byte
	// Wait returns a buffer as soon as there is room for it. It fails when ctx ends first, or if there can never be
	// room.
	Wait(ctx context.Context, size int) ([]byte, error)
	// Give takes back a buffer that was lent, or one that replaced it.
	Give(buf []byte)
}

// heap is memory without a limit.
type heap struct{}

func (heap) Take(size int) []byte                             { return make([]byte, size) }
func (heap) Wait(_ context.Context, size int) ([]byte, error) { return make([]byte, size), nil }
func (heap) Give([]byte)                                      {}

// A MemoryError is a body for which there was no memory.
type MemoryError struct{ Err error }

func (e *MemoryError) Error() string {
	if errors.Is(e.Err, context.DeadlineExceeded) {
		return "cannot hold the page: the bodies of other scrapes took all the memory there is for them until the timeout"
	}
	return e.Err.Error()
}

func (e *MemoryError) Unwrap() error { return e.Err }
