// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"errors"
	"fmt"
	"io"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/textparse"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/godwit-otel/godwit/e2e/freeport"
	"github.com/godwit-otel/godwit/e2e/process"
	"github.com/godwit-otel/godwit/e2e/rwserver"
	"github.com/godwit-otel/godwit/e2e/serve"
	"github.com/godwit-otel/godwit/e2e/wait"
)

// scraping sends what is scraped unchanged. The jobs are inserted.
const scraping = `
exporters:
  remotewrite:
    endpoint: %s
    translation_strategy: UnderscoreEscapingWithoutSuffixes
    target_info: {enabled: false}
    batch: {timeout: 100ms}
    retry: {initial_interval: 50ms, max_interval: 200ms}
service:
  pipelines: {metrics: {receivers: [fastprometheus], exporters: [remotewrite]}}
receivers:
  fastprometheus:
    max_body_size: 16777216
    reload_interval: 100ms
    config:
      global: {scrape_interval: 1s, scrape_timeout: 1s}
      %s
`

// jobs returns scrape configurations, one per line.
func jobs(lines ...string) string {
	return "scrape_configs:\n" + strings.Join(lines, "")
}

func job(name, addr, keys string) string {
	return fmt.Sprintf("        - {job_name: %s, static_configs: [{targets: [%q]}]%s}\n", name, addr, keys)
}

// All series of a real exporter's page arrive.
func TestScrapesNodeExporter(t *testing.T) {
	t.Parallel()
	path := nodeExporter(t)
	addr := freeport.Addr(t)
	node := process.Start(t, process.Settings{Path: path, Args: []string{"--web.listen-address=" + addr, "--no-collector.systemd", "--log.level=warn"}})
	node.WaitHTTP(firstWords, "http://"+addr+"/metrics", nil)
	server := rwserver.New(t, rwserver.Options{})
	c := startCollector(t, fmt.Sprintf(scraping, server.URL(), jobs(job("node", addr, ""))))
	arrivesWhole(t, server, "node", addr, 200)
	assert.Zero(t, c.Stop(syscall.SIGTERM, drainTime))
}

func nodeExporter(t *testing.T) string {
	t.Helper()
	for _, name := range []string{"prometheus-node-exporter", "node_exporter"} {
		if path, err := exec.LookPath(name); err == nil {
			return path
		}
	}
	t.Skip("no node exporter is installed here")
	return ""
}

// A Prometheus server is a target as well: the one of `make e2e-prometheus`, and Debian's, which is older.
func TestScrapesPrometheus(t *testing.T) {
	t.Parallel()
	f := func(name string, start func(t *testing.T) (addr string)) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			addr := start(t)
			server := rwserver.New(t, rwserver.Options{})
			c := startCollector(t, fmt.Sprintf(scraping, server.URL(), jobs(job("prometheus", addr, ""))))
			arrivesWhole(t, server, "prometheus", addr, 300)
			assert.Equal(t, model.MetricTypeHistogram, server.Metadata()["prometheus_tsdb_compaction_chunk_range_seconds_bucket"].Type)
			assert.Equal(t, model.MetricTypeSummary, server.Metadata()["go_gc_duration_seconds"].Type)
			assert.Zero(t, c.Stop(syscall.SIGTERM, drainTime))
		})
	}
	f("3", func(t *testing.T) string { return strings.TrimPrefix(startPrometheus(t).url, "http://") })
	f("Debian", func(t *testing.T) string {
		path, err := exec.LookPath("prometheus")
		if err != nil {
			t.Skip("no Prometheus is installed here")
		}
		addr := freeport.Addr(t)
		p := process.Start(t, process.Settings{Path: path, Args: []string{
			"--config.file=" + configFile(t, fmt.Sprintf("scrape_configs: [{job_name: itself, scrape_interval: 1s, static_configs: [{targets: [%q]}]}]\n", addr)),
			"--storage.tsdb.path=" + t.TempDir(), "--web.listen-address=" + addr, "--log.level=warn",
		}})
		p.WaitHTTP(firstWords, "http://"+addr+"/-/ready", nil)
		return addr
	})
}

// The collector's own telemetry page, which other tests read, can also be scraped.
func TestScrapesItsOwnTelemetry(t *testing.T) {
	t.Parallel()
	server := rwserver.New(t, rwserver.Options{})
	telemetry := freeport.Get(t)
	addr := fmt.Sprintf("127.0.0.1:%d", telemetry)
	c := startCollector(t, fmt.Sprintf(scraping, server.URL(), jobs(job("self", addr, ", metric_relabel_configs: [{source_labels: [__name__], regex: target_info, action: drop}]"))),
		fmt.Sprintf("service: {telemetry: {metrics: {readers: [{pull: {exporter: {prometheus: {host: 127.0.0.1, port: %d}}}}]}}}", telemetry))
	arrivesWhole(t, server, "self", addr, 30)
	assert.Zero(t, c.Stop(syscall.SIGTERM, drainTime))
}

