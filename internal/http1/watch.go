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

// watched is the context of a request. It ends when the request was answered or the client disconnects. The latter is
// only watched once somebody waits for the context and the request was read completely. What is needed for that is made
// then, because nearly all requests are never waited for.
type watched struct {
	conn *conn
	own  atomic.Pointer[ending] // nil until somebody waits
	over atomic.Bool            // set under mu

	mu           sync.Mutex
	wanted, read bool
	watching     chan struct{} // closed when watching has ended; nil if it never began
}

// ending is the context that can be waited for.
type ending struct {
	context.Context

	cancel context.CancelFunc
}

// Deadline returns the connection's.
func (w *watched) Deadline() (deadline time.Time, ok bool) { return w.conn.base.Deadline() }

// Value returns the connection's.
func (w *watched) Value(key any) any {
	if own := w.own.Load(); own != nil { // so that contexts derived from it find it
		return own.Value(key)
	}
	return w.conn.base.Value(key)
}

// Err returns why the context has ended, nil if it has not.
func (w *watched) Err() error {
	if w.own.Load() == nil && !w.over.Load() { // fast path
		return w.conn.base.Err() //nolint:wrapcheck // it is a context's
	}
	return w.end().Err() //nolint:wrapcheck // likewise
}

// Done starts watching the connection.
func (w *watched) Done() <-chan struct{} {
	own := w.end()
	w.mu.Lock()
	defer w.mu.Unlock()
	w.wanted = true
	w.begin()
	return own.Done()
}

// end returns the context that can be waited for.
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

// bodyEnded is called when the handler's reads from the connection have ended.
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

// watch waits for the next request, or for the end of the connection. What it reads stays in the buffer.
func (w *watched) watch() {
	defer close(w.watching)
	if _, err := w.conn.in.Peek(1); err != nil && !errors.Is(err, os.ErrDeadlineExceeded) {
		w.own.Load().cancel()
	}
}

// finish ends the context. Nobody reads from the connection for it after that.
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
