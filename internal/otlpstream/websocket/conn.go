// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package websocket

import (
	"io"
	"sync"
	"sync/atomic"
)

// A buffer is as large as what goes through it needs, within bounds: the kernel takes and gives large pieces at less cost
// a byte, and most connections of a large server have little to say.
const (
	leastBuffer = 4 << 10
	mostBuffer  = 256 << 10
)

// Conn is a connection whose handshake is done. One goroutine may read while others write.
type Conn struct {
	conn   io.ReadWriteCloser
	client bool
	limit  int // of the bytes of a message that is read

	reader reader
	writer writer
	pongs  pongs

	received atomic.Int64
	closed   sync.Once
}

// newConn makes a connection of one on which ahead has been read already.
func newConn(conn io.ReadWriteCloser, client bool, limit int, ahead []byte) *Conn {
	c := &Conn{conn: conn, client: client, limit: limit}
	c.reader.in = make([]byte, max(leastBuffer, len(ahead)))
	c.reader.end = copy(c.reader.in, ahead)
	return c
}

// Received is how many bytes have come, whatever they say: where it grows, the other end is alive.
func (c *Conn) Received() int64 { return c.received.Load() }

// CloseNow closes the connection without a word. What is reading or writing fails.
func (c *Conn) CloseNow() {
	c.closed.Do(func() { _ = c.conn.Close() })
}
