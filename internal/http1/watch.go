// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package http1

import (
	"context"
	"errors"
	"os"
	"sync"
	"time"
)

// watched is the context of a request. It ends when the request was answered, or when the client goes: that is looked for from when
// somebody waits for it, and all of the request was read.
type watched struct {
	context.Context

	cancel context.CancelFunc
	conn   *conn

	mu           sync.Mutex
	wanted, read bool
	over         bool
	watching     chan struct{} // closed when nobody does any more; nil if nobody did
}

// Done has the connection watched.
func (w *watched) Done() <-chan struct{} {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.wanted = true
	w.begin()
	return w.Context.Done()
}

// bodyEnded is called when nobody reads from the connection any more.
func (w *watched) bodyEnded() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.read = true
	w.begin()
}

func (w *watched) begin() {
	if !w.wanted || !w.read || w.over || w.watching != nil {
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
		w.cancel()
	}
}

// finish ends the context. Nobody reads from the connection from then on.
func (w *watched) finish() {
	w.mu.Lock()
	was := w.over
	w.over = true
	w.mu.Unlock()
	if was {
		return
	}
	if w.watching != nil {
		_ = w.conn.nc.SetReadDeadline(time.Unix(1, 0))
		<-w.watching
		w.conn.readWithin(0)
	}
	w.cancel()
}
