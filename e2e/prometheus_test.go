// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"encoding/json"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/metadata"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/godwit-otel/godwit/e2e/freeport"
	"github.com/godwit-otel/godwit/e2e/process"
	"github.com/godwit-otel/godwit/e2e/repository"
	"github.com/godwit-otel/godwit/e2e/rwserver"
	"github.com/godwit-otel/godwit/e2e/targets"
	"github.com/godwit-otel/godwit/e2e/wait"
)

// prometheusVariable names the environment variable with the path of Prometheus 3, to use instead of the one that `make
// e2e-prometheus` builds.
const prometheusVariable = "PROMETHEUS"

// A page with a unit, for which the text format of the other pages has no syntax.
const unitPage = `# TYPE migration_seconds gauge
# UNIT migration_seconds seconds
# HELP migration_seconds How long they have been under way.
migration_seconds 3
# EOF
`

// realPrometheus is a Prometheus server that receives remote write.
type realPrometheus struct {
	*process.Process

	url string
	// onward receives what the server forwards, with metadata: its API shows only those of what it scrapes itself.
	onward *rwserver.Server
}

func startPrometheus(t *testing.T) *realPrometheus {
	t.Helper()
	path := os.Getenv(prometheusVariable)
	if path == "" {
		path = filepath.Join(repository.Root(t), "bin", "rivals", "prometheus")
		if _, err := os.Stat(path); err != nil {
			t.Skipf("no Prometheus to test with: run `make e2e-prometheus`, or set %s to its binary", prometheusVariable)
		}
	}
	addr := freeport.Addr(t)
	p := &realPrometheus{url: "http://" + addr, onward: rwserver.New(t, rwserver.Options{})}
	p.Process = process.Start(t, process.Settings{Path: path, Args: []string{
		"--config.file=" + configFile(t, fmt.Sprintf("storage: {exemplars: {max_exemplars: 1000}}\n"+
			"remote_write: [{url: %q, protobuf_message: io.prometheus.write.v2.Request, queue_config: {batch_send_deadline: 100ms}}]\n", p.onward.URL())),
		"--storage.tsdb.path=" + t.TempDir(),
		"--web.listen-address=" + addr,
		"--web.enable-remote-write-receiver",
		// The last feature shows types and units as labels.
		"--enable-feature=exemplar-storage,metadata-wal-records,type-and-unit-labels",
	}})
	p.ready()
	return p
}

func (p *realPrometheus) ready() { p.WaitHTTP(firstWords, p.url+"/-/ready", nil) }

// get calls the API and decodes the data of the response.
func (p *realPrometheus) get(t *testing.T, path string, params url.Values, data any) {
	t.Helper()
	var answer struct {
		Data json.RawMessage `json:"data"`
	}
	require.NoError(t, json.Unmarshal([]byte(page(t, p.url+path+"?"+params.Encode())), &answer))
	require.NoError(t, json.Unmarshal(answer.Data, data))
}

// query returns the values of an instant query's vector.
func (p *realPrometheus) query(t *testing.T, promQL string) (values []float64) {
	t.Helper()
	var data struct {
		Result []struct{ Value [2]any }
	}
	p.get(t, "/api/v1/query", url.Values{"query": {promQL}}, &data)
	for _, r := range data.Result {
		value, err := strconv.ParseFloat(fmt.Sprint(r.Value[1]), 64)
		require.NoError(t, err)
		values = append(values, value)
	}
	return values
}

// becomes waits until a query has these values.
func (p *realPrometheus) becomes(t *testing.T, promQL string, want ...float64) {
	t.Helper()
	wait.Until(t, firstSeries, func() (bool, string) {
		got := p.query(t, promQL)
		equal := len(got) == len(want)
		for i := range min(len(got), len(want)) {
			equal = equal && (got[i]-want[i])*(got[i]-want[i]) < 1e-6
		}
		return equal, fmt.Sprintf("%s is %v, not %v", promQL, got, want)
	})
}

// remembers waits until the server forwards this metadata.
func (p *realPrometheus) remembers(t *testing.T, name string, want metadata.Metadata) {
	t.Helper()
	wait.Until(t, firstSeries, func() (bool, string) {
		got := p.onward.Metadata()[name]
		return got == want, fmt.Sprintf("the metadata of %s is %v, not %v", name, got, want)
	})
}

