// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package http1

import (
	"context"
	"errors"
	"os"
	"sync"
	"sync/atomic"
	"time"
)

// watched is the context of a request. It ends when the request was answered, or when the client goes: that is looked for from when
// somebody waits for it, and all of the request was read. What is needed to wait is made then: of nearly all requests nobody does.
type watched struct {
	conn *conn
	own  atomic.Pointer[ending] // nil until somebody waits
	over atomic.Bool            // set under mu

	mu           sync.Mutex
	wanted, read bool
	watching     chan struct{} // closed when nobody does any more; nil if nobody did
}

// ending is what somebody waits for.
type ending struct {
	context.Context

	cancel context.CancelFunc
}

// Deadline is the connection's.
func (w *watched) Deadline() (deadline time.Time, ok bool) { return w.conn.base.Deadline() }

// Value is the connection's.
func (w *watched) Value(key any) any {
	if own := w.own.Load(); own != nil { // whoever is to end with it finds it so
		return own.Value(key)
	}
	return w.conn.base.Value(key)
}

// Err reports whether it has ended.
func (w *watched) Err() error {
	if w.own.Load() == nil && !w.over.Load() { // fast path
		return w.conn.base.Err() //nolint:wrapcheck // it is a context's
	}
	return w.end().Err() //nolint:wrapcheck // likewise
}

// Done has the connection watched.
func (w *watched) Done() <-chan struct{} {
	own := w.end()
	w.mu.Lock()
	defer w.mu.Unlock()
	w.wanted = true
	w.begin()
	return own.Done()
}

// end is what somebody waits for.
func (w *watched) end() *ending {
	w.mu.Lock()
	defer w.mu.Unlock()
	own := w.own.Load()
	if own == nil {
		own = new(ending)
		if own.Context, own.cancel = context.WithCancel(w.conn.base); w.over.Load() {
			own.cancel()
		}
		w.own.Store(own)
	}
	return own
}

// bodyEnded is called when nobody reads from the connection any more.
func (w *watched) bodyEnded() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.read = true
	w.begin()
}

func (w *watched) begin() {
	if !w.wanted || !w.read || w.over.Load() || w.watching != nil {
		return
	}
	w.watching = make(chan struct{})
	w.conn.readWithin(0)
	go w.watch()
}

// watch waits for the next request, or for the end of all. What comes stays where it is read from.
func (w *watched) watch() {
	defer close(w.watching)
	if _, err := w.conn.in.Peek(1); err != nil && !errors.Is(err, os.ErrDeadlineExceeded) {
		w.own.Load().cancel()
	}
}

// finish ends the context. Nobody reads from the connection from then on.
func (w *watched) finish() {
	w.mu.Lock()
	was := w.over.Swap(true)
	w.mu.Unlock()
	if was {
		return
	}
	if w.watching != nil {
		_ = w.conn.nc.SetReadDeadline(time.Unix(1, 0))
		<-w.watching
		w.conn.readWithin(0)
	}
	if own := w.own.Load(); own != nil {
		own.cancel()
	}
}
