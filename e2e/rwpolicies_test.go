// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package e2e

import (
	"bytes"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/prometheus/common/model"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/pdata/pmetric/pmetricotlp"

	"github.com/godwit-otel/godwit/e2e/freeport"
	"github.com/godwit-otel/godwit/e2e/rwserver"
	"github.com/godwit-otel/godwit/e2e/targets"
	"github.com/godwit-otel/godwit/e2e/wait"
)

// One page goes to several destinations of one exporter.
const onePage = `
receivers:
  fastprometheus: {config: {scrape_configs: [{job_name: numbers, scrape_interval: 200ms, scrape_timeout: 200ms, static_configs: [{targets: [%q]}]}]}}
service:
  pipelines: {metrics: {receivers: [fastprometheus], exporters: [remotewrite]}}
exporters:
  remotewrite:
    batch: {timeout: 20ms, max_samples: 100} # about a scrape, whatever has waited
    retry: {initial_interval: 50ms, max_interval: 200ms}
    circuit_breaker: {consecutive_failures: 3, open_for: 200ms}
    target_info: {enabled: false}
    %s
`

// onDisk is an overlay with a queue on disk.
const onDisk = "exporters: {remotewrite: {queue: {directory: data}}}"

// takesNothing is the response of a destination that is down.
var takesNothing = rwserver.Step{Status: http.StatusServiceUnavailable}

func newDestination(t *testing.T, name string) *destination {
	t.Helper()
	d := &destination{arrived: map[numbered]bool{}, name: name}
	d.Server = rwserver.New(t, rwserver.Options{CountOnly: true, Observe: d.observe})
	return d
}

// well requires that all samples arrived unchanged, in order and once.
func (d *destination) well(t *testing.T) {
	t.Helper()
	d.mu.Lock()
	defer d.mu.Unlock()
	assert.Empty(t, d.problems, d.name)
	assert.Zero(t, d.repeated, "%s: samples arrived twice", d.name)
	assert.Empty(t, d.Violations(), d.name)
}

// count returns how many samples have arrived, and of how many series.
func (d *destination) count() (samples, series int) {
	d.mu.Lock()
	defer d.mu.Unlock()
	seen := map[int]bool{}
	for one := range d.arrived {
		seen[one.series] = true
	}
	return len(d.arrived), len(seen)
}

// scrapesUntil waits for so many more scrapes.
func scrapesUntil(t *testing.T, target *targets.Target, more int) int {
	t.Helper()
	from := target.Scrapes()
	wait.Until(t, firstSeries, func() (bool, string) {
		n := target.Scrapes()
		return n >= from+more, fmt.Sprintf("%d of %d scrapes", n-from, more)
	})
	return target.Scrapes()
}

// A destination that is down and whose queue drops the oldest data does not affect the other one. All data arrive at
// the other, despite a kill, and at this one those that its queue kept.
func TestAnEndpointThatIsDownHasAQueueOfItsOwn(t *testing.T) {
	t.Parallel()
	well, down := newDestination(t, "well"), newDestination(t, "down")
	down.Always(takesNothing)
	target := targets.NewFunc(t, numbersPage)
	c := startCollector(t, fmt.Sprintf(onePage, target.Addr(), fmt.Sprintf(
		"endpoints: [{endpoint: %q}, {endpoint: %q, queue: {size: 60000, on_full: drop_oldest}, write_relabel_configs: [{regex: noise, action: labeldrop}]}]",
		well.URL(), down.URL())), onDisk)
	wait.Until(t, firstSeries, well.has(scrapesUntil(t, target, 20)-1))
	c.Kill()
	c.Restart()
	c.ready()
	wait.Until(t, firstSeries, func() (bool, string) {
		dropped := metricWith(t, page(t, c.telemetry), "otelcol_exporter_remotewrite_dropped_items", `reason="queue_full"`, "")
		return dropped > 0, "nothing was dropped for want of room"
	})
	down.Always(rwserver.Step{})
	last := scrapesUntil(t, target, 5) - 1
	wait.Until(t, firstSeries, well.has(last))
	wait.Until(t, firstSeries, down.has(last))
	assert.Zero(t, c.Stop(syscall.SIGTERM, drainTime))
	down.well(t)
	assert.Empty(t, well.problems)
	// Samples in flight when the process was killed may have come twice, and the scrape in progress is lost.
	missing := 0
	for _, scrape := range arrivedAnywhere([]*destination{well, down}, last) {
		missing += well.lost([]int{scrape})
	}
	assert.Zero(t, missing)
	kept, series := down.count()
	all, _ := well.count()
	assert.Less(t, kept, all, "some of it was dropped")
	assert.Equal(t, pageNumbers, series)
}

