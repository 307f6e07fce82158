// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package targets

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/godwit-otel/godwit/e2e/wait"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// get scrapes without net/http's own decompression.
func get(ctx context.Context, target *Target, acceptEncoding string) (*http.Response, string, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, target.URL(), nil)
	if err != nil {
		return nil, "", err
	}
	if acceptEncoding != "" {
		req.Header.Set("Accept-Encoding", acceptEncoding)
	}
	c := http.Client{Transport: &http.Transport{DisableCompression: true, DisableKeepAlives: true}}
	resp, err := c.Do(req)
	if err != nil {
		return nil, "", err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	return resp, string(body), err
}

func scrape(t *testing.T, target *Target, acceptEncoding string) (*http.Response, string) {
	t.Helper()
	resp, body, err := get(t.Context(), target, acceptEncoding)
	require.NoError(t, err)
	return resp, body
}

func TestPagesComeInOrderAndTheLastStays(t *testing.T) {
	target := New(t, Page{Body: "up 0\n"}, Page{Status: 503}, Page{Body: "up 1\n", ContentType: "application/openmetrics-text"})
	resp, body := scrape(t, target, "")
	assert.Equal(t, "up 0\n", body)
	assert.Equal(t, defaultContentType, resp.Header.Get("Content-Type"))
	resp, _ = scrape(t, target, "")
	assert.Equal(t, 503, resp.StatusCode)
	for range 2 {
		resp, body = scrape(t, target, "")
		assert.Equal(t, "up 1\n", body)
		assert.Equal(t, "application/openmetrics-text", resp.Header.Get("Content-Type"))
	}
	assert.Equal(t, 4, target.Scrapes())

	target.Then(Page{Body: "a"}, Page{Body: "b", Header: http.Header{"X-Odd": {"1"}}})
	_, a := scrape(t, target, "")
	resp, b := scrape(t, target, "")
	assert.Equal(t, "ab", a+b)
	assert.Equal(t, "1", resp.Header.Get("X-Odd"))
}

func TestPagesCanBeMade(t *testing.T) {
	target := NewFunc(t, func(scrape int) Page { return Page{Body: fmt.Sprint("scrapes_total ", scrape)} })
	_, first := scrape(t, target, "")
	_, second := scrape(t, target, "")
	assert.Equal(t, []string{"scrapes_total 0", "scrapes_total 1"}, []string{first, second})
}

func TestEncodingIsNegotiated(t *testing.T) {
	body := strings.Repeat("up 1\n", 100)
	all, onlyGzip, none := New(t, Page{Body: body}), New(t, Page{Body: body, Encodings: []string{"gzip"}}), New(t, Page{Body: body, Encodings: []string{}})
	f := func(target *Target, accept, want string) {
		t.Helper()
		resp, got := scrape(t, target, accept)
		assert.Equal(t, want, resp.Header.Get("Content-Encoding"))
		if want == "" {
			assert.Equal(t, body, got)
		} else {
			assert.Less(t, len(got), len(body))
			assert.Equal(t, body, decode(t, want, got))
		}
		assert.Equal(t, accept, target.Asked().Get("Accept-Encoding"))
	}
	f(all, "gzip, zstd", "zstd")
	f(all, "gzip", "gzip")
	f(all, "", "")
	f(all, "identity, zstd;q=0, gzip;q=0.5", "gzip")
	f(all, "zstd; q=0.00, gzip; q=0.0", "")
	f(onlyGzip, "zstd, gzip", "gzip")
	f(onlyGzip, "zstd", "")
	f(none, "zstd, gzip", "")
}

func decode(t *testing.T, encoding, body string) string {
	t.Helper()
	var r io.Reader
	if encoding == "gzip" {
		zr, err := gzip.NewReader(strings.NewReader(body))
		require.NoError(t, err)
		r = zr
	} else {
		zr, err := zstd.NewReader(strings.NewReader(body))
		require.NoError(t, err)
		defer zr.Close()
		r = zr
	}
	plain, err := io.ReadAll(r)
	require.NoError(t, err)
	return string(plain)
}

func TestSlowPagesAreSlow(t *testing.T) {
	target := New(t, Page{Body: "up 1\n", Delay: 30 * time.Millisecond}, Page{Body: "up 1\n", Drip: 2, DripPause: 10 * time.Millisecond})
	for range 2 {
		start := time.Now()
		_, body := scrape(t, target, "")
		assert.Equal(t, "up 1\n", body)
		assert.GreaterOrEqual(t, time.Since(start), 20*time.Millisecond)
	}
}

func TestFaults(t *testing.T) {
	target := New(t, Page{Fault: Reset}, Page{Body: strings.Repeat("up 1\n", 1000), Fault: ResetMidBody}, Page{Fault: Hang})
	_, _, err := get(t.Context(), target, "")
	require.ErrorIs(t, err, syscall.ECONNRESET)

	_, body, err := get(t.Context(), target, "")
	require.Error(t, err)
	assert.Less(t, len(body), 5000)

	_, _, err = get(wait.Context(t, func() bool { return target.Scrapes() == 3 }), target, "")
	require.ErrorIs(t, err, context.Canceled)
	assert.Equal(t, 3, target.Scrapes())
}

func TestManyTargetsHaveManyAddresses(t *testing.T) {
	hosts := map[string]bool{}
	for i, target := range Many(t, 300, func(target, scrape int) Page { return Page{Body: fmt.Sprint(target, scrape)} }) {
		host, _, _ := strings.Cut(target.Addr(), ":")
		hosts[host] = true
		if i%99 == 0 {
			_, body := scrape(t, target, "")
			assert.Equal(t, fmt.Sprint(i, 0), body)
		}
	}
	if runtime.GOOS == "linux" {
		assert.Len(t, hosts, 300)
	}
}

func TestFileSDNamesTheTargets(t *testing.T) {
	a, b := New(t, Page{}), New(t, Page{})
	path := filepath.Join(t.TempDir(), "targets.json")
	WriteFileSD(t, path, map[string]string{"job": "node"}, a, b)
	got, err := os.ReadFile(path)
	require.NoError(t, err)
	assert.JSONEq(t, fmt.Sprintf(`[{"targets":[%q,%q],"labels":{"job":"node"}}]`, a.Addr(), b.Addr()), string(got))
	entries, err := os.ReadDir(filepath.Dir(path))
	require.NoError(t, err)
	assert.Len(t, entries, 1)
}