// arrivesWhole waits until every series of the current page, and at least so many, has arrived.
func arrivesWhole(t *testing.T, server *rwserver.Server, job, addr string, atLeast int) {
	t.Helper()
	lset := func(l labels.Labels) string {
		b := labels.NewBuilder(l)
		b.Set(model.JobLabel, job).Set(model.InstanceLabel, addr)
		for _, name := range []string{model.BucketLabel, model.QuantileLabel} { // numbers, as the Collector formats them
			if number, err := strconv.ParseFloat(l.Get(name), 64); err == nil {
				b.Set(name, strconv.FormatFloat(number, 'f', -1, 64))
			}
		}
		return b.Labels().String()
	}
	wait.Until(t, firstSeries, func() (bool, string) {
		there := map[string]bool{}
		for _, series := range server.Series("", model.JobLabel, job) {
			there[series.Labels.String()] = true
		}
		var missing []string
		on := pageSeries(t, page(t, "http://"+addr+"/metrics"))
		for _, l := range on {
			if l.Get(model.MetricNameLabel) != "target_info" && !there[lset(l)] {
				missing = append(missing, lset(l))
			}
		}
		return len(on) >= atLeast && len(missing) == 0, fmt.Sprintf("%d of %d series are missing: %.500q", len(missing), len(on), missing)
	})
	assert.Empty(t, server.Violations())
	assert.Empty(t, server.StepsBack())
}

// pageSeries returns the series of a page, parsed by Prometheus.
func pageSeries(t *testing.T, text string) []labels.Labels {
	t.Helper()
	p, err := textparse.New([]byte(text), "text/plain; version=0.0.4", labels.NewSymbolTable(), textparse.ParserOptions{})
	require.NoError(t, err)
	var all []labels.Labels
	for {
		entry, err := p.Next()
		if errors.Is(err, io.EOF) {
			return all
		}
		require.NoError(t, err)
		if entry == textparse.EntrySeries {
			var l labels.Labels
			p.Labels(&l)
			all = append(all, l)
		}
	}
}

const (
	honks, observations = 42, 10
	traceID             = "4bf92f3577b34da6a3ce929d0e0e4736"
)

// goClient serves metrics of Go's Prometheus client and returns the address.
func goClient(t *testing.T) string {
	t.Helper()
	registry := prometheus.NewRegistry()
	counter := prometheus.NewCounter(prometheus.CounterOpts{Name: "honks_total", Help: "Honks."})
	classic := prometheus.NewHistogram(prometheus.HistogramOpts{Name: "wingspan_meters", Help: "Wingspans.", Buckets: []float64{1, 2}})
	native := prometheus.NewHistogram(prometheus.HistogramOpts{Name: "flight_seconds", Help: "Flights.", NativeHistogramBucketFactor: 1.1})
	summary := prometheus.NewSummary(prometheus.SummaryOpts{Name: "feathers", Help: "Feathers.", Objectives: map[float64]float64{0.5: 0.05}})
	registry.MustRegister(collectors.NewGoCollector(), counter, classic, native, summary)
	exemplar := prometheus.Labels{"trace_id": traceID}
	counter.(prometheus.ExemplarAdder).AddWithExemplar(honks, exemplar)
	for i := range observations {
		classic.(prometheus.ExemplarObserver).ObserveWithExemplar(1.5, exemplar)
		native.(prometheus.ExemplarObserver).ObserveWithExemplar(float64(i+1), exemplar)
		summary.Observe(float64(i))
	}
	listener := serve.Listen(t, "127.0.0.1:0")
	serve.HTTP(t, listener, promhttp.HandlerFor(registry, promhttp.HandlerOpts{EnableOpenMetrics: true}))
	return listener.Addr().String()
}

// All that the Go client exposes arrives, by both protocols that carry exemplars and more.
func TestScrapesTheGoClient(t *testing.T) {
	t.Parallel()
	addr := goClient(t)
	server := rwserver.New(t, rwserver.Options{})
	c := startCollector(t, fmt.Sprintf(scraping, server.URL(), jobs(
		job("open", addr, ", scrape_protocols: [OpenMetricsText1.0.0]"),
		job("proto", addr, ", scrape_protocols: [PrometheusProto], scrape_native_histograms: true"),
	)))
	arrivesWhole(t, server, "open", addr, 20)
	wait.Until(t, firstSeries, func() (bool, string) {
		return len(server.Series("flight_seconds", "job", "proto")) > 0, "no native histogram has arrived"
	})
	assert.Zero(t, c.Stop(syscall.SIGTERM, drainTime))

	for _, job := range []string{"open", "proto"} {
		counter := server.Only(t, "honks_total", "job", job)
		assert.InDelta(t, honks, counter.Samples[0].V, 0)
		assert.Equal(t, traceID, counter.Exemplars[0].Labels.Get("trace_id"), job)
		assert.InDelta(t, honks, counter.Exemplars[0].Value, 0)
		bucket := server.Only(t, "wingspan_meters_bucket", "job", job, "le", "2")
		assert.InDelta(t, observations, bucket.Samples[0].V, 0)
		assert.NotEmpty(t, bucket.Exemplars, job)
		assert.InDelta(t, observations, server.Only(t, "feathers_count", "job", job).Samples[0].V, 0)
		assert.NotEmpty(t, server.Series("feathers", "job", job, "quantile", "0.5"))
	}
	h := server.Only(t, "flight_seconds", "job", "proto")
	require.NotNil(t, h.Histograms[0].Int)
	assert.EqualValues(t, observations, h.Histograms[0].Int.Count)
	assert.InDelta(t, observations*(observations+1)/2, h.Histograms[0].Int.Sum, 1e-9)
	assert.EqualValues(t, 3, h.Histograms[0].Int.Schema)
	assert.Equal(t, traceID, h.Exemplars[0].Labels.Get("trace_id"))
	assert.Equal(t, model.MetricTypeCounter, server.Metadata()["honks_total"].Type)
	assert.Equal(t, "Honks.", server.Metadata()["honks_total"].Help)
	assert.Empty(t, server.Violations())
}
