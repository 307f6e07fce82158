// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package fastprometheusreceiver

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	promconfig "github.com/prometheus/prometheus/config"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/godwit-otel/godwit/receiver/fastprometheusreceiver/internal/fetch"
	"github.com/godwit-otel/godwit/receiver/fastprometheusreceiver/internal/page"
)

const reloading = `
reload_interval: 20ms
config:
  scrape_config_files: [%q]
`

// jobFile returns a file for scrape_config_files with one job and a short interval.
func jobFile(name, address, extra string) string {
	return fmt.Sprintf("scrape_configs:\n- job_name: %s\n  scrape_interval: 100ms\n  scrape_timeout: 100ms\n"+
		"  static_configs: [{targets: [%s]}]\n%s", name, address, extra)
}

func TestReload(t *testing.T) {
	a, b := newEndpoint(t, text), newEndpoint(t, text)
	file := filepath.Join(t.TempDir(), "jobs.yaml")
	fill(t, file, jobFile("first", a.address(), ""))
	r := run(t, fmt.Sprintf(reloading, file))
	r.await(t, of(a, is("requests", 42)))

	fill(t, file, jobFile("second", b.address(), ""))
	got := r.await(t, of(b, is("requests", 42)))
	assert.Equal(t, "second", got.job)
	r.await(t, of(a, stale("requests")))
	require.Eventually(t, func() bool { return len(r.allJobs()) == 1 }, patience, glance)
	assert.Equal(t, int64(1), r.counters.applied.Load())
	assert.Equal(t, 1, r.log.FilterMessage("Applied changed configuration files").Len())
}

// An invalid configuration changes nothing, and is logged once.
func TestReloadForTheWorse(t *testing.T) {
	a := newEndpoint(t, text)
	file := filepath.Join(t.TempDir(), "jobs.yaml")
	fill(t, file, jobFile("job", a.address(), ""))
	r := run(t, fmt.Sprintf(reloading, file))
	r.await(t, is("requests", 42))
	for i, wrong := range []string{
		"scrape_configs: [{job_name: job, surprise: 1}]",
		"not: [yaml",
		"scrape_configs: [{job_name: job, tls_config: {ca_file: /nowhere/ca}}]",
		"scrape_configs: [{job_name: job, scrape_failure_log_file: /nowhere/log}]",
		jobFile("job", a.address(), "")[:40], // half written
		"\x00\xff",
		"a: &a [1,1,1,1,1,1,1,1,1]\nb: &b [*a,*a,*a,*a,*a,*a,*a,*a,*a]\nc: &c [*b,*b,*b,*b,*b,*b,*b,*b,*b]\nd: &d [*c,*c,*c,*c,*c,*c,*c,*c,*c]\n" +
			"e: &e [*d,*d,*d,*d,*d,*d,*d,*d,*d]\nf: &f [*e,*e,*e,*e,*e,*e,*e,*e,*e]\nscrape_configs: [*f,*f,*f,*f,*f,*f,*f,*f,*f]\n",
		"scrape_configs: " + strings.Repeat("[", 100_000),
		"scrape_configs: " + strings.Repeat("{a: ", 20_000) + strings.Repeat("}", 20_000),
	} {
		fill(t, file, wrong)
		require.Eventually(t, func() bool { return r.counters.rejected.Load() == int64(i+1) }, patience, glance)
		r.sink.Reset()
		r.await(t, is("requests", 42))
		assert.Equal(t, int64(i+1), r.counters.rejected.Load())
	}
	rejected := r.counters.rejected.Load()
	huge, err := os.Create(file + ".huge")
	require.NoError(t, err)
	require.NoError(t, huge.Truncate(1<<40)) // a sparse file
	require.NoError(t, huge.Close())
	require.NoError(t, os.Rename(file+".huge", file))
	require.Eventually(t, func() bool { return r.counters.rejected.Load() == rejected+1 }, patience, glance)
	r.sink.Reset()
	r.await(t, is("requests", 42))
	told := r.log.FilterMessageSnippet("Keeping the old configuration").All()
	assert.Len(t, told, int(rejected)+1)
	assert.Contains(t, fmt.Sprint(told[rejected].ContextMap()["error"]), "larger than 64MiB")
	assert.Empty(t, r.some(func(p point) bool { return p.stale }))

	fill(t, file, jobFile("job", a.address(), "  params: {a: [b]}\n"))
	require.Eventually(t, func() bool { return r.counters.applied.Load() == 1 }, patience, glance)
}

