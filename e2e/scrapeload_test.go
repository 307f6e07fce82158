// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package e2e

import (
	"encoding/json"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/prometheus/common/model"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/godwit-otel/godwit/e2e/freeport"
	"github.com/godwit-otel/godwit/e2e/rwserver"
	"github.com/godwit-otel/godwit/e2e/targets"
	"github.com/godwit-otel/godwit/e2e/wait"
)

const (
	// Half of them refuse connections, the other half never answers.
	downTargets = 10_000
	// The memory limit in MiB: half of the targets have a scrape in progress, and on a busy machine their samples
	// queue.
	maxDown = 600
	// The limits of goroutines and open files once the targets are removed.
	maxIdleRoutines, maxIdleFiles = 100, 60
)

// Ten thousand targets go down at once. All are reported, a target that is up is scraped as before, and once they are
// removed nothing of them remains.
func TestTenThousandTargetsDownAtOnce(t *testing.T) {
	silent, err := net.Listen("tcp", "0.0.0.0:0") // it never accepts
	require.NoError(t, err)
	defer silent.Close()
	ports := []int{freeport.Get(t), silent.Addr().(*net.TCPAddr).Port}
	var down []string
	for i := range downTargets {
		down = append(down, fmt.Sprintf("127.1.%d.%d:%d", i/2/250, 1+i/2%250, ports[i%2]))
	}

	var mu sync.Mutex
	reported, ended := map[string]bool{}, map[string]bool{}
	beats := 0
	server := rwserver.New(t, rwserver.Options{CountOnly: true, Observe: func(series rwserver.Series) {
		mu.Lock()
		defer mu.Unlock()
		switch series.Labels.Get(model.MetricNameLabel) {
		case "up":
			if series.Labels.Get(model.JobLabel) != "down" {
				return
			}
			for _, sample := range series.Samples {
				if sample.Stale() {
					ended[series.Labels.Get(model.InstanceLabel)] = true
				} else if sample.V == 0 {
					reported[series.Labels.Get(model.InstanceLabel)] = true
				}
			}
		case "beats_total":
			beats++
		}
	}})
	good := targets.New(t, targets.Page{Body: fmt.Sprintf(beatsPage, 1)})
	file := filepath.Join(t.TempDir(), "down.json")
	write := func(addrs []string) {
		b, err := json.Marshal([]map[string][]string{{"targets": addrs}})
		require.NoError(t, err)
		require.NoError(t, os.WriteFile(file+".tmp", b, 0o600))
		require.NoError(t, os.Rename(file+".tmp", file))
	}
	write(nil)
	c := startCollector(t, fmt.Sprintf(scraping, server.URL(), jobs(
		job("good", good.Addr(), ", scrape_interval: 500ms, scrape_timeout: 500ms"),
		fmt.Sprintf("        - {job_name: down, scrape_interval: 10s, scrape_timeout: 5s, file_sd_configs: [{files: [%q], refresh_interval: 1s}]}\n", file),
	)))
	wait.Until(t, firstSeries, func() (bool, string) { return good.Scrapes() > 0, "no scrape" })

	write(down)
	wait.Until(t, firstSeries, func() (bool, string) {
		mu.Lock()
		defer mu.Unlock()
		return len(reported) == downTargets, fmt.Sprintf("%d of %d are reported", len(reported), downTargets)
	})
	usage := c.Usage()
	t.Logf("with %d targets down: %.1f MiB, at most %.1f, %d files, %d threads", downTargets, mib(usage.Anon), mib(usage.PeakRSS), usage.Files, usage.Threads)
	assert.Less(t, mib(usage.PeakRSS), float64(maxDown))
	mu.Lock()
	before, scraped := beats, good.Scrapes()
	mu.Unlock()

	write(nil)
	wait.Until(t, firstSeries, func() (bool, string) {
		mu.Lock()
		defer mu.Unlock()
		usage = c.Usage()
		return beats > before+10 && len(ended) == downTargets && usage.Files < maxIdleFiles,
			fmt.Sprintf("%d files are open, %d targets are ended, %d scrapes of the target that is up", usage.Files, len(ended), beats-before)
	})
	t.Logf("without them: %.1f MiB, %d files, %d threads", mib(usage.Anon), usage.Files, usage.Threads)
	assert.Greater(t, good.Scrapes(), scraped)
	routines := goroutines(t, c)
	t.Logf("and %d goroutines", routines)
	assert.Less(t, routines, maxIdleRoutines)
	assert.Positive(t, routines)
	assert.Empty(t, server.Violations())
}

// goroutines ends a collector with SIGQUIT, which prints its goroutines, and counts them.
func goroutines(t *testing.T, c *collector) int {
	t.Helper()
	assert.NotZero(t, c.Stop(syscall.SIGQUIT, drainTime))
	n := 0
	for line := range strings.Lines(c.Output()) {
		if strings.HasPrefix(line, "goroutine ") && strings.HasSuffix(strings.TrimSpace(line), "]:") {
			n++
		}
	}
	return n
}

const (
	steadyTargets = 20
	reloads       = 5
)

