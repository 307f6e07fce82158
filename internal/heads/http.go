// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package heads

import (
	"context"
	"crypto/tls"
	"net"
	"net/http"
	"sync"
)

// Limit makes a server of net/http count heads, and limits each of them. The server must serve the listener that it
// returns. Behind TLS heads have the limit for each only: the server must see the connection as it is.
func Limit(server *http.Server, on net.Listener) net.Listener {
	if server.MaxHeaderBytes <= 0 {
		server.MaxHeaderBytes = Largest
	}
	before, connected, handler := server.ConnState, server.ConnContext, server.Handler
	server.ConnContext = func(ctx context.Context, c net.Conn) context.Context {
		if connected != nil {
			ctx = connected(ctx, c)
		}
		return context.WithValue(ctx, connKey{}, of(c))
	}
	server.ConnState = func(c net.Conn, state http.ConnState) {
		if x := of(c); x != nil && state == http.StateIdle {
			x.begin()
		}
		if before != nil {
			before(c, state)
		}
	}
	server.Handler = http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		if x, _ := req.Context().Value(connKey{}).(*conn); x != nil {
			x.arrived()
		}
		handler.ServeHTTP(w, req)
	})
	return listener{on, NewRoom()}
}

// Largest is the largest head that is read: what clients send is four times less.
const Largest = 64 << 10

type connKey struct{}

// of returns the counted connection of a server's connection, nil if there is none.
func of(c net.Conn) *conn {
	x, _ := c.(*conn)
	return x
}

type listener struct {
	net.Listener

	room *Room
}

func (l listener) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if err != nil {
		return nil, err //nolint:wrapcheck // the server asks whether it is temporary
	}
	if _, isTLS := c.(*tls.Conn); isTLS {
		return c, nil
	}
	return &conn{Conn: c, head: l.room.Head(), reads: true}, nil
}

// conn counts what it reads until a request is handled, and after the request again.
type conn struct {
	net.Conn

	mu    sync.Mutex
	head  Head
	reads bool // a head
}

func (c *conn) begin() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.head.End()
	c.reads = true
}

// arrived ends the head. What it takes counts until the request is answered.
func (c *conn) arrived() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.reads = false
}

// Read implements [net.Conn].
func (c *conn) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.reads {
		if full := c.head.Add(n); full != nil {
			return 0, full
		}
	}
	return n, err //nolint:wrapcheck // it is the connection's
}

// Close implements [net.Conn]. What is still read meanwhile does not count: nobody would give it back.
func (c *conn) Close() error {
	c.arrived()
	c.mu.Lock()
	c.head.End()
	c.mu.Unlock()
	return c.Conn.Close() //nolint:wrapcheck // it is the connection's
}

// CloseWrite ends what is sent: the server does so to be able to read what a client still sends.
func (c *conn) CloseWrite() error {
	if half, ok := c.Conn.(interface{ CloseWrite() error }); ok {
		return half.CloseWrite() //nolint:wrapcheck // it is the connection's
	}
	return nil
}
