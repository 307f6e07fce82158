// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package fastprometheusreceiver

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// A large uncompressed page is parsed as it arrives. If its end does not arrive, none of it counts.
func TestLargePlainPages(t *testing.T) {
	const series = 40_000
	var page strings.Builder
	for i := range series {
		fmt.Fprintf(&page, "requests{path=\"/a/path/that/is/rather/long/for/a/label/%d\"} 42\n", i)
	}
	require.Greater(t, page.Len(), 2<<20)
	target := newEndpoint(t, "")
	serve := func(text string, cut bool) {
		target.handle(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "text/plain; version=0.0.4")
			fmt.Fprint(w, text)
			if cut {
				panic(http.ErrAbortHandler)
			}
		})
	}
	serve(page.String(), false)
	of := still(t, "reuse: always", target.address())
	at := time.Now()
	scrape := func() TargetSnapshot {
		at = at.Add(time.Second)
		of.scrape(at)
		return of.snapshot()
	}
	for range 2 {
		got := scrape()
		require.Equal(t, stateHealthy, got.State, got.LastError)
		require.Equal(t, series, got.Samples)
		require.Equal(t, page.Len(), of.fetch.Size())
	}
	wire, body := of.job.owner.counters.wireBytes.Load(), of.job.owner.counters.bodyBytes.Load()
	assert.EqualValues(t, 2*page.Len(), wire)
	assert.Equal(t, wire, body)

	serve(page.String(), true)
	got := scrape()
	require.Equal(t, stateFailing, got.State)
	require.Contains(t, got.LastError, "EOF")
	require.Zero(t, got.Samples)

	serve(page.String(), false)
	require.Equal(t, series, scrape().Samples)
	serve(page.String()+"a line that is none\n", false)
	got = scrape()
	require.Equal(t, stateFailing, got.State)
	require.Equal(t, reasonParse, of.status.reason)
}

// A page that was cut off has no size, as in Prometheus, although some of it was read.
func TestPageThatIsCutOffHasNoSize(t *testing.T) {
	target := newEndpoint(t, "")
	page := strings.Repeat("requests 42\n", 100_000)
	cut := false
	target.handle(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/plain; version=0.0.4")
		fmt.Fprint(w, page)
		if cut {
			panic(http.ErrAbortHandler)
		}
	})
	r := run(t, fmt.Sprintf("initial_scrape_offset: 1h\nconfig:\n  scrape_configs:\n  - {job_name: a, extra_scrape_metrics: true, static_configs: [{targets: [%q]}]}\n", target.address()))
	require.Eventually(t, func() bool { return r.census()[stateUnknown] == 1 }, patience, glance)
	of := r.onlyTarget(t)
	for _, want := range []float64{float64(len(page)), 0} {
		r.sink.Reset()
		of.scrape(time.Now())
		got := r.some(func(p point) bool { return p.name == "scrape_body_size_bytes" && !p.stale })
		require.Len(t, got, 1)
		require.InDelta(t, want, got[0].value, 0)
		cut = true
	}
	require.Positive(t, r.counters.bodyBytes.Load()-int64(len(page)), "some of it was read")
}
