// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"io"
	"net/http"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// page gets a page that a running process serves.
func page(t *testing.T, url string) string {
	t.Helper()
	client := &http.Client{Timeout: firstWords, Transport: &http.Transport{DisableKeepAlives: true}}
	resp, err := client.Get(url)
	require.NoError(t, err)
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	require.NoError(t, err)
	require.Equal(t, http.StatusOK, resp.StatusCode, "GET %s: %s", url, body)
	return string(body)
}

// metric sums the series of a metric on a page; the suffix _total is as good as
// none. A metric that is not there is 0: counters appear when they first count.
func metric(t *testing.T, text, name string) float64 {
	t.Helper()
	sum := 0.0
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		end := strings.LastIndexByte(line, ' ') // the value is the last word
		if end < 0 || strings.HasPrefix(line, "#") {
			continue
		}
		series, _, _ := strings.Cut(line[:end], "{")
		if strings.TrimSuffix(series, "_total") != name {
			continue
		}
		value, err := strconv.ParseFloat(line[end+1:], 64)
		require.NoError(t, err, "cannot read %q", line)
		sum += value
	}
	return sum
}

func TestMetricSumsSeries(t *testing.T) {
	text := "# HELP a Some words.\n# TYPE a counter\na{x=\"1 }\"} 2\na{x=\"2\"} 3\nb 4\nc_total{y=\"a 9\"} 5e+00\nc_total 1\nab 7\n"
	f := func(name string, want float64) {
		t.Helper()
		assert.InDelta(t, want, metric(t, text, name), 0)
	}
	f("a", 5)
	f("b", 4)
	f("c", 6)
	f("d", 0)
}