// Each series goes to one of three destinations. What is for one that is down waits for it, despite a kill.
func TestSeriesAreShardedByURL(t *testing.T) {
	t.Parallel()
	var all []*destination
	var endpoints []string
	for i := range 3 {
		all = append(all, newDestination(t, fmt.Sprint("shard ", i)))
		endpoints = append(endpoints, fmt.Sprintf("{endpoint: %q}", all[i].URL()))
	}
	all[2].Always(takesNothing)
	target := targets.NewFunc(t, numbersPage)
	c := startCollector(t, fmt.Sprintf(onePage, target.Addr(),
		"endpoints: ["+strings.Join(endpoints, ", ")+"]\n    shard_by_url: {enabled: true}"), onDisk)
	scrapesUntil(t, target, 10)
	c.Kill()
	c.Restart()
	c.ready()
	scrapesUntil(t, target, 5)
	all[2].Always(rwserver.Step{})
	last := scrapesUntil(t, target, 5) - 1
	wait.Until(t, firstSeries, func() (bool, string) {
		n := 0
		for _, d := range all {
			d.mu.Lock()
			for _, newest := range d.newest {
				if newest >= last {
					n++
				}
			}
			d.mu.Unlock()
		}
		return n == pageNumbers, fmt.Sprintf("of %d series the last has arrived", n)
	})
	assert.Zero(t, c.Stop(syscall.SIGTERM, drainTime))
	where := map[int]string{}
	for _, d := range all {
		assert.Empty(t, d.problems, d.name)
		_, series := d.count()
		assert.Greater(t, series, pageNumbers/10, d.name)
		for one := range d.arrived {
			if at, ok := where[one.series]; ok {
				require.Equal(t, at, d.name, "series %d", one.series)
			}
			where[one.series] = d.name
		}
	}
	assert.Len(t, where, pageNumbers)
	for _, scrape := range arrivedAnywhere(all, last) {
		missing := pageNumbers
		for _, d := range all {
			missing -= pageNumbers - d.lost([]int{scrape})
		}
		assert.Zero(t, missing, "scrape %d", scrape)
	}
}