// A configuration may be invalid only because a file that it names is missing: that may appear later, as secrets do
// that are mounted separately.
func TestReloadOnceWhatIsNamedIsThere(t *testing.T) {
	a, b := newEndpoint(t, text), newEndpoint(t, text)
	folder := t.TempDir()
	file, token := filepath.Join(folder, "jobs.yaml"), filepath.Join(folder, "token")
	fill(t, file, jobFile("job", a.address(), ""))
	r := run(t, fmt.Sprintf(reloading, file))
	r.await(t, of(a, is("requests", 42)))

	fill(t, file, jobFile("job", b.address(), fmt.Sprintf("  authorization: {credentials_file: %q}\n", token)))
	require.Eventually(t, func() bool { return r.counters.rejected.Load() == 1 }, patience, glance)
	r.sink.Reset()
	r.await(t, of(a, is("requests", 42)))
	fill(t, token, "secret")
	r.await(t, of(b, is("requests", 42)))
	assert.Equal(t, int64(1), r.counters.rejected.Load())
	assert.Equal(t, int64(1), r.counters.applied.Load())
	assert.Equal(t, 1, r.log.FilterMessageSnippet("Keeping the old configuration").Len())
}

// What a change does not affect is kept: connections, plans and the state of targets.
func TestReloadKeepsWhatStillFits(t *testing.T) {
	a := newEndpoint(t, text)
	file := filepath.Join(t.TempDir(), "jobs.yaml")
	fill(t, file, jobFile("job", a.address(), ""))
	r := run(t, fmt.Sprintf(reloading, file))
	r.await(t, is("requests", 42))
	tools := r.toolsOf("job")
	target := r.onlyTarget(t)

	fill(t, file, strings.ReplaceAll(jobFile("job", a.address(), "  target_limit: 10\n"), "interval: 100ms", "interval: 150ms"))
	require.Eventually(t, func() bool { return r.Snapshot().Jobs[0].Targets[0].Interval == 150*time.Millisecond }, patience, glance)
	assert.Same(t, tools.page, r.toolsOf("job").page)
	assert.Same(t, tools.client, r.toolsOf("job").client)
	assert.NotSame(t, tools, r.toolsOf("job"))
	assert.Same(t, target, r.onlyTarget(t))
	r.sink.Reset()
	r.await(t, is("requests", 42))
	assert.Empty(t, r.some(func(p point) bool { return p.stale }))

	// A change of relabelling ends the series that it drops at once.
	fill(t, file, jobFile("job", a.address(), "  metric_relabel_configs: [{source_labels: [code], regex: \"500\", action: drop}]\n"))
	require.Eventually(t, func() bool { return r.toolsOf("job").page != tools.page }, patience, glance)
	marker := r.await(t, stale("requests"))
	assert.Same(t, target, r.onlyTarget(t))
	r.sink.Reset()
	next := r.await(t, is("requests", 42))
	assert.True(t, next.at.After(marker.at))
	assert.Empty(t, r.some(is("requests", 1)))
}

// A job with every kind of setting equals itself when it is written again.
func TestGearOfAnUnchangedJob(t *testing.T) {
	const text = `
config:
  global: {external_labels: {cluster: east}}
  scrape_configs:
    - job_name: everything
      scrape_protocols: [PrometheusProto, OpenMetricsText1.0.0]
      scrape_native_histograms: true
      native_histogram_bucket_limit: 100
      params: {a: [b, c]}
      basic_auth: {username: godwit, password: secret}
      tls_config: {insecure_skip_verify: true, server_name: other}
      http_headers: {X-Scope: {values: [a], secrets: [b]}}
      proxy_url: http://proxy:3128
      proxy_connect_header: {X-Proxy: [c]}
      no_proxy: 10.0.0.0/8
      relabel_configs: [{source_labels: [__address__], regex: "(a|b).*", target_label: x, replacement: "$$1"}]
      metric_relabel_configs: [{source_labels: [__name__, code], separator: ";", regex: "(foo|bar.*);5..", action: drop}, {regex: "tmp_.*", action: labeldrop}]
      static_configs: [{targets: ["a:1"]}]
    - job_name: tokens
      oauth2: {client_id: a, client_secret: b, token_url: "http://tokens/", scopes: [c], proxy_url: "http://proxy:3128"}
      proxy_from_environment: true
`
	r := prepare(t, configure(t, text))
	before, err := r.cfg.read()
	require.NoError(t, err)
	after, err := r.limits.applied(configure(t, text)).read()
	require.NoError(t, err)
	for i := range before.jobs {
		old, err := r.newTools(before.jobs[i], nil)
		require.NoError(t, err)
		g, err := r.newTools(after.jobs[i], old)
		require.NoError(t, err)
		assert.Same(t, old.client, g.client, old.cfg.JobName)
		assert.Same(t, old.page, g.page, old.cfg.JobName)
		g.client.Close()
	}
}

