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

// lastHead is the head of the previous request, if the next may have the same one except for the length of its body.
// That is true for nearly all requests of a client that sends all the time. An equal head has the same meaning, so it
// is not parsed again: parsing touches dozens of places in memory and code, which are in no cache if requests are rare.
type lastHead struct {
	before, behind []byte // the parts around the length of the body
	request        *http.Request
}

const (
	lengthLine = "\r\nContent-Length: "
	headEnd    = "\r\n\r\n"
	// mostHead is the maximum length of a head that is kept.
	mostHead = 1 << 10
	// mostDigits is the maximum number of digits of a length that is parsed here.
	mostDigits = 15
)

// request reads a request, and sets its context.
func (c *conn) request(ctx context.Context) (*http.Request, error) {
	if req := c.last.read(ctx, c.in); req != nil { // fast path
		return req, nil
	}
	c.last = lastHead{}
	buffered := c.in.Buffered()
	text, _ := c.in.Peek(buffered) // it is there
	before, behind, ok := cutHead(text)
	if ok { // the buffer will be overwritten
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

// cutHead returns the head at the beginning of the buffered bytes, in two parts around the digits of its length. It
// returns false unless the length is there once, in the usual form.
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

// note keeps the head of a request for the next one. size is the length of the head.
func (l *lastHead) note(before, behind []byte, req *http.Request, size int) {
	if size != len(before)+len(req.Header.Get("Content-Length"))+len(behind) { // the head has another form, for example other line ends
		return
	}
	if code, _ := fault(req); code != 0 || req.ContentLength <= 0 || req.Close || len(req.TransferEncoding)+len(req.Trailer) > 0 || req.Header.Get("Expect") != "" {
		return
	}
	kept, url := *req, *req.URL
	kept.URL, kept.Header, kept.Body = &url, req.Header.Clone(), nil
	l.before, l.behind, l.request = before, behind, &kept
}

// read is http.ReadRequest for a head that equals the last one. It returns nil if the head is different.
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

// sizedBody is a body with a known length.
type sizedBody struct {
	mu     sync.Mutex // a handler that keeps it may read while it is closed
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
