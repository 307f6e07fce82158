// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package fetch

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"time"
)

// A wire reads one response in place. Its buffer has three parts: the body so far, a hole that chunk headers left, and
// what was read and not yet looked at.
//
//	| body: [0,n) | hole: [n,r) | unread: [r,end) | free |
type wire struct {
	conn     io.Reader
	buf      []byte
	n        int
	r, end   int
	hint     int  // how large the body may turn out
	answered bool // a byte has come

	memory   Memory
	waiting  context.Context // for memory, until deadline if that is set
	deadline time.Time

	part func(Response) error // takes the body so far when the buffer is full; without it, all is held
	held int                  // how large the buffer gets before that; 0 when it has to get larger
	page Response             // what the parts have in common, and how much there was in them
}

const (
	leastBuffer = 8 << 10
	// growth is how many times as large a buffer may get once it is full. However large a page was the last time, or is
	// said to be, it takes no more memory than so many times what has come of it, or Share.
	growth = 4
	// mostTrusted bounds what is made of a Content-Length.
	mostTrusted = 1 << 30
	// maxLine bounds a chunk's header, and maxTrailer all trailers.
	maxLine    = 4 << 10
	maxTrailer = 64 << 10
)

// room is what a response takes up whose body is like the last.
func room(last int) int { return last + last/16 + leastBuffer }

func (w *wire) reset(conn io.Reader, buf []byte) {
	*w = wire{conn: conn, buf: buf, hint: w.hint, memory: w.memory, waiting: w.waiting, deadline: w.deadline}
}

// fill reads more. It keeps what is unread, but may move it.
func (w *wire) fill() error {
	if w.r == w.end {
		w.r, w.end = w.n, w.n
	}
	if w.end == len(w.buf) {
		if err := w.room(); err != nil {
			return err
		}
	}
	if w.end == len(w.buf) { // there is no memory for a larger buffer
		if err := w.pour(); err != nil {
			return err
		}
	}
	if w.end == len(w.buf) {
		w.held = 0 // nothing to give away: it has to wait
		if err := w.grow(w.end + 1); err != nil {
			return err
		}
	}
	n, err := w.conn.Read(w.buf[w.end:])
	if n > 0 {
		w.end += n
		w.answered = true
		return nil
	}
	if err == nil {
		err = io.ErrNoProgress
	}
	return err
}

// room makes free space: of the hole when it is large, of a larger buffer otherwise.
func (w *wire) room() error {
	if hole := w.r - w.n; hole >= leastBuffer/2 {
		w.end = w.n + copy(w.buf[w.n:], w.buf[w.r:w.end])
		w.r = w.n
		return nil
	}
	return w.grow(w.end + 1)
}

// grow makes the buffer hold at least size bytes. Small ones grow fast; large ones would waste too much that way.
func (w *wire) grow(size int) error {
	have := len(w.buf)
	most := max(growth*have, Share)
	next := growth * have
	if have >= large {
		next = 2 * have
	}
	if hinted := room(w.hint); have < hinted {
		next = min(hinted, most)
	}
	next = max(next, size, leastBuffer)
	if w.part != nil && have < w.held {
		next = min(next, w.held)
	}
	grown := w.memory.Take(next)
	if grown == nil && w.part != nil && w.held > 0 && have >= Share {
		w.held = have // what has come is given away instead, by and by
		return nil
	}
	if grown == nil {
		var err error
		if grown, err = w.least(size, min(next-size, have/4)); err != nil {
			return err
		}
	}
	if w.part != nil && w.held >= next {
		grown = grown[:min(len(grown), w.held)]
	}
	copy(grown, w.buf[:w.end])
	w.memory.Give(w.buf)
	w.buf = grown
	return nil
}

// least waits for so much memory, and for what may be had more: less than was wished for, which may be more than one body may have.
func (w *wire) least(size, more int) ([]byte, error) {
	for {
		buf, err := w.wait(size + more)
		if more < Share || !errors.Is(err, ErrBodySize) {
			return buf, err
		}
		more /= 2
	}
}