// parts returns what a target keeps between scrapes.
func (t *target) parts() (*fetch.Target, *page.Target) {
	t.busy.Lock()
	defer t.busy.Unlock()
	return t.fetch, t.page
}

// When discovery changes other targets, those that stay keep their state.
func TestDiscoveryKeepsWhatStillFits(t *testing.T) {
	stays, goes, comes := newEndpoint(t, text), newEndpoint(t, text), newEndpoint(t, text)
	file := filepath.Join(t.TempDir(), "targets.json")
	list := func(other *endpoint, label string) string {
		return fmt.Sprintf(`[{"targets": [%q, %q], "labels": {"__meta_round": %q}}]`, stays.address(), other.address(), label)
	}
	fill(t, file, list(goes, "1"))
	r := run(t, fmt.Sprintf(`
config:
  scrape_configs:
    - job_name: test
      scrape_interval: 200ms
      scrape_timeout: 200ms
      file_sd_configs: [{files: [%q]}]
`, file))
	find := func(p *endpoint) *target {
		for _, j := range r.allJobs() {
			for _, target := range j.all() {
				if target.assignment.Load().URL == p.URL+"/metrics" {
					return target
				}
			}
		}
		return nil
	}
	r.await(t, of(stays, is("requests", 42)))
	r.await(t, of(goes, is("requests", 42)))
	target := find(stays)
	line, plan := target.parts()

	fill(t, file, list(comes, "2"))
	r.await(t, of(comes, is("requests", 42)))
	r.await(t, of(goes, stale("requests")))
	assert.Same(t, target, find(stays))
	assert.Equal(t, "2", target.assignment.Load().Discovered().Get("__meta_round"))
	lineAfter, planAfter := target.parts()
	assert.Same(t, line, lineAfter)
	assert.Same(t, plan, planAfter)
	shown := target.snapshot()
	assert.Zero(t, shown.PlanMisses)
	assert.Positive(t, shown.PlanHits)
	assert.Empty(t, r.some(of(stays, func(p point) bool { return p.stale })))
}

// Failures are written to the current log file, even those of targets that discovery has not updated yet.
func TestFailureLogFileIsOpenedAnew(t *testing.T) {
	target := newEndpoint(t, text)
	target.handle(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusBadGateway) })
	dir := t.TempDir()
	file, log := filepath.Join(dir, "jobs.yaml"), filepath.Join(dir, "failures.log")
	job := func(params string) string {
		return jobFile("job", target.address(), fmt.Sprintf("  scrape_failure_log_file: %q\n  sample_limit: %s\n", log, params))
	}
	fill(t, file, job("1"))
	r := run(t, "initial_scrape_offset: 1h"+fmt.Sprintf(reloading, file))
	require.Eventually(t, func() bool { return r.census()[stateUnknown] == 1 }, patience, glance)
	failing := r.onlyTarget(t)
	failing.scrape(time.Now())
	require.NoError(t, os.Rename(log, log+".1"))

	fill(t, file, job("2"))
	require.Eventually(t, func() bool { return r.counters.applied.Load() == 1 }, patience, glance)
	failing.scrape(time.Now())
	for _, name := range []string{log + ".1", log} {
		content, err := os.ReadFile(name)
		require.NoError(t, err)
		assert.Equal(t, 1, strings.Count(string(content), "502 Bad Gateway"), name)
	}
}

func (r *rig) onlyTarget(t testing.TB) *target {
	t.Helper()
	var all []*target
	for _, j := range r.allJobs() {
		all = append(all, j.all()...)
	}
	require.Len(t, all, 1)
	return all[0]
}

// Changes during scrapes do no harm.
func TestReloadUnderLoad(t *testing.T) {
	a := newEndpoint(t, text)
	file := filepath.Join(t.TempDir(), "jobs.yaml")
	write := func(round int) {
		var out strings.Builder
		out.WriteString("scrape_configs:\n")
		for i := range 10 {
			one := jobFile(fmt.Sprintf("job-%d", (round+i)%12), a.address(), fmt.Sprintf("  sample_limit: %d\n", 100+round%3))
			out.WriteString(strings.TrimPrefix(one, "scrape_configs:\n"))
		}
		fill(t, file, out.String())
	}
	write(0)
	r := run(t, fmt.Sprintf(reloading, file))
	for round := range 8 {
		write(round)
		r.sink.Reset()
		r.await(t, is("requests", 42))
		if round > 0 {
			require.Eventually(t, func() bool { return r.counters.applied.Load() >= int64(round) }, patience, glance)
		}
	}
	assert.Zero(t, r.counters.rejected.Load())
	require.Eventually(t, func() bool { return len(r.allJobs()) <= 12 }, patience, glance)
}

