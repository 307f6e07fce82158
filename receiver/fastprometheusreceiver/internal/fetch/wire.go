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

// A wire reads one response in place. Its buffer has three parts: the body so far, a gap left by chunk headers, and
// what was read but not parsed.
//
//	| body: [0,n) | hole: [n,r) | unread: [r,end) | free |
type wire struct {
	conn     io.Reader
	buf      []byte
	n        int
	r, end   int
	hint     int  // expected size of the body
	answered bool // a byte was received

	memory   Memory
	waiting  context.Context // waits for memory, until deadline if that is set
	deadline time.Time

	part func(Response) error // takes the body so far when the buffer is full; if nil, all is held
	held int                  // buffer size from which on part is called; 0 if the buffer must grow first
	page Response             // what all parts share, and how much was in them
}

const (
	leastBuffer = 8 << 10
	// growth is the factor by which a full buffer may grow. So a response never takes more memory than that many times
	// what was received of it, or Share, whatever size it announces.
	growth = 4
	// mostTrusted limits what is believed of a Content-Length.
	mostTrusted = 1 << 30
	// maxLine limits a chunk's header, and maxTrailer all trailers.
	maxLine    = 4 << 10
	maxTrailer = 64 << 10
)

// room is the buffer size for a response whose body is like the last one.
func room(last int) int { return last + last/16 + leastBuffer }

func (w *wire) reset(conn io.Reader, buf []byte) {
	*w = wire{conn: conn, buf: buf, hint: w.hint, memory: w.memory, waiting: w.waiting, deadline: w.deadline}
}

// fill reads more. Unread bytes stay, but may move.
func (w *wire) fill() error {
	if w.r == w.end {
		w.r, w.end = w.n, w.n
	}
	if w.end == len(w.buf) {
		if err := w.room(); err != nil {
			return err
		}
	}
	if w.end == len(w.buf) { // there was no memory for a larger buffer
		if err := w.pour(); err != nil {
			return err
		}
	}
	if w.end == len(w.buf) {
		w.held = 0 // there is nothing to pass on: it has to wait
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

// room makes free space: from the gap if that is large, else in a larger buffer.
func (w *wire) room() error {
	if hole := w.r - w.n; hole >= leastBuffer/2 {
		w.end = w.n + copy(w.buf[w.n:], w.buf[w.r:w.end])
		w.r = w.n
		return nil
	}
	return w.grow(w.end + 1)
}

// grow makes the buffer hold at least size bytes. Small buffers grow by more than large ones, which would waste too
// much.
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
		w.held = have // what was received is passed on instead
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

// least waits for size bytes, and then takes up to more if available, since one body may not have that much.
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

// split sets part as the function to which pages are passed that are larger than a piece.
func (w *wire) split(part func(Response) error) {
	w.part, w.held = part, piece
	w.buf = w.buf[:min(len(w.buf), max(piece, w.end))]
}

// pour passes on the body so far if there is little room left.
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
	w.split(w.part) // smaller parts from now on, which stay in the CPU's caches
	return nil
}

// size returns the size of the body so far.
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

// body reads the response's body to the beginning of the buffer, up to most bytes. The slices of h become invalid. It
// clears h.reusable if the connection must not be used again.
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
		h.reusable = false // what comes after the body could be taken for the next response
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

// exactly reads a body of known size, and nothing after it.
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
	spent, chunks := 0, 0 // spent on chunk headers, which must not outweigh the data
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

// more reads more of a body that is not complete.
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

// line consumes a line of a chunked body, which ends in CRLF and has at most most bytes including that. It returns the
// line without its end, valid until the next read.
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

// ended is the error of a body that was cut off.
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
