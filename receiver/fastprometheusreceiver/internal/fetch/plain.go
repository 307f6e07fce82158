// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package fetch

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/url"
	"os"
	"syscall"
	"time"
)

const (
	// maxIdle is how long a connection may be idle and still be used, as in Prometheus' client.
	maxIdle = 5 * time.Minute
	// maxDrained limits the body of an error that is read so that the connection can be used again.
	maxDrained = 64 << 10
	// maxInterim limits the 1xx responses before the response.
	maxInterim = 5
)

// getPlain makes the request on the target's own connection. The buffer serves twice: the request is written from it,
// and the response is parsed and unchunked in place.
func (t *Target) getPlain(ctx context.Context, buf []byte, part func(Response) error) (Response, error) {
	deadline := time.Now().Add(t.timeout)
	if d, ok := ctx.Deadline(); ok && d.Before(deadline) {
		deadline = d
	}
	w := wire{buf: buf[:cap(buf)], hint: t.hint(part), memory: t.client.options.Memory, waiting: ctx, deadline: deadline}
	stop := t.watch(ctx)
	err := t.exchange(ctx, &w, deadline, part)
	t.unwatch(stop)
	w.page.Body = w.buf[:w.n]
	if err != nil {
		err = t.explain(ctx, err)
	}
	return w.page, err
}

// explain words the error of a failed exchange as Prometheus does.
func (t *Target) explain(ctx context.Context, err error) error {
	var body *bodyError
	inBody := errors.As(err, &body)
	if inBody {
		err = body.err
	}
	switch {
	case ctx.Err() != nil && isTimeoutOrCanceled(err):
		err = ctx.Err()
	case errors.Is(err, os.ErrDeadlineExceeded):
		err = context.DeadlineExceeded
	case as[*net.OpError](err) && isTimeout(err):
		err = fmt.Errorf("%w: %w", context.DeadlineExceeded, err)
	}
	if inBody || as[*StatusError](err) || as[*encodingError](err) || as[*MemoryError](err) || errors.Is(err, errRedirected) {
		return err
	}
	return &url.Error{Op: "Get", URL: t.url, Err: err}
}

func isTimeoutOrCanceled(err error) bool { return isTimeout(err) || errors.Is(err, context.Canceled) }

// A bodyError is an error after the head of a response. It does not name the request, as in Prometheus.
type bodyError struct{ err error }

func (e *bodyError) Error() string { return e.err.Error() }

// exchange sends the request and reads the response on the open connection, and on a new one if the peer had closed
// that before it answered.
func (t *Target) exchange(ctx context.Context, w *wire, deadline time.Time, part func(Response) error) error {
	if t.conn != nil && (time.Since(t.used) > maxIdle || t.hasMore()) {
		t.drop()
	}
	if err := t.renew(); err != nil {
		return err
	}
	reused := t.conn != nil
	if reused {
		err := t.once(ctx, w, deadline, part)
		if !isStale(w, err) {
			return err
		}
		t.drop()
	}
	if err := t.dial(ctx, deadline); err != nil {
		return err
	}
	return t.once(ctx, w, deadline, part)
}

// isStale reports whether the peer had closed an idle connection: it did not answer, or only with a timeout.
func isStale(w *wire, err error) bool {
	if err == nil {
		return false
	}
	if status := (*StatusError)(nil); errors.As(err, &status) {
		return status.Code == 408
	}
	return !w.answered &&
		(errors.Is(err, io.EOF) || errors.Is(err, syscall.ECONNRESET) || errors.Is(err, syscall.EPIPE))
}

func (t *Target) dial(ctx context.Context, deadline time.Time) error {
	network := "tcp"
	if t.socket != "" {
		network = "unix"
	}
	ctx, cancel := context.WithDeadline(ctx, deadline)
	defer cancel()
	conn, err := t.client.options.Dial(ctx, network, t.address)
	if err != nil {
		return err
	}
	t.local = t.client.options.LocalIdentity && (t.near || isLocal(conn))
	raw := socketOf(conn)
	if t.secured {
		if conn, err = t.handshake(ctx, conn); err != nil {
			return err
		}
	}
	t.mu.Lock()
	t.conn, t.raw = conn, raw
	t.mu.Unlock()
	return nil
}

// once makes one exchange. It closes the connection if that cannot be used again.
func (t *Target) once(ctx context.Context, w *wire, deadline time.Time, part func(Response) error) (err error) {
	keep := false
	defer func() {
		if !keep {
			t.drop()
		}
		t.used = time.Now()
	}()
	request, err := t.request(ctx, w.buf[:0])
	w.reset(t.conn, request[:cap(request)])
	if err != nil {
		return err
	}
	if err := t.conn.SetDeadline(deadline); err != nil {
		return err
	}
	if ctx.Err() != nil { // ctx may have ended before there was a connection to interrupt
		return ctx.Err()
	}
	if _, err := t.conn.Write(request); err != nil {
		return err
	}
	var h head
	if err := w.head(&h); err != nil {
		if isOdd(err) || t.speaksHTTP2() && w.answered && !w.isHTTP1() {
			return errRedirected
		}
		return err
	}
	if t.redirected = h.redirects() && t.client.config.FollowRedirects; t.redirected {
		return errRedirected
	}
	if h.code != 200 {
		status := &StatusError{Code: h.code, Status: string(h.status[:min(len(h.status), maxQuoted)])}
		if !t.any {
			keep = w.body(&h, maxDrained) == nil && h.reusable
			w.n = 0
			return status
		}
		w.page.Status = status.Status
	}
	encoding, err := parseEncoding(h.encoding)
	if err != nil {
		return err
	}
	most := t.client.wire
	w.page.ContentType, w.page.Encoding = t.intern(h.contentType), encoding
	if encoding == Identity {
		most = t.client.most
	}
	if inParts(encoding) && part != nil {
		w.split(t.untimed(ctx, deadline, part))
	}
	if err := w.body(&h, most); err != nil {
		return &bodyError{err}
	}
	keep = h.reusable
	return nil
}

// isHTTP1 reports whether what was read may be the beginning of an HTTP/1 response. No frame of HTTP/2 is.
func (w *wire) isHTTP1() bool {
	const begin = "HTTP/1."
	came := w.buf[w.r:w.end]
	n := min(len(came), len(begin))
	return string(came[:n]) == begin[:n]
}

// untimed wraps part so that its time does not count for the target's timeout.
func (t *Target) untimed(ctx context.Context, deadline time.Time, part func(Response) error) func(Response) error {
	return func(r Response) error {
		began := time.Now()
		if err := part(r); err != nil {
			return err
		}
		deadline = deadline.Add(time.Since(began))
		_ = t.conn.SetDeadline(deadline) // if this fails, so does the next read
		return ctx.Err()                 // ctx may have ended meanwhile
	}
}

// request appends the request to dst.
func (t *Target) request(ctx context.Context, dst []byte) ([]byte, error) {
	dst = append(dst, t.head...)
	dst = append(dst, t.tail...)
	dst = append(dst, "Accept-Encoding: "...)
	dst = append(dst, t.offered()...)
	dst = append(dst, "\r\n"...)
	dst, err := t.client.extra.append(ctx, dst)
	return append(dst, "\r\n"...), err
}
