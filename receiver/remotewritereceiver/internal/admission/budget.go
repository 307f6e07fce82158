// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package admission

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/godwit-otel/godwit/internal/promwrite"
)

// ErrBusy matches the error for memory that others held too long.
var ErrBusy = errors.New("memory for requests is in use, send again later")

// budget is memory that requests in flight share. Waiting requests are served in order, so that many small ones do not
// starve a large one, nor the other way round.
type budget struct {
	size int

	mu      sync.Mutex
	free    int
	waiting []*turn
	granted time.Time // when a waiting request was last served, or began to wait when no other did
}

// turn is a wait for n bytes; granted is closed when they are free.
type turn struct {
	n       int
	granted chan struct{}
}

func newBudget(size int) *budget { return &budget{size: size, free: size} }

// try takes n bytes if they are free and nobody waits.
func (b *budget) try(n int) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.waiting) > 0 || n > b.free {
		return false
	}
	b.free -= n
	return true
}

// maxWait is how long a request waits for memory: senders time out after a while, and send again.
const maxWait = 10 * time.Second

// take waits for n bytes. More than the budget is too large. The first in the queue calls nudge, if given, at once and
// now and then: with the number of bytes that are missing for it, and for all who wait, and whether nobody has been served
// for a while.
func (b *budget) take(ctx context.Context, n int, nudge func(missing, all int, isStuck bool)) error {
	return b.takeAt(ctx, n, false, nudge)
}

// takeAt does the same, and if first is set before all others that wait. One request at a time may do that.
func (b *budget) takeAt(ctx context.Context, n int, first bool, nudge func(missing, all int, isStuck bool)) error {
	if n > b.size {
		return tooMuch(n, b.size)
	}
	b.mu.Lock()
	if (first || len(b.waiting) == 0) && n <= b.free {
		b.free -= n
		b.mu.Unlock()
		return nil
	}
	if len(b.waiting) == 0 { // until now there was memory for everybody
		b.granted = time.Now()
	}
	t := &turn{n, make(chan struct{})}
	if first {
		b.waiting = slices.Insert(b.waiting, 0, t)
	} else {
		b.waiting = append(b.waiting, t)
	}
	b.mu.Unlock()
	b.nudge(t, nudge)
	ctx, cancel := context.WithTimeout(ctx, maxWait)
	defer cancel()
	ticker := time.NewTicker(patience)
	defer ticker.Stop()
	for {
		select {
		case <-t.granted:
			return nil
		case <-ticker.C:
			b.nudge(t, nudge)
		case <-ctx.Done():
			b.leave(t)
			return busy(n)
		}
	}
}

// nudge calls nudge if t is the first that waits.
func (b *budget) nudge(t *turn, nudge func(missing, all int, isStuck bool)) {
	if nudge == nil {
		return
	}
	b.mu.Lock()
	isFirst, missing, all := len(b.waiting) > 0 && b.waiting[0] == t, t.n-b.free, -b.free
	if isFirst {
		for _, w := range b.waiting {
			all += w.n
		}
	}
	isStuck := time.Since(b.granted) >= patience
	b.mu.Unlock()
	if isFirst {
		nudge(missing, all, isStuck)
	}
}

func busy(n int) error {
	return fmt.Errorf("cannot find %d bytes of memory for the request: %w", n, ErrBusy)
}

func tooMuch(n, limit int) error {
	return fmt.Errorf("cannot use %d bytes of memory for the request, more than %d, send smaller requests or set a larger `max_memory`: %w",
		n, limit, promwrite.ErrTooLarge)
}

// usage returns how many bytes are taken, and how many requests wait.
func (b *budget) usage() (taken, waiting int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.size - b.free, len(b.waiting)
}

// leave ends a wait, even if it was granted at the last moment.
func (b *budget) leave(t *turn) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for i, w := range b.waiting {
		if w == t {
			b.waiting = append(b.waiting[:i], b.waiting[i+1:]...)
			b.serve() // it may have blocked smaller ones
			return
		}
	}
	b.free += t.n
	b.serve()
}

// give returns n bytes.
func (b *budget) give(n int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.free += n
	b.serve()
}

// serve grants what is free, in order. The lock is held.
func (b *budget) serve() {
	for len(b.waiting) > 0 && b.waiting[0].n <= b.free {
		t := b.waiting[0]
		b.waiting[0] = nil
		b.waiting = b.waiting[1:]
		b.free -= t.n
		b.granted = time.Now()
		close(t.granted)
	}
}
