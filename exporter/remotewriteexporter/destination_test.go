// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package remotewriteexporter

import (
	"bytes"
	"fmt"
	"io"
	"math"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/godwit-otel/godwit/internal/promwrite"
)

// received is a destination that stores what it receives.
type received struct {
	*httptest.Server

	t *testing.T

	mu       sync.Mutex
	requests []http.Header
	series   map[string][]point // by labels, in order of arrival
	stored   int                // samples
	answer   func(n int, w http.ResponseWriter, r *http.Request) (taken bool)
}

type point struct {
	time  int64
	value float64
}

// newReceived starts a destination. For each request it calls answer first, if not nil, with the number of previous
// requests. Unless answer handles the request, the request is stored and responded to as 2.0 requires.
func newReceived(t *testing.T, answer func(n int, w http.ResponseWriter, r *http.Request) (taken bool)) *received {
	d := &received{t: t, series: map[string][]point{}, answer: answer}
	d.Server = httptest.NewServer(http.HandlerFunc(d.serve))
	t.Cleanup(d.Close)
	return d
}

func (d *received) serve(w http.ResponseWriter, r *http.Request) {
	d.mu.Lock()
	n := len(d.requests)
	d.requests = append(d.requests, r.Header.Clone())
	answer := d.answer
	d.mu.Unlock()
	if answer != nil && answer(n, w, r) {
		return
	}
	d.store(w, r)
}

func (d *received) store(w http.ResponseWriter, r *http.Request) {
	written, err := d.take(r)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	written.SetHeaders(w.Header())
	w.WriteHeader(http.StatusNoContent)
}

// decode decodes a request whose body can be read again afterwards.
func decode(r *http.Request) ([]promwrite.Series, error) {
	version, raw, err := contentOf(r)
	if err != nil {
		return nil, err
	}
	var decoder promwrite.Decoder
	err = decoder.Decode(version, raw)
	return decoder.Series, err
}

// contentOf returns the decompressed body of a request, which can be read again afterwards.
func contentOf(r *http.Request) (version promwrite.Version, raw []byte, err error) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return version, nil, err
	}
	r.Body = io.NopCloser(bytes.NewReader(body))
	version, err = promwrite.ParseContentType(r.Header.Get("Content-Type"))
	if err != nil {
		return version, nil, err
	}
	encoding, err := promwrite.ParseContentEncoding(r.Header.Get("Content-Encoding"))
	if err != nil {
		return version, nil, err
	}
	decompressor, err := promwrite.NewDecompressor(64 << 20)
	if err != nil {
		return version, nil, err
	}
	raw, err = decompressor.Decompress(nil, encoding, body)
	return version, raw, err
}

func (d *received) take(r *http.Request) (written promwrite.Written, err error) {
	series, err := decode(r)
	if err != nil {
		return written, err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	for i := range series {
		s := &series[i]
		key := fmt.Sprint(s.Labels)
		for _, p := range s.Samples {
			d.series[key] = append(d.series[key], point{p.Timestamp, p.Value})
			if math.IsNaN(p.Value) {
				d.t.Errorf("stale sample of %s was not expected", key)
			}
		}
		d.stored += len(s.Samples)
		written.Samples += len(s.Samples)
		written.Histograms += len(s.Histograms)
		written.Exemplars += len(s.Exemplars)
	}
	return written, nil
}

// fail makes the destination respond with a code from now on.
func (d *received) fail(code int) { d.setAnswer(status(math.MaxInt, code)) }

// recover makes the destination respond normally from now on.
func (d *received) recover() { d.setAnswer(nil) }

func (d *received) setAnswer(answer func(n int, w http.ResponseWriter, r *http.Request) (taken bool)) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.answer = answer
}

// samples returns how many were stored.
func (d *received) samples() int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.stored
}

func (d *received) headers() []http.Header {
	d.mu.Lock()
	defer d.mu.Unlock()
	return append([]http.Header(nil), d.requests...)
}

// requireOrdered fails if a series arrived out of order or with a duplicate sample.
func (d *received) requireOrdered(t *testing.T) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for key, points := range d.series {
		for i := 1; i < len(points); i++ {
			require.Less(t, points[i-1].time, points[i].time, "%s", key)
		}
	}
}
