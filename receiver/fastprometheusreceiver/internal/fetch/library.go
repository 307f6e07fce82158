// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package fetch

import (
	"context"
	"errors"
	"io"
	"net/http"
)

// getLibrary exchanges request and response through net/http.
func (t *Target) getLibrary(ctx context.Context, buf []byte) (Response, error) {
	ctx, cancel := context.WithTimeout(ctx, t.timeout)
	defer cancel()
	r := Response{Body: buf[:0]}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, t.url, http.NoBody)
	if err != nil {
		return r, err
	}
	request.Header.Set("Accept", t.accept)
	request.Header.Set("Accept-Encoding", t.offered())
	request.Header.Set("User-Agent", t.client.options.UserAgent)
	request.Header.Set("X-Prometheus-Scrape-Timeout-Seconds", seconds(t.timeout))
	client, err := t.client.through(t.socket)
	if err != nil {
		return r, err
	}
	response, err := client.Do(request)
	if err != nil {
		return r, err
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		// Reading what little an error says keeps the connection.
		_, _ = io.Copy(io.Discard, io.LimitReader(response.Body, maxDrained))
		status := response.Status
		return r, &StatusError{Code: response.StatusCode, Status: status[:min(len(status), maxQuoted)]}
	}
	if encodings := response.Header.Values("Content-Encoding"); len(encodings) > 1 {
		return r, &encodingError{errors.New("unsupported content encoding: several of them")}
	}
	if r.Encoding, err = parseEncoding([]byte(response.Header.Get("Content-Encoding"))); err != nil {
		return r, err
	}
	most := t.client.wire
	if r.Encoding == Identity {
		most = t.client.most
	}
	r.ContentType = t.intern([]byte(response.Header.Get("Content-Type")))
	r.Body, err = t.readAll(response, buf[:cap(buf)], most)
	return r, err
}

// readAll reads the body into buf, or a larger one.
func (t *Target) readAll(response *http.Response, buf []byte, most int64) ([]byte, error) {
	if response.ContentLength > most {
		return buf[:0], tooLarge(most)
	}
	w := wire{buf: buf, hint: max(t.size, int(min(response.ContentLength, mostTrusted)))}
	for {
		if w.n == len(w.buf) {
			w.end = w.n
			w.grow(w.n + 1)
		}
		n, err := response.Body.Read(w.buf[w.n:])
		w.n += n
		if int64(w.n) > most {
			return w.buf[:0], tooLarge(most)
		}
		if errors.Is(err, io.EOF) {
			return w.buf[:w.n], nil
		}
		if err != nil {
			return w.buf[:0], err
		}
	}
}