// wait waits for memory.
func (w *wire) wait(size int) ([]byte, error) {
	ctx := w.waiting
	if !w.deadline.IsZero() {
		var cancel context.CancelFunc
		ctx, cancel = context.WithDeadline(ctx, w.deadline)
		defer cancel()
	}
	buf, err := w.memory.Wait(ctx, size)
	switch {
	case err == nil:
		return buf, nil
	case errors.Is(context.Cause(w.waiting), context.Canceled):
		return nil, context.Canceled
	case ctx.Err() != nil:
		err = context.DeadlineExceeded
	}
	return nil, &MemoryError{err}
}

// split has part take a page that is larger than a piece.
func (w *wire) split(part func(Response) error) {
	w.part, w.held = part, piece
	w.buf = w.buf[:min(len(w.buf), max(piece, w.end))]
}

// pour gives the body so far away if there is little room for more.
func (w *wire) pour() error {
	if w.part == nil || w.held == 0 || len(w.buf) < w.held || w.n+leastBuffer < len(w.buf) {
		return nil
	}
	w.page.Body = w.buf[:w.n]
	if err := w.part(w.page); err != nil {
		if as[*readerError](err) || as[*encodingError](err) || errors.Is(err, ErrBodySize) {
			return err
		}
		return &readerError{err}
	}
	w.page.Before += int64(w.n)
	w.end = copy(w.buf, w.buf[w.r:w.end])
	w.n, w.r = 0, 0
	w.split(w.part) // what comes now may as well stay in the processor's cache
	return nil
}

// size is that of the body so far.
func (w *wire) size() int64 { return w.page.Before + int64(w.n) }

// head reads the response's head. Its slices are valid until the body is read.
func (w *wire) head(h *head) error {
	for interim := 0; ; {
		used, err := parseHead(w.buf[w.r:w.end], h)
		if err != nil {
			return err
		}
		if w.r+used > maxHead || used == 0 && w.end > maxHead {
			return malformed(fmt.Sprintf("server response headers exceeded %d bytes; aborted", maxHead), nil)
		}
		if used == 0 {
			if err := w.fill(); err != nil {
				if errors.Is(err, io.EOF) && w.answered {
					err = io.ErrUnexpectedEOF
				}
				return err
			}
			continue
		}
		w.r += used
		if h.code == 101 || h.code < 200 && interim == maxInterim {
			return malformed("unexpected interim response", h.status)
		}
		if h.code >= 200 {
			return nil
		}
		interim++
	}
}

// body reads the response's body to the beginning of the buffer, at most most bytes of it. h loses its slices. It
// clears h.reusable when the connection has nothing to offer after the body, or more than that.
func (w *wire) body(h *head, most int64) error {
	var err error
	switch {
	case h.code == 204 || h.code == 304:
	case h.chunked:
		err = w.chunks(most)
	case h.length >= 0:
		err = w.exactly(h.length, most)
	default:
		h.reusable = false
		err = w.rest(most)
	}
	if w.r != w.end {
		h.reusable = false // what nobody asked for could be taken for the next response
	}
	return err
}

// take moves up to size unread bytes to the body.
func (w *wire) take(size int64) int64 {
	unread := w.buf[w.r:w.end]
	if int64(len(unread)) > size {
		unread = unread[:size]
	}
	if w.n != w.r {
		copy(w.buf[w.n:], unread)
	}
	w.n += len(unread)
	w.r += len(unread)
	return int64(len(unread))
}

// exactly reads a body of known size, and nothing behind it.
func (w *wire) exactly(size, most int64) error {
	if size > most {
		return tooLarge(most)
	}
	w.hint = int(min(size, mostTrusted))
	size -= w.take(size)
	for size > 0 {
		w.r, w.end = w.n, w.n
		if err := w.pour(); err != nil {
			return err
		}
		if w.n == len(w.buf) {
			if err := w.grow(w.n + 1); err != nil {
				return err
			}
			if err := w.pour(); err != nil {
				return err
			}
		}
		n, err := w.conn.Read(w.buf[w.n:min(int64(len(w.buf)), int64(w.n)+size)])
		w.n += n
		w.r, w.end = w.n, w.n
		size -= int64(n)
		if n == 0 {
			return ended(err)
		}
	}
	return nil
}

