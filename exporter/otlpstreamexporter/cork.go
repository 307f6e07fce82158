// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package otlpstreamexporter

import (
	"context"
	"net"
	"net/http/httptrace"
	"sync"
)

// corkSize is how much is written at once. The WebSocket library writes 4 KiB at a time, and to ask the kernel so often
// costs more than all else it does.
const corkSize = 64 << 10

// cork is a connection that can hold back what is written, to write it in larger pieces.
type cork struct {
	net.Conn

	mu   sync.Mutex
	held bool
	buf  []byte
}

// dialCorked dials connections that can be corked.
func dialCorked(ctx context.Context, network, addr string) (net.Conn, error) {
	c, err := (&net.Dialer{Timeout: dialTimeout}).DialContext(ctx, network, addr)
	if err != nil {
		return nil, err
	}
	return &cork{Conn: c}, nil
}

// findCork makes into point to the connection that the request with this context goes over. It stays nil where that is
// not one that dialCorked has dialed.
func findCork(ctx context.Context, into **cork) context.Context {
	return httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{GotConn: func(info httptrace.GotConnInfo) {
		c := info.Conn
		if over, ok := c.(interface{ NetConn() net.Conn }); ok { // TLS
			c = over.NetConn()
		}
		*into, _ = c.(*cork)
	}})
}

// Write writes, or keeps what is to be written later.
func (c *cork) Write(p []byte) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.held || len(c.buf) == 0 && len(p) >= corkSize {
		return c.Conn.Write(p)
	}
	c.buf = append(c.buf, p...)
	if len(c.buf) < corkSize {
		return len(p), nil
	}
	return len(p), c.flush()
}

func (c *cork) flush() error {
	_, err := c.Conn.Write(c.buf)
	c.buf = c.buf[:0]
	return err
}

// hold begins to hold back, and release writes what is held.
func (c *cork) hold() {
	if c == nil {
		return
	}
	c.mu.Lock()
	c.held = true
	c.mu.Unlock()
}

func (c *cork) release() error {
	if c == nil {
		return nil
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.held = false
	if len(c.buf) == 0 {
		return nil
	}
	return c.flush()
}
