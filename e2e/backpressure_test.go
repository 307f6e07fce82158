// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"encoding/json"
	"fmt"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/godwit-otel/godwit/e2e/rwserver"
	"github.com/godwit-otel/godwit/e2e/targets"
	"github.com/godwit-otel/godwit/e2e/wait"
)

// A full queue stops scraping or drops data, as configured, and does no other harm: everything goes on once the
// destination is back.
func TestScrapingOutlivesAFullQueue(t *testing.T) {
	t.Parallel()
	f := func(policy string, stands func(before, now float64) bool, told string) {
		t.Run(policy, func(t *testing.T) {
			t.Parallel()
			server := rwserver.New(t, rwserver.Options{})
			server.Always(rwserver.Step{Status: 503})
			all := targets.Many(t, steadyTargets, func(_, scrape int) targets.Page { return targets.Page{Body: fmt.Sprintf(beatsPage, scrape)} })
			var addrs []string
			for _, target := range all {
				addrs = append(addrs, target.Addr())
			}
			list, err := json.Marshal(addrs)
			require.NoError(t, err)
			c := startCollector(t, fmt.Sprintf(scraping, server.URL(), jobs(
				fmt.Sprintf("        - {job_name: all, scrape_interval: 200ms, scrape_timeout: 200ms, static_configs: [{targets: %s}]}\n", list),
			)),
				fmt.Sprintf("exporters: {remotewrite: {queue: {size: 10000, on_full: %s}, circuit_breaker: {open_for: 200ms}, shutdown_timeout: 2s}}", policy))
			full := func() {
				before := c.metric(t, told)
				wait.Until(t, firstSeries, func() (bool, string) {
					wait.Pause(t.Context(), time.Second) // several scrapes
					now := c.metric(t, told)
					ok := stands(before, now)
					why := fmt.Sprintf("%s is %v, and was %v", told, now, before)
					before = now
					return ok, why
				})
			}
			full()
			server.Always(rwserver.Step{})
			for range 2 { // new scrapes arrive
				newest := map[string]float64{}
				for _, series := range server.Series("beats_total") {
					newest[series.Labels.Get("instance")] = series.Samples[len(series.Samples)-1].V
				}
				wait.Until(t, firstSeries, func() (bool, string) {
					further := 0
					for _, series := range server.Series("beats_total") {
						if series.Samples[len(series.Samples)-1].V > newest[series.Labels.Get("instance")] {
							further++
						}
					}
					return further == steadyTargets, fmt.Sprintf("only %d of %d targets go on", further, steadyTargets)
				})
			}
			assert.Empty(t, server.StepsBack())
			assert.Empty(t, server.Violations())

			server.Always(rwserver.Step{Status: 503})
			full()
			begin := time.Now()
			assert.Zero(t, c.Stop(syscall.SIGINT, drainTime))
			assert.Less(t, time.Since(begin), maxShutdown)
			assert.NotContains(t, c.Output(), "panic:")
		})
	}
	still := func(before, now float64) bool { return now > 0 && now == before }
	more := func(before, now float64) bool { return now > before }
	f("block", still, "otelcol_receiver_fastprometheus_scrapes")
	f("drop_newest", more, "otelcol_exporter_enqueue_failed_metric_points") // rejected, and the receiver goes on scraping
	f("drop_oldest", more, "otelcol_exporter_remotewrite_dropped_items")
}