// Scrape configurations change under load, to valid and invalid ones. Unchanged targets lose no scrape.
func TestReloadUnderLoad(t *testing.T) {
	server := rwserver.New(t, rwserver.Options{})
	var addrs []string
	all := targets.Many(t, steadyTargets, func(_, scrape int) targets.Page { return targets.Page{Body: fmt.Sprintf(beatsPage, scrape)} })
	for _, target := range all {
		addrs = append(addrs, target.Addr())
	}
	changing := targets.New(t, targets.Page{Body: goodPage})
	dir := t.TempDir()
	put := func(name, text string) {
		path := filepath.Join(dir, name)
		require.NoError(t, os.WriteFile(path+".tmp", []byte(text), 0o600))
		require.NoError(t, os.Rename(path+".tmp", path))
	}
	const quick = "scrape_interval: 200ms, scrape_timeout: 200ms"
	steady, err := json.Marshal(addrs)
	require.NoError(t, err)
	put("steady.yaml", fmt.Sprintf("scrape_configs: [{job_name: steady, %s, static_configs: [{targets: %s}]}]\n", quick, steady))
	version := func(n int) string {
		return fmt.Sprintf("scrape_configs: [{job_name: changing, %s, static_configs: [{targets: [%q], labels: {version: v%d}}]}]\n", quick, changing.Addr(), n)
	}
	put("changing.yaml", version(0))
	c := startCollector(t, fmt.Sprintf(scraping, server.URL(), fmt.Sprintf("scrape_config_files: [%q]\n", dir+"/*.yaml")))
	arrives := func(n int) {
		wait.Until(t, firstSeries, func() (bool, string) {
			return len(server.Series("geese_flying", "version", fmt.Sprintf("v%d", n))) == 2, fmt.Sprintf("version %d of the configuration is not in use", n)
		})
	}
	arrives(0)
	for n := 1; n <= reloads; n++ {
		put("changing.yaml", "scrape_configs: [{job_name: changing, scrape_interval: soon}]\n")
		wait.Until(t, firstSeries, func() (bool, string) {
			told := strings.Count(c.Output(), "Keeping the old configuration")
			return told == n, fmt.Sprintf("%d of %d faults are reported", told, n)
		})
		put("changing.yaml", version(n))
		arrives(n)
	}
	for n := range reloads {
		for _, series := range server.Series("geese_flying", "version", fmt.Sprintf("v%d", n)) {
			wait.Until(t, firstSeries, func() (bool, string) {
				last := server.Only(t, "geese_flying", "version", series.Labels.Get("version"), "flock", series.Labels.Get("flock")).Samples
				return last[len(last)-1].Stale(), fmt.Sprintf("%v has not ended", series.Labels)
			})
		}
	}
	assert.Zero(t, c.Stop(syscall.SIGTERM, drainTime))
	for _, target := range all {
		assert.Greater(t, everyBeat(t, server, model.InstanceLabel, target.Addr()), reloads)
	}
	assert.Empty(t, server.Violations())
	assert.Empty(t, server.StepsBack())
}

// SIGHUP, which reloads the whole configuration, restarts everything under load, but what was scraped is delivered.
func TestHangupUnderLoad(t *testing.T) {
	server := rwserver.New(t, rwserver.Options{})
	target := targets.NewFunc(t, func(scrape int) targets.Page { return targets.Page{Body: fmt.Sprintf(beatsPage, scrape)} })
	c := startCollector(t, fmt.Sprintf(scraping, server.URL(), jobs(job("good", target.Addr(), ", scrape_interval: 200ms, scrape_timeout: 200ms"))))
	for hangup := range reloads {
		scraped := target.Scrapes()
		wait.Until(t, firstSeries, func() (bool, string) {
			return target.Scrapes() > scraped+5, fmt.Sprintf("%d scrapes after %d hang-ups", target.Scrapes()-scraped, hangup)
		})
		c.Signal(syscall.SIGHUP)
	}
	scraped := target.Scrapes()
	wait.Until(t, firstSeries, func() (bool, string) { return target.Scrapes() > scraped+5, "no scrape after the last hang-up" })
	assert.Zero(t, c.Stop(syscall.SIGTERM, drainTime))
	arrived, failed := beats(server, model.JobLabel, "good")
	missing := target.Scrapes() - len(arrived)
	assert.LessOrEqual(t, missing, failed+reloads+1, "only the scrape under way may be missing each time")
	assert.Empty(t, server.StepsBack())
}

// maxShutdown is the exporter's shutdown_timeout, and time for a busy machine.
const maxShutdown = 20 * time.Second

// Ctrl-C ends the agent in time, whatever targets and destination do.
func TestShutdownUnderLoad(t *testing.T) {
	t.Parallel()
	server := rwserver.New(t, rwserver.Options{CountOnly: true})
	server.Always(rwserver.Step{Fault: rwserver.Hang})
	pages := []targets.Page{
		{Body: strings.Repeat(goodPage, 100)},
		{Fault: targets.Hang},
		{Body: goodPage, Drip: 1, DripPause: 50 * time.Millisecond},
		{Body: strings.Repeat(goodPage, 100), Fault: targets.Endless},
	}
	all := targets.Many(t, 100, func(target, _ int) targets.Page { return pages[target%len(pages)] })
	var addrs []string
	for _, target := range all {
		addrs = append(addrs, target.Addr())
	}
	list, err := json.Marshal(addrs)
	require.NoError(t, err)
	c := startCollector(t, fmt.Sprintf(scraping, server.URL(), jobs(
		fmt.Sprintf("        - {job_name: all, scrape_interval: 1s, scrape_timeout: 1s, static_configs: [{targets: %s}]}\n", list),
	)),
		"exporters: {remotewrite: {shutdown_timeout: 2s}}")
	wait.Until(t, firstSeries, func() (bool, string) {
		for _, target := range all {
			if target.Scrapes() < 2 {
				return false, target.Addr() + " has not been scraped twice"
			}
		}
		return len(server.Requests()) > 0, "nothing is under way to the destination"
	})
	begin := time.Now()
	assert.Zero(t, c.Stop(syscall.SIGINT, drainTime))
	assert.Less(t, time.Since(begin), maxShutdown)
	assert.Contains(t, c.Output(), "Shutdown complete.")
	assert.NotContains(t, c.Output(), "panic:")
}
