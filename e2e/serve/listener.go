// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

// Package serve runs HTTP servers that end with their test. Their listeners can cut a connection as a crashing peer
// would.
package serve

import (
	"crypto/tls"
	"net"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"
)

// Listener is a TCP listener that tracks its open connections.
type Listener struct {
	net.Listener

	// Secure, if not nil, returns the TLS configuration of each new connection; nil means none. It must be set before
	// the first connection.
	Secure func() *tls.Config

	received atomic.Int64

	mu   sync.Mutex
	open map[string]*net.TCPConn // by remote address
}

// Listen listens on addr; port 0 means any free port.
func Listen(t testing.TB, addr string) *Listener {
	t.Helper()
	l, err := net.Listen("tcp", addr)
	require.NoError(t, err)
	return &Listener{Listener: l, open: map[string]*net.TCPConn{}}
}

// Accept waits for the next connection.
func (l *Listener) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	tcp := c.(*net.TCPConn)
	l.mu.Lock()
	defer l.mu.Unlock()
	l.open[tcp.RemoteAddr().String()] = tcp
	plain := &conn{TCPConn: tcp, listener: l}
	if l.Secure != nil {
		if config := l.Secure(); config != nil {
			return tls.Server(plain, config), nil
		}
	}
	return plain, nil
}

// Received returns the number of bytes received on all connections.
func (l *Listener) Received() int64 { return l.received.Load() }

// Open returns the number of open connections.
func (l *Listener) Open() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.open)
}

// Reset cuts the connection from a remote address; the peer sees "connection reset" instead of an orderly end.
func (l *Listener) Reset(remote string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if c := l.open[remote]; c != nil {
		l.cut(c)
	}
}

// ResetAll cuts every open connection.
func (l *Listener) ResetAll() {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, c := range l.open {
		l.cut(c)
	}
}

func (l *Listener) cut(c *net.TCPConn) {
	_ = c.SetLinger(0) // makes Close send RST
	_ = c.Close()
	delete(l.open, c.RemoteAddr().String())
}

type conn struct {
	*net.TCPConn

	listener *Listener
}

func (c *conn) Read(b []byte) (int, error) {
	n, err := c.TCPConn.Read(b)
	c.listener.received.Add(int64(n))
	return n, err
}

func (c *conn) Close() error {
	c.listener.mu.Lock()
	remote := c.RemoteAddr().String()
	if c.listener.open[remote] == c.TCPConn { // the address may belong to another connection by now
		delete(c.listener.open, remote)
	}
	c.listener.mu.Unlock()
	return c.TCPConn.Close()
}
