// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package arrivals

import (
	"encoding/binary"
	"net"
)

// Conn is an HTTP/2 connection whose incomplete messages are counted. gRPC does not report what it has read of them, so
// data frames are counted as they are read, and uncounted when a message is reported as complete.
type Conn struct {
	net.Conn

	arrival *Arrival
	frames  frames
}

// NewConn counts what is received on a connection. Closing raw ends it.
func (a *Arrivals) NewConn(c, raw net.Conn) *Conn {
	return &Conn{Conn: c, arrival: a.Enter(func() { _ = raw.Close() }), frames: frames{skip: len(preface)}}
}

// Arrival returns the connection as a sender.
func (c *Conn) Arrival() *Arrival { return c.arrival }

func (c *Conn) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	if data := c.frames.data(b[:n]); data > 0 {
		if fault := c.arrival.Come(data); fault != nil && err == nil {
			err = fault
		}
	}
	return n, err
}

// Close closes the connection.
func (c *Conn) Close() error {
	c.arrival.Leave()
	return c.Conn.Close()
}

// LocalAddr returns the address, which also identifies the connection: it is all that gRPC shows of one.
func (c *Conn) LocalAddr() net.Addr { return place{c.Conn.LocalAddr(), c.arrival} }

type place struct {
	net.Addr

	of *Arrival
}

// At returns the sender whose connection has that local address, nil if it is not counted.
func At(local net.Addr) *Arrival {
	at, _ := local.(place)
	return at.of
}

// preface is the first data that a client sends.
const preface = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"

// frames finds the data of messages in a connection.
type frames struct {
	skip   int // bytes until the next header
	isData bool
	header [9]byte
	have   int // bytes of the header
}

// data returns how many of the next bytes are data of messages.
func (f *frames) data(b []byte) (n int) {
	const typeData = 0
	for len(b) > 0 {
		if f.skip > 0 {
			size := min(f.skip, len(b))
			if f.isData {
				n += size
			}
			f.skip -= size
			b = b[size:]
			continue
		}
		size := copy(f.header[f.have:], b)
		f.have += size
		b = b[size:]
		if f.have == len(f.header) {
			f.have = 0
			f.skip = int(binary.BigEndian.Uint32(f.header[:4]) >> 8)
			f.isData = f.header[3] == typeData
		}
	}
	return n
}
