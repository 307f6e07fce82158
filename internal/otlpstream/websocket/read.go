// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package websocket

import (
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"sync"
	"unicode/utf8"
)

// ErrTooLarge is wrapped by the error for a message that is larger than the limit. The other end has been told.
var ErrTooLarge = errors.New("the message is larger than the limit")

// reader is the reading half of a connection.
type reader struct {
	mu         sync.Mutex
	in         []byte
	begin, end int  // of the bytes that were read and not used yet
	full       bool // the last read filled the buffer
	keystream  keystream
	begun      bool // a message has begun, with next, and none of it has been read
	next       header
	skip       uint64 // remaining bytes of a frame that is discarded
	over       bool   // nothing more can be read
}

// Await waits until a message has begun, so that no memory for it is needed before that. Pings are answered meanwhile.
// An error is the one that Read would return.
func (c *Conn) Await() error {
	c.reader.mu.Lock()
	defer c.reader.mu.Unlock()
	if c.reader.over || c.reader.skip > 0 {
		return net.ErrClosed
	}
	h, err := c.dataHeader()
	if err != nil {
		return err
	}
	c.reader.next, c.reader.begun = h, true
	return nil
}

// Read reads the next message and appends it to dst. Pings are answered meanwhile. If the other end closes the
// connection it returns a CloseError; a connection that just ends is an error, too.
func (c *Conn) Read(dst []byte) (message []byte, isBinary bool, err error) {
	c.reader.mu.Lock()
	defer c.reader.mu.Unlock()
	if c.reader.over || c.reader.skip > 0 {
		return dst, false, net.ErrClosed
	}
	kind, before := opContinuation, len(dst)
	for {
		h, err := c.dataHeader()
		if err != nil {
			return dst, false, err
		}
		switch {
		case h.op != opContinuation && kind != opContinuation:
			return dst, false, c.violation("a message begins within another")
		case h.op != opContinuation:
			kind = h.op
		case kind == opContinuation:
			return dst, false, c.violation("nothing to continue")
		}
		if h.length > uint64(c.limit-(len(dst)-before)) {
			c.reader.skip = h.length
			_ = c.writeClose(StatusTooLarge, ErrTooLarge.Error())
			return dst, false, fmt.Errorf("cannot read a message: %w of %d bytes", ErrTooLarge, c.limit)
		}
		if dst, err = c.readPayload(dst, h); err != nil {
			return dst, false, err
		}
		if h.final && kind == opText && !utf8.Valid(dst[before:]) {
			return dst, false, c.invalidText("a text that is not UTF-8")
		}
		if h.final {
			return dst, kind == opBinary, nil
		}
	}
}

// dataHeader returns the header of the next frame that is a message, or a part of one.
func (c *Conn) dataHeader() (header, error) {
	if c.reader.begun {
		c.reader.begun = false
		return c.reader.next, nil
	}
	for {
		h, err := c.readHeader()
		if err != nil || !h.op.isControl() {
			return h, err
		}
		if err := c.readControl(h); err != nil {
			return h, err
		}
	}
}

func (c *Conn) readHeader() (h header, err error) {
	first, err := c.peek(2)
	if err != nil {
		return h, err
	}
	n := headerLength([2]byte(first))
	b, err := c.peek(n)
	if err != nil {
		return h, err
	}
	h = parseHeader(b)
	c.reader.begin += n
	switch {
	case b[0]&bitsReserved != 0:
		return h, c.violation("reserved bits are set")
	case h.masked == c.client:
		return h, c.violation("clients mask, and servers do not")
	case h.op > opBinary && h.op < opClose || h.op > opPong:
		return h, c.violation("unknown opcode")
	case h.length > 1<<63-1:
		return h, c.violation("a length beyond all bounds")
	case h.op.isControl() && (!h.final || h.length > maxControl):
		return h, c.violation("a control frame that is in pieces, or too long")
	}
	if h.masked {
		c.reader.keystream.begin(h.key, int(min(h.length, streamSize)))
	}
	return h, nil
}

