// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

// Package heads limits the memory of the heads of requests on all connections of a server together.
//
// A server that limits each head alone lets three hundred clients hold 300 MB, by heads that never end. Here a connection
// has the usual size of a head for itself. What is beyond that comes from a room that all share, and a connection for
// which there is none is closed: clients that send usual heads are unaffected.
package heads

import (
	"errors"
	"sync/atomic"

	"github.com/godwit-otel/godwit/internal/memlimit"
)

// Usual is how much of each head is not counted.
const Usual = 8 << 10

// share is for heads as received. Parsed, they take some three times as much. The least is that of one server alone:
// more than one head of the largest size that net/http allows.
var share = memlimit.Share{Part: 64, Least: 3 << 19, Most: 32 << 20}

// ErrRoom matches the error for a head that there is no room for.
var ErrRoom = errors.New("the heads of requests take too much memory together")

// Room is what heads may take beyond their usual size.
type Room struct {
	most  int64
	taken atomic.Int64
}

// NewRoom returns the room for the memory that there is.
func NewRoom() *Room { return &Room{most: share.Of(memlimit.Available())} }

// Head is what a connection has of a head. Its zero value is not ready: see [Room.Head].
type Head struct {
	room        *Room
	read, taken int64
}

// Head returns an empty head.
func (r *Room) Head() Head { return Head{room: r} }

// Add counts n bytes that have come. It returns an error if there is no room for them.
func (h *Head) Add(n int) error {
	h.read += int64(n)
	more := h.read - Usual - h.taken
	if more <= 0 {
		return nil
	}
	if h.room.taken.Add(more) > h.room.most {
		h.room.taken.Add(-more)
		return ErrRoom
	}
	h.taken += more
	return nil
}

// End gives back what the head took.
func (h *Head) End() {
	h.room.taken.Add(-h.taken)
	h.read, h.taken = 0, 0
}
