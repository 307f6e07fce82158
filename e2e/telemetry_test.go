// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/godwit-otel/godwit/e2e/wait"
)

// page fetches a page of a running process, with retries. The Collector's telemetry closes the connection after ten
// seconds, which a large page may exceed on a busy machine.
func page(t *testing.T, url string) (text string) {
	t.Helper()
	client := &http.Client{Timeout: firstWords, Transport: &http.Transport{DisableKeepAlives: true}}
	wait.Until(t, firstWords, func() (bool, string) {
		resp, err := client.Get(url)
		if err != nil {
			return false, err.Error()
		}
		defer resp.Body.Close()
		body, err := io.ReadAll(resp.Body)
		text = string(body)
		return err == nil && resp.StatusCode == http.StatusOK, fmt.Sprintf("GET %s answers %d: %v: %s", url, resp.StatusCode, err, text)
	})
	return text
}

// metric sums the series of a metric on a page; a suffix _total is ignored. A missing metric is 0: counters appear when
// they first count.
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

// metricWith sums the series that have these labels, written as on the page.
func metricWith(t *testing.T, text, name string, labels ...string) float64 {
	t.Helper()
	var lines strings.Builder
	for line := range strings.Lines(text) {
		if !slices.ContainsFunc(labels, func(label string) bool { return !strings.Contains(line, label) }) {
			lines.WriteString(line)
		}
	}
	return metric(t, lines.String(), name)
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
	assert.InDelta(t, 3, metricWith(t, text, "a", `x="2"`), 0)
}
