// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package remotewritereceiver

import (
	"errors"

	"github.com/godwit-otel/godwit/internal/borrow"
	"github.com/godwit-otel/godwit/internal/promwrite"
	"github.com/godwit-otel/godwit/receiver/remotewritereceiver/internal/admission"
)

// request is the request that is being translated, for all stages of that.
type request struct {
	known *known // by this and earlier requests

	text    *borrow.Text
	decoder *promwrite.Decoder
	version promwrite.Version
	tree    *tree // for its metrics

	held     *admission.Hold // memory for targets and metrics; nil if there is no limit
	room     int             // unused part of held
	measured bool            // whether the request was measured, and has memory for its points

	// fault is the reason to refuse the whole request: invalid labels, or a lack of memory.
	fault error
}

// reset forgets the request.
func (r *request) reset() { *r = request{known: r.known} }

// someRoom is how much memory is taken at a time for further points.
const someRoom = 16 << 10

// errShort is the error of a request that must be measured first, to wait for memory.
var errShort = errors.New("memory is short")

// take takes memory for the request's further content. If it is not free at once, the request must stop: waiting for
// more while holding some would block others that do the same.
func (r *request) take(n int) {
	if r.room < n && r.held != nil {
		more := max(n, someRoom)
		switch {
		case r.held.More(more):
			r.room += more
		case r.measured:
			r.fault = r.held.Short(more)
		default:
			r.fault = errShort
		}
	}
	r.room -= n
}

// maxRetained limits the entries of a map that is kept for the next request.
const maxRetained = 1 << 16

func emptyMap[M ~map[K]V, K comparable, V any](m M) M {
	if m == nil || len(m) > maxRetained {
		return M{}
	}
	clear(m)
	return m
}
