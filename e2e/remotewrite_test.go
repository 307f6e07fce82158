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

	"github.com/godwit-otel/godwit/e2e/rwserver"
	"github.com/godwit-otel/godwit/e2e/targets"
	"github.com/godwit-otel/godwit/e2e/wait"
)

// The outage is longer than the longest attempt to send (5 s).
const outage = 8 // scrapes, one per second

func TestShipsToRemoteWriteURL(t *testing.T) {
	t.Parallel()
	server := rwserver.New(t, rwserver.Options{})
	a := startAgent(t, "GODWIT_REMOTE_WRITE_URL="+server.URL())
	target := targets.NewFunc(t, func(scrape int) targets.Page { return targets.Page{Body: fmt.Sprintf(beatsPage, scrape)} })
	targets.WriteFileSD(t, filepath.Join(a.targets, "beats.json"), map[string]string{
		"job": "beats", "__scrape_interval__": "1s", "__scrape_timeout__": "1s",
	}, target)
	atLeast := func(n int) func() (bool, string) {
		return func() (bool, string) {
			arrived, failed := beats(server, "job", "beats")
			return len(arrived)+failed >= n, fmt.Sprintf("%d of %d samples arrived, %d scrapes failed", len(arrived), n, failed)
		}
	}
	wait.Until(t, firstSeries, atLeast(3))

	// During an outage samples wait; afterwards they arrive.
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

	// A shutdown with data in flight: the server is slow, and another scrape has come.
	server.Always(rwserver.Step{Delay: 300 * time.Millisecond})
	scraped = target.Scrapes() + 2
	wait.Until(t, firstSeries, func() (bool, string) { return target.Scrapes() >= scraped, "no further scrape" })
	assert.Zero(t, a.Stop(syscall.SIGTERM, drainTime))
	assert.Contains(t, a.Output(), "Shutdown complete.")
	assert.NotContains(t, a.Output(), "lost data")

	everyBeat(t, server, "job", "beats")
	// Only the scrape in flight when the signal came may be missing.
	ok, why := atLeast(scraped - 1)()
	assert.True(t, ok, why)
	assert.Empty(t, server.StepsBack())
	assert.Empty(t, server.Violations())
}