// rest reads until the peer closes.
func (w *wire) rest(most int64) error {
	for {
		w.take(int64(w.end - w.r))
		if w.size() > most {
			return tooLarge(most)
		}
		if err := w.pour(); err != nil {
			return err
		}
		if err := w.fill(); err != nil {
			if errors.Is(err, io.EOF) {
				return nil
			}
			return err
		}
	}
}

// chunks reads a chunked body.
func (w *wire) chunks(most int64) error {
	spent, chunks := 0, 0 // on chunk headers, which are not to outweigh their data
	for {
		line, err := w.line(maxLine)
		if err != nil {
			return err
		}
		size, err := chunkSize(line)
		if err != nil {
			return err
		}
		if size == 0 {
			return w.trailer()
		}
		if size > most-w.size() {
			return tooLarge(most)
		}
		chunks++
		if spent += len(line); int64(spent) > maxTrailer+16*int64(chunks)+w.size() {
			return malformed("chunked encoding contains too much non-data", nil)
		}
		for size -= w.take(size); size > 0; size -= w.take(size) {
			if err := w.more(); err != nil {
				return err
			}
		}
		if line, err = w.line(2); err != nil {
			return err
		}
		if len(line) > 0 {
			return malformed("malformed chunked encoding", nil)
		}
	}
}

// more reads more of a body that has not come to its end.
func (w *wire) more() error {
	if err := w.pour(); err != nil {
		return err
	}
	if err := w.fill(); err != nil {
		return ended(err)
	}
	return nil
}

// trailer skips the trailers.
func (w *wire) trailer() error {
	for left := maxTrailer; ; {
		line, err := w.line(left)
		if err != nil || len(line) == 0 {
			return err
		}
		if name, _, ok := bytes.Cut(line, []byte(":")); !ok || !validName(name) {
			return malformed("malformed trailer line:", line)
		}
		left -= len(line) + 2
	}
}

// line consumes a line of a chunked body, which ends in CRLF and is at most most bytes long with it. It returns the line
// without its end, valid until the next read.
func (w *wire) line(most int) ([]byte, error) {
	for {
		unread := w.buf[w.r:w.end]
		if i := bytes.IndexByte(unread[:min(len(unread), max(most, 2))], '\n'); i >= 0 {
			if i == 0 || unread[i-1] != '\r' {
				return nil, malformed("chunked line ends with bare LF", nil)
			}
			w.r += i + 1
			return unread[:i-1], nil
		}
		if len(unread) >= most {
			return nil, malformed("malformed chunked encoding", nil)
		}
		if err := w.more(); err != nil {
			return nil, err
		}
	}
}

// chunkSize parses a chunk's header: its size in hexadecimal, and extensions that mean nothing here.
func chunkSize(line []byte) (int64, error) {
	digits, extension, _ := bytes.Cut(line, []byte(";"))
	digits = bytes.TrimRight(digits, " \t")
	if len(digits) == 0 || len(digits) > 15 || !validValue(extension) {
		return 0, malformed("invalid chunk length", line)
	}
	size := int64(0)
	for _, c := range digits {
		switch {
		case c >= '0' && c <= '9':
			c -= '0'
		case c >= 'a' && c <= 'f':
			c -= 'a' - 10
		case c >= 'A' && c <= 'F':
			c -= 'A' - 10
		default:
			return 0, malformed("invalid byte in chunk length", line)
		}
		size = size<<4 | int64(c)
	}
	return size, nil
}

// ended is the error of a body that ends before its end.
func ended(err error) error {
	switch {
	case err == nil:
		return io.ErrNoProgress
	case errors.Is(err, io.EOF):
		return io.ErrUnexpectedEOF
	default:
		return err
	}
}

func tooLarge(most int64) error {
	return fmt.Errorf("%w: more than %d bytes; `body_size_limit` sets how many a page may have", ErrBodySize, most)
}
