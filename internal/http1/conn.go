// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package http1

import (
	"bufio"
	"context"
	"errors"
	"io"
	"math"
	"net"
	"net/http"
	"runtime/debug"
	"strconv"
	"time"

	"github.com/godwit-otel/godwit/internal/heads"
)

// conn is a connection. Its goroutine owns all fields except idle.
type conn struct {
	server *Server
	nc     net.Conn
	quiet  io.ReadWriter // nc
	in     *bufio.Reader // of the connection itself, see Read
	last   lastHead      // last head read
	remote string
	base   context.Context
	left   int64 // bytes that the head may still have
	took   heads.Head
	inHead bool
	// crowded is set if the heads of all connections left no room for this one.
	crowded bool
	out     []byte
	header  http.Header // of answers
	date    dateLine    // date line of answers
	posted  bool        // the last request was a POST

	idle bool // it waits for a request; under the server's lock
}

// serve answers requests, one after the other.
func (c *conn) serve() {
	defer c.server.forget(c)
	defer func() { c.took.End() }()
	defer func() {
		what := recover()
		if err, ok := what.(error); what == nil || ok && errors.Is(err, http.ErrAbortHandler) {
			return
		}
		c.server.log.Printf("http: panic serving %v: %v\n%s", c.remote, what, debug.Stack())
	}()
	c.header = http.Header{}
	for wait := c.server.head; ; wait = c.server.idle {
		if !c.server.turn(c, true) || !c.await(wait) || !c.server.turn(c, false) || !c.exchange() {
			return
		}
	}
}

// Read reads from the connection what a request may still have.
func (c *conn) Read(p []byte) (int, error) {
	if c.left <= 0 {
		return 0, io.EOF
	}
	n, err := c.quiet.Read(p[:min(int64(len(p)), c.left)])
	c.left -= int64(n)
	if c.inHead && c.took.Add(n) != nil {
		c.crowded, c.left = true, 0
		return 0, io.EOF
	}
	return n, err
}

// maxLineEnds is the number of bytes of line ends after a body that are skipped, because old clients send them.
const maxLineEnds = 4

// await waits for the first byte of a request. It returns false if none comes.
func (c *conn) await(atMost time.Duration) bool {
	c.took.End()
	c.left, c.inHead = int64(c.server.maxHead)+headSlop, true
	for passed := 0; ; passed++ {
		if c.in.Buffered() == 0 {
			c.readWithin(atMost)
		}
		first, err := c.in.Peek(1)
		if err != nil {
			return false
		}
		if !c.posted || passed == maxLineEnds || first[0] != '\r' && first[0] != '\n' {
			return true
		}
		_, _ = c.in.Discard(1) // it is there
	}
}

// readWithin sets the time limit for reading, 0 for none.
func (c *conn) readWithin(d time.Duration) {
	until := time.Time{}
	if d > 0 {
		until = time.Now().Add(d)
	}
	_ = c.nc.SetReadDeadline(until) // connections without deadlines have no limit
}

// exchange reads a request and answers it, and reports whether there may be another one.
func (c *conn) exchange() (again bool) {
	c.readWithin(c.server.head)
	ctx := &watched{conn: c}
	defer ctx.finish()
	req, err := c.request(ctx)
	if err != nil {
		c.refuse(err)
		return false
	}
	c.left, c.inHead = math.MaxInt64, false
	c.readWithin(c.server.whole)
	c.posted = req.Method == http.MethodPost
	if code, why := fault(req); code != 0 {
		c.answerFault(code, why)
		return false
	}
	if req.Header.Get("Expect") != "" && !expectsContinue(req) {
		w := &response{conn: c, header: c.header, closes: true}
		w.WriteHeader(http.StatusExpectationFailed)
		_ = w.finish()
		c.linger()
		return false
	}
	return c.handle(ctx, req)
}

// handle lets the handler answer a request.
func (c *conn) handle(ctx *watched, req *http.Request) (again bool) {
	from := c.bodyOf(req, ctx)
	req.RemoteAddr = c.remote
	w := &response{conn: c, header: c.header, head: req.Method == http.MethodHead, old: !req.ProtoAtLeast(1, 1)}
	clear(c.header)
	w.closes = req.Close || !c.server.keepAlive
	c.server.handler.ServeHTTP(w, req)
	ctx.finish()
	if !from.isOver() || c.server.isClosing() {
		w.closes = true
	}
	again = w.finish() && !w.closes
	if !from.isOver() {
		c.linger()
	} else {
		_ = from.Close() // a handler that has kept it reads nothing of the next request
	}
	return again
}

// fault returns the status for a request that is refused although net/http can parse it, or 0.
func fault(req *http.Request) (code int, why string) {
	switch {
	case req.ProtoMajor != 1:
		return http.StatusHTTPVersionNotSupported, ": unsupported protocol version"
	case req.Host == "" && req.ProtoAtLeast(1, 1):
		return http.StatusBadRequest, ": missing required Host header"
	}
	return 0, ""
}

// refuse answers what is not a request.
func (c *conn) refuse(err error) {
	var network net.Error
	switch {
	case c.crowded: // it may be sent again: clients of remote write drop data on 431
		c.answerFault(http.StatusServiceUnavailable, ": "+heads.ErrRoom.Error())
	case c.left <= 0:
		c.answerFault(http.StatusRequestHeaderFieldsTooLarge, "")
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF), errors.As(err, &network):
	default:
		c.answerFault(http.StatusBadRequest, "")
	}
}

// answerFault sends the last answer of a connection, in the words of net/http.
func (c *conn) answerFault(code int, why string) {
	text := strconv.Itoa(code) + " " + http.StatusText(code)
	if c.write([]byte("HTTP/1.1 "+text+"\r\nContent-Type: text/plain; charset=utf-8\r\nConnection: close\r\n\r\n"+text+why)) == nil {
		c.linger()
	}
}

// If a connection is closed while there is data to be read, or the client still sends, the client loses the answer, and
// a proxy answers 502 in its place. So the first data is read, and the rest held up, until the client closes or the time
// is over.
const (
	lingerTime  = 500 * time.Millisecond
	lingerBytes = 256 << 10
)

func (c *conn) linger() {
	if half, ok := c.nc.(interface{ CloseWrite() error }); !ok || half.CloseWrite() != nil {
		return
	}
	until := time.Now().Add(c.server.linger)
	c.left, c.inHead = lingerBytes, false
	_ = c.nc.SetReadDeadline(until)
	if _, err := io.Copy(io.Discard, c); err == nil && c.left <= 0 {
		c.server.pause(time.Until(until))
	}
}
