// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package selftelemetry

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func serve(t *testing.T, handle http.HandlerFunc) string {
	t.Helper()
	server := httptest.NewServer(handle)
	t.Cleanup(server.Close)
	return server.URL + "/metrics"
}

func TestRead(t *testing.T) {
	page := serve(t, func(w http.ResponseWriter, r *http.Request) {
		assert.Equal(t, "/metrics", r.URL.Path)
		assert.Contains(t, r.Header.Get("Accept"), "text/plain")
		w.Write([]byte("otelcol_process_uptime 3\n"))
	})
	before := time.Now()
	s, err := Read(t.Context(), page)
	require.NoError(t, err)
	assert.InDelta(t, 3, s.Sum("otelcol_process_uptime"), 0)
	assert.WithinRange(t, s.Time, before, time.Now())
}

func TestReadSaysWhatIsWrong(t *testing.T) {
	f := func(page, want string) {
		t.Helper()
		s, err := Read(t.Context(), page)
		assert.Nil(t, s)
		require.ErrorContains(t, err, want)
		assert.Equal(t, 1, strings.Count(err.Error(), page), "the URL is named once: %s", err)
	}
	f("http://localhost:1/metrics", "connection refused")
	f("http://[::1", "missing ']' in host")
	f("gopher://localhost/metrics", "unsupported protocol")
	f(serve(t, http.NotFound), "status 404 Not Found")
	f(serve(t, func(w http.ResponseWriter, _ *http.Request) { w.Write([]byte("<html>")) }), "cannot parse line 1 of the metrics: no number")
}

func TestReadIsBounded(t *testing.T) {
	line := "a 1\n"
	page := serve(t, func(w http.ResponseWriter, _ *http.Request) { w.Write([]byte(strings.Repeat(line, 100))) })

	s, err := read(t.Context(), page, int64(100*len(line)))
	require.NoError(t, err)
	assert.InDelta(t, 100, s.Sum("a"), 0)

	for _, limit := range []int64{1, 399} {
		_, err = read(t.Context(), page, limit)
		require.ErrorIs(t, err, errPageTooLarge)
	}
}

func TestReadObeysItsContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	page := serve(t, func(_ http.ResponseWriter, r *http.Request) {
		cancel()
		<-r.Context().Done()
	})
	_, err := Read(ctx, page)
	require.ErrorIs(t, err, context.Canceled)
}