// readPayload appends the payload of a frame. Memory beyond the buffer's is only taken for bytes that have arrived, not
// for those announced.
func (c *Conn) readPayload(dst []byte, h header) ([]byte, error) {
	for left := int(h.length); left > 0; {
		b, err := c.some(left)
		if err != nil {
			return dst, err
		}
		if cap(dst)-len(dst) < len(b) {
			dst = slices.Grow(dst, min(left, max(len(b), 3*cap(dst), mostBuffer)))
		}
		end := len(dst)
		dst = dst[:end+len(b)]
		if h.masked {
			c.reader.keystream.mask(dst[end:], b)
		} else {
			copy(dst[end:], b)
		}
		left -= len(b)
		if c.Partial == nil || left == 0 && h.final {
			continue
		}
		if err := c.Partial(len(b)); err != nil {
			c.reader.over = true
			return dst, fmt.Errorf("cannot read a message: %w", err)
		}
	}
	return dst, nil
}

func (c *Conn) readControl(h header) error {
	var payload [maxControl]byte
	b, err := c.readPayload(payload[:0], h)
	if err != nil {
		return err
	}
	switch h.op {
	case opPing:
		c.pongs.answer(c, b)
	case opClose:
		c.reader.over = true
		said, ok := parseClose(b)
		if !ok {
			return c.violation("a close frame that says nothing known")
		}
		if !utf8.Valid(b[min(len(b), 2):]) {
			return c.invalidText("a close frame whose reason is not UTF-8")
		}
		_ = c.writeClose(said.Code, "")
		return said
	}
	return nil
}

// violation ends a connection whose other end violates the protocol.
func (c *Conn) violation(what string) error { return c.fault(StatusProtocolError, what) }

func (c *Conn) invalidText(what string) error { return c.fault(StatusInvalidText, what) }

func (c *Conn) fault(code StatusCode, what string) error {
	c.reader.over = true
	_ = c.writeClose(code, what)
	return fmt.Errorf("cannot read a frame: %s", what)
}

// discard reads until the other end closes, or the connection ends.
func (c *Conn) discard() {
	c.reader.mu.Lock()
	defer c.reader.mu.Unlock()
	if c.reader.begun {
		c.reader.begun, c.reader.skip = false, c.reader.next.length
	}
	for !c.reader.over {
		for c.reader.skip > 0 && !c.reader.over {
			b, _ := c.some(int(min(c.reader.skip, 1<<30)))
			c.reader.skip -= uint64(len(b))
		}
		h, err := c.readHeader()
		switch {
		case err != nil:
		case h.op.isControl():
			_ = c.readControl(h)
		default:
			c.reader.skip = h.length
		}
	}
}

// peek returns the next n bytes without consuming them.
func (c *Conn) peek(n int) ([]byte, error) {
	r := &c.reader
	if r.end-r.begin < n {
		r.end = copy(r.in, r.in[r.begin:r.end])
		r.begin = 0
		if err := c.fill(n - r.end); err != nil {
			return nil, err
		}
	}
	return r.in[r.begin : r.begin+n], nil
}

// some takes the next bytes: at least one, and at most n.
func (c *Conn) some(n int) ([]byte, error) {
	r := &c.reader
	if r.begin == r.end {
		r.begin, r.end = 0, 0
		if err := c.fill(1); err != nil {
			return nil, err
		}
	}
	b := r.in[r.begin:min(r.begin+n, r.end)]
	r.begin += len(b)
	return b, nil
}

// fill reads at least the given number of bytes.
func (c *Conn) fill(least int) error {
	r := &c.reader
	if r.full && len(r.in) < mostBuffer {
		in := make([]byte, min(4*len(r.in), mostBuffer))
		r.begin, r.end = 0, copy(in, r.in[r.begin:r.end])
		r.in = in
	}
	n, err := io.ReadAtLeast(c.conn, r.in[r.end:], least)
	r.full = n == len(r.in)-r.end
	r.end += n
	c.received.Add(int64(n))
	if err != nil {
		r.over = true
		if errors.Is(err, io.EOF) {
			err = io.ErrUnexpectedEOF // there is a way to end it
		}
		return fmt.Errorf("cannot read a frame: %w", err)
	}
	return nil
}
