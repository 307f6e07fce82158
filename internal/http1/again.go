// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package http1

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"sync"
)

// lastHead is the head of the request before, if the next may have the same but for how long its body is. That is so of nearly all that a
// client sends again and again. A head that is the same means the same, so it is not read again: that goes through some dozen places of memory
// and of code, which are in no cache where requests are far apart.
type lastHead struct {
	before, behind []byte // the length of the body
	request        *http.Request
}

const (
	lengthLine = "\r\nContent-Length: "
	headEnd    = "\r\n\r\n"
	// mostHead is how long one is at the most that is kept.
	mostHead = 1 << 10
	// mostDigits is how many a length has at the most that is read here.
	mostDigits = 15
)

// request reads a request, which is to have a context.
func (c *conn) request(ctx context.Context) (*http.Request, error) {
	if req := c.last.read(ctx, c.in); req != nil { // fast path
		return req, nil
	}
	c.last = lastHead{}
	buffered := c.in.Buffered()
	text, _ := c.in.Peek(buffered) // it is there
	before, behind, ok := cutHead(text)
	if ok { // the buffer is read into again
		before, behind = bytes.Clone(before), bytes.Clone(behind)
	}
	req, err := http.ReadRequest(c.in)
	if err == nil {
		if ok {
			c.last.note(before, behind, req, buffered-c.in.Buffered())
		}
		req = req.WithContext(ctx)
	}
	return req, err //nolint:wrapcheck // who asks tells one from another
}

// cutHead returns the head that buffered bytes begin with, in two parts around the digits of a length that is there once, in the usual form.
func cutHead(buffered []byte) (before, behind []byte, ok bool) {
	end := bytes.Index(buffered, []byte(headEnd))
	if end < 0 || end > mostHead {
		return nil, nil, false
	}
	head := buffered[:end+len(headEnd)]
	at := bytes.Index(head, []byte(lengthLine))
	if at < 0 || bytes.Count(bytes.ToLower(head), []byte("content-length")) != 1 {
		return nil, nil, false
	}
	at += len(lengthLine)
	return head[:at], head[at+bytes.IndexByte(head[at:], '\r'):], true
}

// note keeps the head of a request, which was so many bytes, for the next.
func (l *lastHead) note(before, behind []byte, req *http.Request, size int) {
	if size != len(before)+len(req.Header.Get("Content-Length"))+len(behind) { // some of it is not of the head, whose lines may end otherwise
		return
	}
	if code, _ := fault(req); code != 0 || req.ContentLength <= 0 || req.Close || len(req.TransferEncoding)+len(req.Trailer) > 0 || req.Header.Get("Expect") != "" {
		return
	}
	kept, url := *req, *req.URL
	kept.URL, kept.Header, kept.Body = &url, req.Header.Clone(), nil
	l.before, l.behind, l.request = before, behind, &kept
}

// read is http.ReadRequest, of a head that is as the last one was. It returns nil if that is another.
func (l *lastHead) read(ctx context.Context, in *bufio.Reader) *http.Request {
	if l.request == nil {
		return nil
	}
	head, err := in.Peek(min(in.Buffered(), len(l.before)+mostDigits+len(l.behind)))
	if err != nil || !bytes.HasPrefix(head, l.before) {
		return nil
	}
	digits := head[len(l.before):]
	n, length := 0, int64(0)
	for ; n < len(digits) && n < mostDigits && '0' <= digits[n] && digits[n] <= '9'; n++ {
		length = 10*length + int64(digits[n]-'0')
	}
	if length == 0 || !bytes.HasPrefix(digits[n:], l.behind) {
		return nil
	}
	req := l.request.WithContext(ctx)
	url := *req.URL
	req.URL, req.Header, req.ContentLength = &url, req.Header.Clone(), length
	req.Header["Content-Length"][0] = string(digits[:n])
	req.Body = &sizedBody{from: in, left: length}
	_, _ = in.Discard(len(l.before) + n + len(l.behind)) // they are there
	return req
}

// sizedBody is a body whose length was told.
type sizedBody struct {
	mu     sync.Mutex // whoever keeps it may read when it is closed
	from   io.Reader
	left   int64
	closed bool
}

func (b *sizedBody) Read(p []byte) (n int, err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	switch {
	case b.closed:
		return 0, http.ErrBodyReadAfterClose
	case b.left == 0:
		return 0, io.EOF
	}
	n, err = b.from.Read(p[:min(int64(len(p)), b.left)])
	b.left -= int64(n)
	switch {
	case errors.Is(err, io.EOF) && b.left > 0:
		err = io.ErrUnexpectedEOF
	case b.left == 0 && err == nil:
		err = io.EOF
	}
	return n, err
}

func (b *sizedBody) Close() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.closed = true
	return nil
}
