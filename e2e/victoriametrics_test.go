// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/godwit-otel/godwit/e2e/freeport"
	"github.com/godwit-otel/godwit/e2e/process"
	"github.com/godwit-otel/godwit/e2e/targets"
	"github.com/godwit-otel/godwit/e2e/wait"
)

// victoriaVariable names the environment variable with the path of a VictoriaMetrics server.
const victoriaVariable = "VICTORIAMETRICS"

// startVictoriaMetrics starts a server, which is queried as Prometheus is.
func startVictoriaMetrics(t *testing.T) *realPrometheus {
	t.Helper()
	path := os.Getenv(victoriaVariable)
	if path == "" {
		t.Skipf("no VictoriaMetrics to test with: set %s to its binary", victoriaVariable)
	}
	addr := freeport.Addr(t)
	v := &realPrometheus{url: "http://" + addr}
	v.Process = process.Start(t, process.Settings{Path: path, Args: []string{
		"-storageDataPath=" + t.TempDir(), "-httpListenAddr=" + addr, "-search.latencyOffset=0s", "-inmemoryDataFlushInterval=1s",
	}})
	v.answers()
	return v
}

func (p *realPrometheus) answers() { p.WaitHTTP(firstWords, p.url+"/health", nil) }

// VictoriaMetrics can query what is scraped. The exporter finds the format that it accepts.
func TestShipsToVictoriaMetrics(t *testing.T) {
	t.Parallel()
	v := startVictoriaMetrics(t)
	client := goClient(t)
	beating := targets.NewFunc(t, func(scrape int) targets.Page { return targets.Page{Body: fmt.Sprintf(beatsPage, scrape)} })
	vanishing := targets.New(t, targets.Page{Body: goodPage})
	file := filepath.Join(t.TempDir(), "vanishing.yaml")
	there := func(list string) {
		require.NoError(t, os.WriteFile(file+".tmp", []byte("- targets: ["+list+"]\n"), 0o600))
		require.NoError(t, os.Rename(file+".tmp", file))
	}
	there(vanishing.Addr())
	c := startCollector(t, fmt.Sprintf(scraping, v.url+"/api/v1/write", jobs(
		job("beats", beating.Addr(), ""), job("client", client, ""),
		fmt.Sprintf("        - {job_name: vanishing, file_sd_configs: [{files: [%q], refresh_interval: 1s}]}\n", file),
	)), "exporters: {remotewrite: {circuit_breaker: {open_for: 200ms}}}")

	v.becomes(t, `honks_total`, honks)
	v.becomes(t, `feathers_count`, observations)
	v.becomes(t, `wingspan_meters_bucket{le="2"}`, observations)
	v.becomes(t, `sum(up)`, 3)
	v.becomes(t, `sum(geese_flying)`, 85)

	// Series that vanish are stale at once, not after five minutes.
	there("")
	v.becomes(t, `count(geese_flying)`)
	v.becomes(t, `count(last_over_time(geese_flying[10m]))`, 2)

	// While VictoriaMetrics is down, samples wait in the queue.
	assert.Zero(t, v.Stop(syscall.SIGTERM, drainTime))
	scraped := beating.Scrapes()
	wait.Until(t, firstSeries, func() (bool, string) { return beating.Scrapes() >= scraped+3, "no further scrapes" })
	v.Restart()
	v.answers()
	v.becomes(t, fmt.Sprintf(`max_over_time(beats_total[1h]) > bool %d`, scraped+2), 1)

	assert.Regexp(t, `(?m)^otelcol_exporter_remotewrite_fallback\{.*encoding="zstd".*version="0.1.0"`, page(t, c.telemetry))
	assert.Zero(t, c.metric(t, "otelcol_exporter_send_failed_metric_points"))
	assert.Zero(t, c.Stop(syscall.SIGTERM, drainTime))
	// Only failed scrapes may be missing, and the one in flight when the signal came.
	v.becomes(t, `(`+strconv.Itoa(beating.Scrapes())+` - sum(count_over_time(beats_total[1h]))) - (sum(count_over_time(up{job="beats"}[1h])) - sum(sum_over_time(up{job="beats"}[1h]))) <= bool 1`, 1)
	assert.Zero(t, v.Stop(syscall.SIGTERM, drainTime))
}
