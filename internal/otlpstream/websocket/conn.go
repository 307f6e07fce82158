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
	limit  int // of the bytes of a message that is read
	// Partial is told how many bytes have come of a message that is not there yet, before more of it is read. An error ends the connection. It is set before
	// anything is read, or nil.
	Partial func(n int) error

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

// KeepAlive closes the connection when the other end has gone without a word: when nothing has come for so long, it is asked, and has
// patience to say something. What says something is not asked: on a slow link the question would wait behind all messages. It
// returns when that has happened, or done is closed, or at once where every is 0.
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
				go func() { _ = c.Ping() }() // it waits for who is writing
			}
		case <-late:
			if late = nil; c.Received() == heard {
				c.CloseNow()
				return
			}
		}
	}
}

// CloseNow closes the connection without a word. What is reading or writing fails.
func (c *Conn) CloseNow() {
	c.closed.Do(func() { _ = c.conn.Close() })
}