// Queries in Prometheus have the same results as if it had scraped the targets itself.
func TestShipsToPrometheus(t *testing.T) {
	t.Parallel()
	f := func(message, compression, version, encoding string) {
		t.Run(message+" "+compression, func(t *testing.T) {
			p := startPrometheus(t)
			client := goClient(t)
			beating := targets.NewFunc(t, func(scrape int) targets.Page { return targets.Page{Body: fmt.Sprintf(beatsPage, scrape)} })
			units := targets.New(t, targets.Page{Body: unitPage, ContentType: "application/openmetrics-text; version=1.0.0; charset=utf-8"})
			vanishing := targets.New(t, targets.Page{Body: goodPage})
			file := filepath.Join(t.TempDir(), "vanishing.yaml")
			there := func(addrs ...string) {
				require.NoError(t, os.WriteFile(file+".tmp", []byte("- targets: ["+strings.Join(addrs, ", ")+"]\n"), 0o600))
				require.NoError(t, os.Rename(file+".tmp", file))
			}
			there(client, vanishing.Addr())
			c := startCollector(t, fmt.Sprintf(scraping, p.url+"/api/v1/write", jobs(
				job("beats", beating.Addr(), ""), job("units", units.Addr(), ""), job("prometheus", strings.TrimPrefix(p.url, "http://"), ""),
				fmt.Sprintf("        - {job_name: vanishing, scrape_native_histograms: true, always_scrape_classic_histograms: true, file_sd_configs: [{files: [%q], refresh_interval: 1s}]}\n", file),
			)),
				fmt.Sprintf("exporters: {remotewrite: {protobuf_message: %q, compression: %q, circuit_breaker: {open_for: 200ms}}}", message, compression))

			p.becomes(t, `honks_total`, honks)
			p.becomes(t, `feathers_count`, observations)
			p.becomes(t, `wingspan_meters_bucket{le="2"}`, observations)
			p.becomes(t, `histogram_count(flight_seconds)`, observations)
			p.becomes(t, `histogram_sum(flight_seconds)`, observations*(observations+1)/2)
			p.becomes(t, `count(histogram_quantile(0.5, flight_seconds) > 4 < 6)`, 1)
			p.becomes(t, `up`, 1, 1, 1, 1, 1)
			p.becomes(t, `count(prometheus_build_info{job="prometheus"})`, 1)
			p.becomes(t, `count({job="prometheus"}) > bool 300`, 1)
			if version == "2.0.0" {
				p.becomes(t, `count by (__type__) (honks_total{__type__="counter"})`, 1)
				p.becomes(t, `count(flight_seconds{__type__="histogram",__unit__=""})`, 1)
				p.becomes(t, `migration_seconds{__type__="gauge",__unit__="seconds"}`, 3)
				p.remembers(t, "honks_total", metadata.Metadata{Type: model.MetricTypeCounter, Help: "Honks."})
				p.remembers(t, "migration_seconds", metadata.Metadata{Type: model.MetricTypeGauge, Unit: "seconds", Help: "How long they have been under way."})
			}
			var exemplars []struct {
				Exemplars []struct {
					Labels map[string]string
					Value  string
				}
			}
			wait.Until(t, firstSeries, func() (bool, string) {
				now := time.Now()
				p.get(t, "/api/v1/query_exemplars", url.Values{
					"query": {"honks_total"}, "start": {now.Add(-time.Hour).Format(time.RFC3339)}, "end": {now.Add(time.Hour).Format(time.RFC3339)},
				}, &exemplars)
				return len(exemplars) == 1, fmt.Sprintf("exemplars of %d series", len(exemplars))
			})
			assert.Equal(t, traceID, exemplars[0].Exemplars[0].Labels["trace_id"])
			assert.Equal(t, strconv.Itoa(honks), exemplars[0].Exemplars[0].Value)

			// Series that vanish are stale at once, not after five minutes.
			p.becomes(t, `geese_flying`, 42, 43)
			there()
			p.becomes(t, `count({job="vanishing"})`)
			p.becomes(t, `count(last_over_time(geese_flying[10m]))`, 2)
			p.becomes(t, `histogram_count(last_over_time(flight_seconds[10m]))`, observations)

			// While Prometheus is down, samples wait in the queue.
			assert.Zero(t, p.Stop(syscall.SIGTERM, drainTime))
			scraped := beating.Scrapes()
			wait.Until(t, firstSeries, func() (bool, string) { return beating.Scrapes() >= scraped+3, "no further scrapes" })
			p.Restart()
			p.ready()

			assert.Regexp(t, `(?m)^otelcol_exporter_remotewrite_fallback\{.*encoding="`+encoding+`".*version="`+version+`"`, page(t, c.telemetry))
			assert.Zero(t, c.metric(t, "otelcol_exporter_send_failed_metric_points"))
			assert.Zero(t, c.Stop(syscall.SIGTERM, drainTime))
			// Only failed scrapes may be missing, and the one in flight when the signal came.
			missing := fmt.Sprintf(`%d - count_over_time(beats_total[1h])`, beating.Scrapes())
			failed := `(count_over_time(up{job="beats"}[1h]) - sum_over_time(up{job="beats"}[1h]))`
			p.becomes(t, fmt.Sprintf(`sum(%s) - sum(%s) <= bool 1`, missing, failed), 1)
			assert.Zero(t, p.Stop(syscall.SIGTERM, drainTime))
		})
	}
	f("auto", "auto", "2.0.0", "snappy")
	f("2.0", "snappy", "2.0.0", "snappy")
	f("1.0", "snappy", "0.1.0", "snappy")
}
