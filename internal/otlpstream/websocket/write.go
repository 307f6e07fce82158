// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package websocket

import (
	"crypto/rand"
	"fmt"
	"net"
	"slices"
	"sync"
)

// writer is the writing half of a connection.
type writer struct {
	mu        sync.Mutex
	out       []byte // whole frames, except while one is being written
	random    [64 * keySize]byte
	unused    []byte // random bytes for keys
	keystream keystream
	ended     bool // a close frame was written, after which there are no others
	err       error
}

// Write writes a binary message given in parts, or keeps its end until Flush.
func (c *Conn) Write(parts ...[]byte) error {
	c.writer.mu.Lock()
	defer c.writer.mu.Unlock()
	return c.writeFrame(opBinary, parts...)
}

// Flush writes what Write has kept.
func (c *Conn) Flush() error {
	c.writer.mu.Lock()
	defer c.writer.mu.Unlock()
	return c.flush()
}

// Ping makes the other end answer. It waits for a current writer.
func (c *Conn) Ping() error { return c.writeControl(opPing, nil) }

func (c *Conn) writeControl(op opcode, payload []byte) error {
	c.writer.mu.Lock()
	defer c.writer.mu.Unlock()
	if err := c.writeFrame(op, payload); err != nil {
		return err
	}
	c.writer.ended = op == opClose
	return c.flush()
}

func (c *Conn) writeFrame(op opcode, parts ...[]byte) error {
	w := &c.writer
	if w.ended {
		return fmt.Errorf("cannot write a frame: %w", net.ErrClosed)
	}
	length := 0
	for _, part := range parts {
		length += len(part)
	}
	if room := maxHeader + length; cap(w.out)-len(w.out) < room {
		w.out = slices.Grow(w.out, max(0, min(room, mostBuffer-len(w.out))))
	}
	if cap(w.out)-len(w.out) < maxHeader {
		if err := c.flush(); err != nil {
			return err
		}
	}
	key := w.key(c.client)
	w.out = appendHeader(w.out, op, length, c.client, key)
	w.keystream.begin(key, length)
	for _, part := range parts {
		for len(part) > 0 {
			if len(w.out) == cap(w.out) {
				if err := c.flush(); err != nil {
					return err
				}
			}
			begin := len(w.out)
			end := min(begin+len(part), cap(w.out))
			w.out = w.out[:end]
			if c.client {
				w.keystream.mask(w.out[begin:], part[:end-begin])
			} else {
				copy(w.out[begin:], part)
			}
			part = part[end-begin:]
		}
	}
	return nil
}

// key returns a new key for a client's frame, which must be unpredictable. Several are drawn at a time.
func (w *writer) key(client bool) (key [keySize]byte) {
	if !client {
		return key
	}
	if len(w.unused) == 0 {
		_, _ = rand.Read(w.random[:]) // it does not fail
		w.unused = w.random[:]
	}
	key, w.unused = [keySize]byte(w.unused), w.unused[keySize:]
	return key
}

func (c *Conn) flush() error {
	w := &c.writer
	if w.err == nil && len(w.out) > 0 {
		_, w.err = c.conn.Write(w.out)
	}
	w.out = w.out[:0]
	if w.err != nil {
		return fmt.Errorf("cannot write a frame: %w", w.err)
	}
	return nil
}

// pongs answers pings independently of the reader, which must not wait for a writer: the two ends might wait for each
// other.
type pongs struct {
	mu      sync.Mutex
	ping    []byte // the latest one
	due     bool
	running bool
}

func (p *pongs) answer(c *Conn, ping []byte) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.ping, p.due = append(p.ping[:0], ping...), true
	if !p.running {
		p.running = true
		go p.run(c)
	}
}

// run answers the latest ping, as the protocol allows if several have come.
func (p *pongs) run(c *Conn) {
	var payload [maxControl]byte
	for {
		p.mu.Lock()
		if !p.due {
			p.running = false
			p.mu.Unlock()
			return
		}
		n := copy(payload[:], p.ping)
		p.due = false
		p.mu.Unlock()
		_ = c.writeControl(opPong, payload[:n])
	}
}
