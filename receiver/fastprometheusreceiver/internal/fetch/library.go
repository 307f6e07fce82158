// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package fetch

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/url"
	"time"
)

// getLibrary makes the request through net/http, within the remaining time.
func (t *Target) getLibrary(ctx context.Context, buf []byte, part func(Response) error, left time.Duration) (Response, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	began := time.Now()
	timer := time.AfterFunc(left, func() { cancel(context.DeadlineExceeded) })
	defer timer.Stop()
	if given := part; given != nil {
		part = func(r Response) error { // does not count for the target's timeout
			timer.Stop()
			left -= time.Since(began)
			err := given(r)
			began = time.Now()
			timer.Reset(left)
			return err
		}
	}
	r, err := t.throughLibrary(ctx, buf, part)
	if err == nil || ctx.Err() == nil || !isTimeoutOrCanceled(err) || as[*credentialsError](err) || as[*MemoryError](err) {
		return r, err
	}
	if request := (*url.Error)(nil); errors.As(err, &request) {
		request.Err = context.Cause(ctx) // net/http reports a timeout in several ways
		return r, request
	}
	return r, context.Cause(ctx)
}

func (t *Target) throughLibrary(ctx context.Context, buf []byte, part func(Response) error) (Response, error) {
	r := Response{Body: buf[:0]}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, t.url, http.NoBody)
	if err != nil {
		return r, err
	}
	request.Header.Set("Accept", t.accept)
	request.Header.Set("Accept-Encoding", t.offered())
	request.Header.Set("User-Agent", t.client.options.UserAgent)
	request.Header.Set("X-Prometheus-Scrape-Timeout-Seconds", seconds(t.timeout))
	if oauth := t.client.oauth; oauth != nil {
		token, err := oauth.get(ctx, t.client.options.UserAgent)
		if err != nil {
			return r, &url.Error{Op: "Get", URL: t.url, Err: err}
		}
		request.Header.Set("Authorization", token) // net/http does not send it to other hosts
	}
	client := t.client.library
	if t.socket != "" {
		if t.own == nil {
			if t.own, err = t.client.throughSocket(t.socket); err != nil {
				return r, err
			}
		}
		client = t.own
	}
	response, err := client.Do(request)
	if err != nil {
		return r, err
	}
	defer response.Body.Close()
	if t.redirected && response.Request.Response == nil {
		t.road, t.redirected = Plain, false
	}
	if response.StatusCode != http.StatusOK {
		status := &StatusError{Code: response.StatusCode, Status: response.Status[:min(len(response.Status), maxQuoted)]}
		if !t.any {
			// The body of an error is read, if small, so that the connection can be used again.
			_, _ = io.Copy(io.Discard, io.LimitReader(response.Body, maxDrained))
			return r, status
		}
		r.Status = status.Status
	}
	if r.Encoding, err = parseEncoding([]byte(response.Header.Get("Content-Encoding"))); err != nil {
		return r, err
	}
	r.ContentType = t.intern([]byte(response.Header.Get("Content-Type")))
	return t.readAll(response, r, part)
}

// readAll reads the body into the buffer of r, or a larger one.
func (t *Target) readAll(response *http.Response, r Response, part func(Response) error) (Response, error) {
	w := wire{
		conn: response.Body, buf: r.Body[:cap(r.Body)], page: r,
		hint:   max(t.hint(part), int(min(response.ContentLength, mostTrusted))),
		memory: t.client.options.Memory, waiting: response.Request.Context(),
	}
	most := t.client.wire
	if r.Encoding == Identity {
		most = t.client.most
	}
	if inParts(r.Encoding) && part != nil {
		w.split(part)
	}
	if response.ContentLength > most {
		return r, tooLarge(most)
	}
	err := w.rest(most)
	if err == nil && response.ContentLength < 0 && len(response.TransferEncoding) == 0 {
		// The body ends with the connection, which the timeout may have closed.
		err = context.Cause(response.Request.Context())
	}
	w.page.Body = w.buf[:w.n]
	return w.page, err
}