// A queue on disk with a damaged page loses only what was in it: the agent starts, counts it and sends the rest,
// wherever the page is.
func TestADamagedQueueIsSentAsFarAsItGoes(t *testing.T) {
	t.Parallel()
	d := newDestination(t, "down")
	d.Always(takesNothing)
	target := targets.NewFunc(t, numbersPage)
	c := startCollector(t, fmt.Sprintf(onePage, target.Addr(), fmt.Sprintf("endpoint: %q", d.URL())), onDisk)
	last := scrapesUntil(t, target, 30) - 2
	c.Kill()
	logs, err := filepath.Glob(filepath.Join(c.Dir(), "data", "*", "*.log"))
	require.NoError(t, err)
	require.NotEmpty(t, logs)
	content, err := os.ReadFile(logs[0])
	require.NoError(t, err)
	reached, err := os.ReadFile(filepath.Join(filepath.Dir(logs[0]), "reached"))
	require.NoError(t, err)
	pageSize := os.Getpagesize()
	require.Greater(t, len(content), 8*pageSize)
	begin := regexp.MustCompile("\x01\x11b[0-9a-f]{16}") // the start of a request in a record
	requests := func(b []byte) int { return len(begin.FindAll(b, -1)) }
	for at := 0; at+4*pageSize < len(content); at += pageSize { // at the end of the file, damage looks like space that was never written
		damaged := bytes.Clone(content)
		clear(damaged[at : at+pageSize])
		gone := requests(content) - requests(damaged)
		require.NoError(t, os.WriteFile(logs[0], damaged, 0o600))
		c.Restart()
		c.ready()
		told := page(t, c.telemetry)
		lost := int(metricWith(t, told, "otelcol_exporter_remotewrite_dropped_blocks", `reason="corrupt"`))
		assert.GreaterOrEqual(t, lost, max(1, gone), "at %d of %d", at, len(content))
		assert.LessOrEqual(t, lost, gone+3, "at %d of %d: it may have hit one before, and those behind in a record", at, len(content))
		assert.GreaterOrEqual(t, metric(t, told, "otelcol_exporter_remotewrite_storage_damaged_bytes"), float64(pageSize))
		c.Kill()
		made, err := filepath.Glob(filepath.Join(c.Dir(), "data", "*", "*.log*"))
		require.NoError(t, err)
		for _, file := range made { // restore the queue
			require.NoError(t, os.Remove(file))
		}
		require.NoError(t, os.WriteFile(filepath.Join(filepath.Dir(logs[0]), "reached"), reached, 0o600))
	}

	damaged := bytes.Clone(content)
	clear(damaged[len(content)/2 : len(content)/2+pageSize])
	require.NoError(t, os.WriteFile(logs[0], damaged, 0o600))
	c.Restart()
	c.ready()
	c.WaitLog(firstWords, "a part of the queue on disk cannot be read")
	d.Always(rwserver.Step{})
	wait.Until(t, firstSeries, d.has(scrapesUntil(t, target, 5)-1))
	assert.Zero(t, c.Stop(syscall.SIGTERM, drainTime))
	d.well(t)
	missing := 0
	for scrape := range last {
		if d.lost([]int{scrape}) > 0 {
			missing++
		}
	}
	assert.Positive(t, missing)
	assert.LessOrEqual(t, missing, last/2, "of %d scrapes, some of which a busy machine may have missed", last)
}

// A destination gets no more than its rate limit, while another gets everything. Nothing is lost.
func TestADestinationGetsNoMoreThanItsLimit(t *testing.T) {
	t.Parallel()
	const limit = 250 // of 500 samples per second
	limited, free := newDestination(t, "limited"), newDestination(t, "free")
	target := targets.NewFunc(t, numbersPage)
	c := startCollector(t, fmt.Sprintf(onePage, target.Addr(), fmt.Sprintf(
		"endpoints: [{endpoint: %q, rate_limit: {samples_per_second: %d}}, {endpoint: %q}]", limited.URL(), limit, free.URL())))
	wait.Until(t, firstSeries, limited.has(0))
	began := time.Now()
	before, _ := limited.count()
	last := scrapesUntil(t, target, 40) - 1
	wait.Until(t, firstSeries, free.has(last))
	after, _ := limited.count()
	took := time.Since(began)
	// What one second does not use, the next may, and requests are not split.
	assert.LessOrEqual(t, float64(after-before), limit*(took.Seconds()+2)+pageNumbers, "in %v", took)
	there, _ := free.count()
	assert.Greater(t, there, after, "it is held up by nobody")
	limited.well(t)
	free.well(t)
	assert.Zero(t, c.metric(t, "otelcol_exporter_send_failed_metric_points"))
	c.Kill() // delivering the rest would take long
}

