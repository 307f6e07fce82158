// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package http1

import (
	"errors"
	"io"
	"net/http"
	"strings"
)

// body is the body of a request.
type body struct {
	io.ReadCloser

	ctx      *watched
	proceed  *conn // to send 100 Continue on, before the first byte is read
	finished bool
}

// bodyOf returns the body of a request that reports when it ends.
func (c *conn) bodyOf(req *http.Request, ctx *watched) *body {
	b := &body{ReadCloser: req.Body, ctx: ctx}
	if req.Body == http.NoBody {
		b.end()
		return b
	}
	if expectsContinue(req) && req.ProtoAtLeast(1, 1) {
		b.proceed = c
	}
	req.Body = b
	return b
}

func expectsContinue(req *http.Request) bool {
	return strings.EqualFold(strings.TrimSpace(req.Header.Get("Expect")), "100-continue")
}

func (b *body) Read(p []byte) (n int, err error) {
	if c := b.proceed; c != nil {
		b.proceed = nil
		if err = c.write([]byte("HTTP/1.1 100 Continue\r\n\r\n")); err != nil {
			return 0, err
		}
	}
	n, err = b.ReadCloser.Read(p)
	if errors.Is(err, io.EOF) {
		b.end()
	}
	return n, err
}

func (b *body) end() {
	if !b.finished {
		b.finished = true
		b.ctx.bodyEnded()
	}
}

// Close does not read the rest: the connection is closed then.
func (b *body) Close() error {
	if !b.finished {
		return nil
	}
	return b.ReadCloser.Close()
}

// isOver reports whether the body was read completely.
func (b *body) isOver() bool { return b.finished }
