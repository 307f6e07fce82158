// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/godwit-otel/godwit/e2e/rwserver"
	"github.com/godwit-otel/godwit/e2e/targets"
	"github.com/godwit-otel/godwit/e2e/wait"
)

// The outage is longer than any one attempt to send may take (5 s).
const outage = 8 // scrapes, one a second

// A target counts its own scrapes, so each sample says which scrape it is from.
const beatsPage = "# TYPE beats_total counter\nbeats_total %d\n"

func TestShipsToRemoteWriteURL(t *testing.T) {
	t.Parallel()
	server := rwserver.New(t, rwserver.Options{})
	a := startAgent(t, "GODWIT_REMOTE_WRITE_URL="+server.URL())
	target := targets.NewFunc(t, func(scrape int) targets.Page { return targets.Page{Body: fmt.Sprintf(beatsPage, scrape)} })
	targets.WriteFileSD(t, filepath.Join(a.targets, "beats.json"), map[string]string{
		"job": "beats", "__scrape_interval__": "1s", "__scrape_timeout__": "1s",
	}, target)
	arrived := func() (samples []rwserver.Sample) {
		for _, series := range server.Series("beats_total", "job", "beats") {
			samples = append(samples, series.Samples...)
		}
		return samples
	}
	atLeast := func(n int) func() (bool, string) {
		return func() (bool, string) {
			got := len(arrived())
			return got >= n, fmt.Sprintf("%d of %d samples arrived", got, n)
		}
	}
	wait.Until(t, firstSeries, atLeast(3))

	// An outage: what is scraped meanwhile arrives when it is over.
	server.Always(rwserver.Step{Status: 503, Body: "not now"})
	scraped, asked := target.Scrapes(), len(server.Requests())
	wait.Until(t, firstSeries, func() (bool, string) {
		refused := len(server.Requests()) - asked
		return target.Scrapes() >= scraped+outage && refused >= 2,
			fmt.Sprintf("%d scrapes and %d refusals so far", target.Scrapes()-scraped, refused)
	})
	scraped = target.Scrapes()
	server.Always(rwserver.Step{})
	wait.Until(t, firstSeries, atLeast(scraped))

	// An end with data under way: the server is slow, and a scrape has come since.
	server.Always(rwserver.Step{Delay: 300 * time.Millisecond})
	scraped = target.Scrapes() + 2
	wait.Until(t, firstSeries, func() (bool, string) { return target.Scrapes() >= scraped, "no further scrape" })
	assert.Zero(t, a.Stop(syscall.SIGTERM, drainTime))
	assert.Contains(t, a.Output(), "Shutdown complete.")
	assert.NotContains(t, a.Output(), "lost data")

	samples := arrived()
	for i, s := range samples {
		require.InDelta(t, float64(i), s.V, 0, "sample %d of %d is from another scrape", i, len(samples))
	}
	// Only the scrape that was under way when the signal came may be missing.
	assert.GreaterOrEqual(t, len(samples), scraped-1)
	assert.Empty(t, server.StepsBack())
	assert.Empty(t, server.Violations())
}
