// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package otlpstreamexporter

import (
	"context"

	"golang.org/x/sync/semaphore"
)

// window limits how much is in flight to a destination.
type window struct {
	requests, bytes *semaphore.Weighted
	most            int64 // bytes
}

func newWindow(requests int, bytes int64) *window {
	return &window{requests: semaphore.NewWeighted(int64(requests)), bytes: semaphore.NewWeighted(bytes), most: bytes}
}

// enter waits for room for a request of a size, and reports whether there was some before ctx was done. The caller must
// leave.
func (w *window) enter(ctx context.Context, size int) bool {
	if w.requests.Acquire(ctx, 1) != nil {
		return false
	}
	if w.bytes.Acquire(ctx, w.share(size)) != nil {
		w.requests.Release(1)
		return false
	}
	return true
}

func (w *window) leave(size int) {
	w.bytes.Release(w.share(size))
	w.requests.Release(1)
}

// share returns how much of the limit in bytes a request takes. One that is larger than the limit is sent alone.
func (w *window) share(size int) int64 { return min(int64(size), w.most) }