// After an outage new data arrive first, and the backlog also arrives.
func TestFreshDataGoesFirst(t *testing.T) {
	t.Parallel()
	var order []int // of scrapes
	d := &destination{arrived: map[numbered]bool{}, name: "late"}
	d.Server = rwserver.New(t, rwserver.Options{CountOnly: true, Observe: func(s rwserver.Series) {
		if s.Labels.Get(model.MetricNameLabel) != tallyName || s.Labels.Get("series") != "7" {
			return
		}
		d.mu.Lock()
		defer d.mu.Unlock()
		for _, sample := range s.Samples {
			if !sample.Stale() {
				order = append(order, int(sample.V))
			}
		}
	}})
	target := targets.NewFunc(t, numbersPage)
	c := startCollector(t, fmt.Sprintf(onePage, target.Addr(), fmt.Sprintf(
		// Few requests per second, so that their order shows.
		"endpoint: %q\n    rate_limit: {samples_per_second: 900}\n    queue: {fresh_first_after: 2s}", d.URL())), onDisk)
	first := scrapesUntil(t, target, 5)
	d.Always(takesNothing)
	scrapesUntil(t, target, 40)
	d.Always(rwserver.Step{})
	back := target.Scrapes()
	last := scrapesUntil(t, target, 40) - 1
	wait.Until(t, firstSeries, func() (bool, string) {
		d.mu.Lock()
		defer d.mu.Unlock()
		missing := 0
		for scrape := first; scrape < last; scrape++ {
			if !slices.Contains(order, scrape) {
				missing++
			}
		}
		late := c.metric(t, "otelcol_receiver_fastprometheus_scrape_failures") // responses that took longer than 200 ms on a busy machine
		return float64(missing) <= late, fmt.Sprintf("%d scrapes have not arrived, of which %v were late", missing, late)
	})
	assert.Zero(t, c.Stop(syscall.SIGTERM, drainTime))
	d.mu.Lock()
	defer d.mu.Unlock()
	overtaken := 0
	seenFresh := false
	for _, scrape := range order {
		switch {
		case scrape >= back:
			seenFresh = true
		case seenFresh && scrape > first:
			overtaken++ // from the outage, but after newer data
		}
	}
	assert.Greater(t, overtaken, 5, "what waited went first: %v", order)
	assert.Empty(t, d.Violations())
}

// Of two replicas that send the same data, one is accepted. When it is killed the other one is, and the gap is no
// longer than that takes.
func TestReplicasAreDeduplicated(t *testing.T) {
	t.Parallel()
	d := newDestination(t, "store")
	addr := freeport.Addr(t)
	gateway := startDistribution(t, "godwit-gateway", fmt.Sprintf(`
receivers: {remotewrite: {endpoint: %q, replicas: {deduplicate: true, failover_timeout: 2s}}}
exporters: {remotewrite: {endpoint: %q, batch: {timeout: 20ms}, target_info: {enabled: false}}}
service: {pipelines: {metrics: {receivers: [remotewrite], exporters: [remotewrite]}}}
`, addr, d.URL()))
	target := targets.NewFunc(t, numbersPage)
	var replicas []*collector
	for i := range 2 {
		replicas = append(replicas, startCollector(t, fmt.Sprintf(onePage, target.Addr(), fmt.Sprintf(
			"endpoint: http://%s/api/v1/write\n    external_labels: {cluster: birds, __replica__: r%d}", addr, i))))
	}
	wait.Until(t, firstSeries, d.has(scrapesUntil(t, target, 20)-1))
	deduplicated := func() float64 { return gateway.metric(t, "otelcol_receiver_remotewrite_deduplicated_points") }
	wait.Until(t, telemetryWait, func() (bool, string) { return deduplicated() > 0, "nothing was left out" })
	assert.Zero(t, d.repeated)
	replicas[0].Kill()
	wait.Until(t, firstSeries, d.has(scrapesUntil(t, target, 20)-1))
	replicas[1].Kill()
	replicas[0].Restart()
	replicas[0].ready()
	wait.Until(t, firstSeries, d.has(scrapesUntil(t, target, 20)-1))
	wait.Until(t, telemetryWait, func() (bool, string) {
		n := gateway.metric(t, "otelcol_receiver_remotewrite_failovers")
		return n >= 1, fmt.Sprintf("%v failovers", n)
	})
	assert.Empty(t, d.problems)
	assert.Zero(t, d.repeated)
	assert.Zero(t, gateway.Stop(syscall.SIGTERM, drainTime))
}

