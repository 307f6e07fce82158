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

// A large page that is not compressed is read as it comes in. If its end does not come, it counts for nothing.
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
