// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package consoleextension

import (
	"bytes"
	"compress/gzip"
	"io"
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/godwit-otel/godwit/extension/consoleextension/internal/guard"
)

func TestFilesOfThePageAreCompressedAndKept(t *testing.T) {
	s := open(t)
	get := func(path string, pairs ...string) (int, http.Header, []byte) {
		request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+s.address+path, http.NoBody)
		require.NoError(t, err)
		header(append([]string{"Accept-Encoding", "identity"}, pairs...)...)(request)
		response, err := http.DefaultTransport.RoundTrip(request)
		require.NoError(t, err)
		defer response.Body.Close()
		body, err := io.ReadAll(response.Body)
		require.NoError(t, err)
		return response.StatusCode, response.Header, body
	}
	for _, path := range []string{"/", "/app.js", "/app.css", "/theme.js"} {
		status, plain, want := get(path)
		require.Equal(t, http.StatusOK, status)
		require.Empty(t, plain.Get("Content-Encoding"))
		require.Equal(t, "private, no-cache", plain.Get("Cache-Control"))

		status, packed, body := get(path, "Accept-Encoding", "br, gzip;q=0.5")
		require.Equal(t, http.StatusOK, status)
		require.Equal(t, "gzip", packed.Get("Content-Encoding"))
		require.Equal(t, "Accept-Encoding", packed.Get("Vary"))
		require.Less(t, len(body), len(want))
		r, err := gzip.NewReader(bytes.NewReader(body))
		require.NoError(t, err)
		got, err := io.ReadAll(r)
		require.NoError(t, err)
		require.True(t, bytes.Equal(want, got))
		require.NotEqual(t, plain.Get("ETag"), packed.Get("ETag"), "other bytes")

		for _, known := range []string{plain.Get("ETag"), "W/" + plain.Get("ETag"), `"other", ` + plain.Get("ETag"), "*"} {
			status, h, body := get(path, "If-None-Match", known)
			require.Equal(t, http.StatusNotModified, status, known)
			require.Empty(t, body)
			require.Equal(t, plain.Get("ETag"), h.Get("ETag"))
			require.Equal(t, guard.Policy, h.Get("Content-Security-Policy"))
		}
		for _, other := range []string{`"other"`, packed.Get("ETag")} {
			status, _, _ := get(path, "If-None-Match", other)
			require.Equal(t, http.StatusOK, status)
		}
		_, h, _ := get(path, "Accept-Encoding", "gzip;q=0")
		require.Empty(t, h.Get("Content-Encoding"), "ruled out")
	}
	_, h, _ := get("/api/v1/overview")
	require.Equal(t, "no-store", h.Get("Cache-Control"), "what is shown is kept by nobody")
}