// Scopes and target_info become labels in remote write, and are restored from them.
func TestScopesAndResourcesComeBack(t *testing.T) {
	t.Parallel()
	store := rwserver.New(t, rwserver.Options{})
	in, between := freeport.Addr(t), freeport.Addr(t)
	gateway := startDistribution(t, "godwit-gateway", fmt.Sprintf(`
receivers: {remotewrite: {endpoint: %[1]q, scopes_from_labels: true, target_info: {to_resource: true}}}
exporters:
  remotewrite/without: {endpoint: %[2]q, batch: {timeout: 20ms}, translation_strategy: UnderscoreEscapingWithoutSuffixes, promote_resource_attributes: [zone], scope_labels: never, namespace: without}
  remotewrite/with: {endpoint: %[2]q, batch: {timeout: 20ms}, translation_strategy: UnderscoreEscapingWithoutSuffixes, promote_resource_attributes: [zone], scope_labels: always, namespace: with}
service: {pipelines: {metrics: {receivers: [remotewrite], exporters: [remotewrite/without, remotewrite/with]}}}
`, between, store.URL()))
	agent := startCollector(t, fmt.Sprintf(`
receivers: {otlp: {protocols: {grpc: {endpoint: %s}}}}
exporters: {remotewrite: {endpoint: "http://%s/api/v1/write", scope_labels: always, target_info: {interval: 0s}, batch: {timeout: 20ms}}}
service: {pipelines: {metrics: {receivers: [otlp], exporters: [remotewrite]}}}
`, in, between))
	md := pmetric.NewMetrics()
	rm := md.ResourceMetrics().AppendEmpty()
	for key, value := range map[string]string{"service.name": "flock", "service.instance.id": "one", "zone": "east"} {
		rm.Resource().Attributes().PutStr(key, value)
	}
	sm := rm.ScopeMetrics().AppendEmpty()
	sm.Scope().SetName("wings")
	sm.Scope().SetVersion("2")
	m := sm.Metrics().AppendEmpty()
	m.SetName("beats")
	dp := m.SetEmptyGauge().DataPoints().AppendEmpty()
	dp.SetTimestamp(pcommon.NewTimestampFromTime(time.Now()))
	dp.SetDoubleValue(3)
	_, err := pmetricotlp.NewGRPCClient(dial(t, in)).Export(t.Context(), pmetricotlp.NewExportRequestFromMetrics(md))
	require.NoError(t, err)
	wait.Until(t, firstSeries, func() (bool, string) {
		return len(store.Series("without_beats"))+len(store.Series("with_beats")) == 2, "the series have not arrived"
	})
	without, with := store.Only(t, "without_beats"), store.Only(t, "with_beats")
	for _, s := range []rwserver.Series{without, with} {
		assert.Equal(t, "east", s.Labels.Get("zone"), "it was the resource's, and is again: %v", s.Labels)
		assert.Equal(t, "flock", s.Labels.Get("job"))
	}
	assert.False(t, without.Labels.Has("otel_scope_name"), "%v", without.Labels)
	assert.Equal(t, "wings", with.Labels.Get("otel_scope_name"), "%v", with.Labels)
	assert.Equal(t, "2", with.Labels.Get("otel_scope_version"))
	assert.Zero(t, agent.Stop(syscall.SIGTERM, drainTime))
	assert.Zero(t, gateway.Stop(syscall.SIGTERM, drainTime))
	assert.Empty(t, store.Violations())
}
