// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

// Package wire proxies TCP connections to a server, with any faults that a test needs. A fault also applies to open
// connections, unless its method says otherwise.
package wire

import (
	"context"
	"io"
	"net"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/godwit-otel/godwit/e2e/wait"
)

const (
	pieceSize = 32 << 10
	// A slow connection passes bytes on this often.
	tick = 20 * time.Millisecond
)

// Wire is a proxy for a server. It is safe for concurrent use.
type Wire struct {
	target   string
	listener net.Listener
	ctx      context.Context //nolint:containedctx // that of the test, for goroutines that no call began
	running  sync.WaitGroup

	mu       sync.Mutex
	open     map[*link]struct{}
	cutAfter func() int
	swallow  bool
	rate     int
	accepted int
	cuts     int
}

// link is a client's connection and the one to the server.
type link struct {
	client, server net.Conn
	// left is the number of bytes that the client may send before the link is cut; negative means no limit.
	left int
	// lost is set when the server's connection is closed but the client's is not.
	lost bool
}

// New starts a proxy to an address, which runs until the test ends.
func New(t testing.TB, target string) *Wire {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(context.Background())
	w := &Wire{target: target, listener: l, ctx: ctx, open: map[*link]struct{}{}}
	w.running.Go(w.accept)
	t.Cleanup(func() {
		cancel()
		_ = l.Close()
		w.Cut()
		w.running.Wait()
	})
	return w
}

// Addr returns the proxy's address.
func (w *Wire) Addr() string { return w.listener.Addr().String() }

// CutAfter cuts each new connection once the client has sent as many bytes as limit returned at its start. nil means
// never.
func (w *Wire) CutAfter(limit func() int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.cutAfter = limit
}

// Swallow discards everything in both directions: a black hole.
func (w *Wire) Swallow(on bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.swallow = on
}

// Slow limits the bytes per second from each client; 0 means no limit.
func (w *Wire) Slow(rate int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.rate = rate
}

// Forget closes the server's ends of the open connections but not the clients': they are half open, as when a firewall
// has lost its state.
func (w *Wire) Forget() {
	w.mu.Lock()
	defer w.mu.Unlock()
	for l := range w.open {
		l.lost = true
		_ = l.server.Close()
	}
}

// Cut closes all open connections.
func (w *Wire) Cut() {
	w.mu.Lock()
	defer w.mu.Unlock()
	for l := range w.open {
		w.hangUp(l)
	}
}

// Accepted counts the connections of clients.
func (w *Wire) Accepted() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.accepted
}

// Cuts counts the connections that CutAfter ended.
func (w *Wire) Cuts() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.cuts
}

func (w *Wire) accept() {
	for {
		client, err := w.listener.Accept()
		if err != nil {
			return
		}
		server, err := net.Dial("tcp", w.target)
		if err != nil {
			_ = client.Close()
			continue
		}
		l := &link{client: client, server: server, left: -1}
		w.mu.Lock()
		w.accepted++
		if w.cutAfter != nil {
			l.left = w.cutAfter()
		}
		w.open[l] = struct{}{}
		if w.ctx.Err() != nil {
			w.hangUp(l)
		}
		w.mu.Unlock()
		w.running.Go(func() { w.carry(l, client, server) })
		w.running.Go(func() { w.carry(l, server, client) })
	}
}

// carry copies bytes in one direction until the link ends.
func (w *Wire) carry(l *link, from io.Reader, to io.Writer) {
	up := from == io.Reader(l.client)
	buf := make([]byte, pieceSize)
	for {
		piece := buf
		if rate := w.paceOf(up); rate > 0 {
			piece = buf[:min(pieceSize, max(1, rate/int(time.Second/tick)))]
			if !wait.Pause(w.ctx, tick) {
				return
			}
		}
		n, err := from.Read(piece)
		n, through, end := w.judge(l, up, n, err)
		if through {
			if _, err := to.Write(piece[:n]); err != nil {
				end = end || !w.lost(l)
			}
		}
		if end {
			w.mu.Lock()
			w.hangUp(l)
			w.mu.Unlock()
		}
		if end || err != nil {
			return
		}
	}
}

func (w *Wire) paceOf(up bool) int {
	w.mu.Lock()
	defer w.mu.Unlock()
	if up {
		return w.rate
	}
	return 0
}

func (w *Wire) lost(l *link) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return l.lost
}

// judge returns how many of the n bytes read are passed on, whether they are at all, and whether the link ends after
// them.
func (w *Wire) judge(l *link, up bool, n int, err error) (pass int, through, end bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if up && l.left >= 0 {
		n = min(n, l.left)
		l.left -= n
		if l.left == 0 && err == nil {
			w.cuts++
			end = true
		}
	}
	if err != nil {
		end = up || !l.lost
	}
	return n, n > 0 && !w.swallow && !l.lost, end
}

// hangUp closes a link; the caller holds w.mu.
func (w *Wire) hangUp(l *link) {
	_ = l.client.Close()
	_ = l.server.Close()
	delete(w.open, l)
}