// A changed timeout, of a job or of a target, is reported from then on, and no series ends because of it.
func TestTimeoutChanges(t *testing.T) {
	p := newEndpoint(t, text)
	file := filepath.Join(t.TempDir(), "jobs.yaml")
	const extra = "  extra_scrape_metrics: true\n"
	first := jobFile("job", p.address(), extra)
	fill(t, file, first)
	r := run(t, "initial_scrape_offset: 1h"+fmt.Sprintf(reloading, file))
	require.Eventually(t, func() bool { return r.census()[stateUnknown] == 1 }, patience, glance)
	target := r.onlyTarget(t)
	target.scrape(time.Now())
	r.await(t, is("scrape_timeout_seconds", 0.1))
	for i, change := range []struct {
		text string
		want float64
	}{
		{strings.Replace(first, "scrape_timeout: 100ms", "scrape_timeout: 90ms", 1), 0.09},
		{jobFile("job", p.address(), extra+"  relabel_configs: [{target_label: __scrape_timeout__, replacement: 80ms}]\n"), 0.08},
		{jobFile("job", p.address(), extra+"  body_size_limit: 1MB\n  scrape_protocols: [PrometheusText0.0.4]\n"), 0.1},
	} {
		before := target.assignment.Load()
		fill(t, file, change.text)
		require.Eventually(t, func() bool { return target.assignment.Load() != before }, patience, glance, i)
		target.scrape(time.Now())
		r.await(t, is("scrape_timeout_seconds", change.want))
	}
	assert.Empty(t, r.some(func(p point) bool { return p.stale }))
}

// A target that discovery loses and finds again before its staleness markers are sent goes on as if nothing had
// happened.
func TestTargetComesBack(t *testing.T) {
	a := newEndpoint(t, text)
	file := filepath.Join(t.TempDir(), "targets.json")
	present, absent := fmt.Sprintf(`[{"targets": [%q]}]`, a.address()), "[]"
	fill(t, file, present)
	r := run(t, fmt.Sprintf(`
config:
  scrape_configs:
    - job_name: test
      scrape_interval: 2s
      scrape_timeout: 2s
      file_sd_configs: [{files: [%q]}]
`, file))
	r.await(t, is("requests", 42))
	target := r.onlyTarget(t)
	active := func() int { return len(r.Snapshot().Jobs[0].Targets) }
	fill(t, file, absent)
	require.Eventually(t, func() bool { return active() == 0 }, patience, glance)
	fill(t, file, present)
	require.Eventually(t, func() bool { return active() == 1 }, patience, glance)
	if r.onlyTarget(t) != target {
		t.Skip("the machine is too busy for the target to be back in time")
	}
	r.sink.Reset()
	r.await(t, is("requests", 42))
	assert.Empty(t, r.some(func(p point) bool { return p.stale }))
}

func TestWhatAPageDependsOn(t *testing.T) {
	base := promconfig.DefaultScrapeConfig
	for name, change := range map[string]func(*promconfig.ScrapeConfig){
		"interval": func(c *promconfig.ScrapeConfig) { c.ScrapeInterval = 1 },
		"timeout":  func(c *promconfig.ScrapeConfig) { c.ScrapeTimeout = 1 },
		"path":     func(c *promconfig.ScrapeConfig) { c.MetricsPath = "/x" },
		"params":   func(c *promconfig.ScrapeConfig) { c.Params = map[string][]string{"a": {"b"}} },
		"protocols": func(c *promconfig.ScrapeConfig) {
			c.ScrapeProtocols = []promconfig.ScrapeProtocol{promconfig.PrometheusProto}
		},
		"body": func(c *promconfig.ScrapeConfig) { c.BodySizeLimit = 1 },
		"log":  func(c *promconfig.ScrapeConfig) { c.ScrapeFailureLogFile = "x" },
	} {
		changed := base
		change(&changed)
		assert.Equal(t, pageConfig(&base), pageConfig(&changed), name)
	}
	for name, change := range map[string]func(*promconfig.ScrapeConfig){
		"honor_labels": func(c *promconfig.ScrapeConfig) { c.HonorLabels = true },
		"sample_limit": func(c *promconfig.ScrapeConfig) { c.SampleLimit = 1 },
		"job":          func(c *promconfig.ScrapeConfig) { c.JobName = "x" },
	} {
		changed := base
		change(&changed)
		assert.NotEqual(t, pageConfig(&base), pageConfig(&changed), name)
	}
}
