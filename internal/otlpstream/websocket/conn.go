// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package websocket

import (
	"io"
	"sync"
	"sync/atomic"
	"time"
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
	limit  int // largest message that is read, in bytes
	// Partial is called with the number of bytes that have arrived of an incomplete message, before more of it is read.
	// An error ends the connection. It must be set before anything is read, and may be nil.
	Partial func(n int) error

	reader reader
	writer writer
	pongs  pongs

	received atomic.Int64
	closed   sync.Once
}

// newConn returns a connection from whose stream the bytes ahead were read already.
func newConn(conn io.ReadWriteCloser, client bool, limit int, ahead []byte) *Conn {
	c := &Conn{conn: conn, client: client, limit: limit}
	c.reader.in = make([]byte, max(leastBuffer, len(ahead)))
	c.reader.end = copy(c.reader.in, ahead)
	return c
}

// Received returns how many bytes have arrived, of any kind: while it grows, the other end is alive.
func (c *Conn) Received() int64 { return c.received.Load() }

// KeepAlive closes the connection when the other end has vanished: when nothing has arrived for the time every, it is
// pinged, and has the time patience to send something. While it sends anything it is not pinged: on a slow link the
// ping would wait behind all messages. KeepAlive returns when it has closed the connection, or done is closed, or at
// once if every is 0.
func (c *Conn) KeepAlive(done <-chan struct{}, every, patience time.Duration) {
	if every <= 0 {
		return
	}
	tick := time.NewTicker(every)
	defer tick.Stop()
	var late <-chan time.Time
	for heard := int64(0); ; {
		select {
		case <-done:
			return
		case <-tick.C:
			switch now := c.Received(); {
			case now > heard:
				heard, late = now, nil
			case late == nil:
				late = time.After(patience)
				go func() { _ = c.Ping() }() // it waits for a current writer
			}
		case <-late:
			if late = nil; c.Received() == heard {
				c.CloseNow()
				return
			}
		}
	}
}

// CloseNow closes the connection without a close frame. Reads and writes in progress fail.
func (c *Conn) CloseNow() {
	c.closed.Do(func() { _ = c.conn.Close() })
}
