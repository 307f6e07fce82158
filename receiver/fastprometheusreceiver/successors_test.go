// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package fastprometheusreceiver

import (
	"bufio"
	"context"
	"fmt"
	"net"
	"net/http"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/common/model"
	promconfig "github.com/prometheus/prometheus/config"
	"github.com/prometheus/prometheus/discovery/targetgroup"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.yaml.in/yaml/v2"

	"github.com/godwit-otel/godwit/receiver/fastprometheusreceiver/internal/allocator"
	"github.com/godwit-otel/godwit/receiver/fastprometheusreceiver/internal/discover"
)

const twoJobs = `
config:
  scrape_configs:
    - {job_name: first, scrape_interval: 10s}
    - {job_name: second, scrape_interval: 10s}
`

// pagesByPath serves each path's page over connections in memory.
func pagesByPath(pages map[string]string) func(context.Context, string, string) (net.Conn, error) {
	return func(context.Context, string, string) (net.Conn, error) {
		here, there := net.Pipe()
		go func() {
			defer there.Close()
			from := bufio.NewReader(there)
			for {
				r, err := http.ReadRequest(from)
				if err != nil {
					return
				}
				page, status := pages[r.URL.Path], "200 OK"
				if page == "" {
					status = "404 Not Found"
				}
				if _, err = fmt.Fprintf(there, "HTTP/1.1 %s\r\nContent-Type: text/plain\r\nContent-Length: %d\r\n\r\n%s", status, len(page), page); err != nil {
					return
				}
			}
		}()
		return here, nil
	}
}

// A target that is replaced by one with the same labels ends only the series that the other one does not have: the
// markers come after samples of the others, which they would end in between.
func TestSeriesContinueAtAnotherTarget(t *testing.T) {
	all := []string{"goes", "scrape_duration_seconds", "scrape_samples_post_metric_relabeling", "scrape_samples_scraped", "scrape_series_added", "stays", "up"}
	place := func(path, address string, more ...string) *targetgroup.Group {
		labels := model.LabelSet{"job": "geese", "instance": "nest", "__metrics_path__": model.LabelValue(path)}
		for i := 0; i < len(more); i += 2 {
			labels[model.LabelName(more[i])] = model.LabelValue(more[i+1])
		}
		return &targetgroup.Group{Source: path + address, Labels: labels, Targets: []model.LabelSet{{"__address__": model.LabelValue(address)}}}
	}
	before := place("/before", "host:1")
	nothing := []*targetgroup.Group{}
	for name, test := range map[string]struct {
		steps []discover.Groups
		ended []string // once each
	}{
		"another path":    {[]discover.Groups{{"first": {before}}, {"first": {place("/after", "host:1")}}}, []string{"goes"}},
		"another address": {[]discover.Groups{{"first": {before}}, {"first": {place("/after", "host:2")}}}, []string{"goes"}},
		"another pod":     {[]discover.Groups{{"first": {before}}, {"first": {place("/after", "host:1", "__meta_kubernetes_pod_uid", "2")}}}, []string{"goes"}},
		"another job":     {[]discover.Groups{{"first": {before}}, {"first": nothing, "second": {place("/after", "host:1")}}}, []string{"goes"}},
		"both for a while": {[]discover.Groups{
			{"first": {before}}, {"first": {before, place("/after", "host:2")}}, {"first": {place("/after", "host:2")}},
		}, []string{"goes"}},
		"other labels": {[]discover.Groups{{"first": {before}}, {"first": {place("/after", "host:2", "region", "north")}}}, all},
		"several": {[]discover.Groups{
			{"first": {before}}, {"first": {place("/after", "host:1"), place("/down", "host:2"), place("/more", "host:3")}},
		}, nil},
		"a down one":   {[]discover.Groups{{"first": {before}}, {"first": {place("/down", "host:2")}}}, []string{"goes", "stays"}},
		"nothing":      {[]discover.Groups{{"first": {before}}, {"first": nothing}}, all},
		"back in time": {[]discover.Groups{{"first": {before}}, {"first": {place("/after", "host:2")}}, {"first": {before}}}, []string{"comes"}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := prepare(t, configure(t, twoJobs), withoutTraces)
				r.dial = pagesByPath(map[string]string{"/before": "goes 1\nstays 1\n", "/after": "stays 2\ncomes 2\n", "/more": "goes 3\n"})
				require.NoError(t, r.Start(t.Context(), componenttest.NewNopHost()))
				time.Sleep(10 * time.Second) // until the jobs have been found to have no targets
				for _, groups := range test.steps {
					f := follower{scraper: r.scraper}
					f.sync(discover.Update{Groups: groups})
					time.Sleep(13 * time.Second)
				}
				time.Sleep(time.Minute)
				require.NoError(t, r.Shutdown(t.Context()))
				assert.Equal(t, test.ended, names(r.sink.AllMetrics(), true))
			})
		})
	}
}

// A change of what pages mean ends only series that are no longer passed on.
func TestSeriesContinueUnderAnotherConfiguration(t *testing.T) {
	const text = "goes 1\nstays 1\n# TYPE size histogram\nsize_bucket{le=\"1\"} 1\nsize_bucket{le=\"2\"} 1\nsize_bucket{le=\"+Inf\"} 1\nsize_sum 1\nsize_count 1\n"
	all := []string{"goes", "size", "stays"}
	rules := func(text string) func(*promconfig.ScrapeConfig) {
		return func(job *promconfig.ScrapeConfig) {
			require.NoError(t, yaml.Unmarshal([]byte(text), &job.MetricRelabelConfigs))
			for _, rule := range job.MetricRelabelConfigs {
				rule.NameValidationScheme = job.MetricNameValidationScheme
			}
		}
	}
	for name, test := range map[string]struct {
		change func(*promconfig.ScrapeConfig)
		ended  []string
	}{
		"a limit":          {func(job *promconfig.ScrapeConfig) { job.SampleLimit = 100 }, nil},
		"a limit exceeded": {func(job *promconfig.ScrapeConfig) { job.SampleLimit = 1 }, all},
		"honor_labels":     {func(job *promconfig.ScrapeConfig) { job.HonorLabels = true }, nil},
		"drop one":         {rules("[{source_labels: [__name__], regex: goes, action: drop}]"), []string{"goes"}},
		"drop a bucket":    {rules("[{source_labels: [le], regex: \"2\", action: drop}]"), nil},
		"drop a count":     {rules("[{source_labels: [__name__], regex: size_count, action: drop}]"), []string{"size"}},
		"a label":          {rules("[{target_label: region, replacement: north}]"), all},
		"a label of one":   {rules("[{source_labels: [__name__], regex: goes, target_label: region, replacement: north}]"), []string{"goes"}},
		"another name":     {rules("[{source_labels: [__name__], regex: goes, target_label: __name__, replacement: went}]"), []string{"goes"}},
		"another instance": {rules("[{target_label: instance, replacement: nest}]"), all},
		"the path":         {func(job *promconfig.ScrapeConfig) { job.MetricsPath = "/other" }, nil},
		"less about scrapes": {
			func(job *promconfig.ScrapeConfig) { off := false; job.ExtraScrapeMetrics = &off },
			[]string{"scrape_body_size_bytes", "scrape_sample_limit", "scrape_timeout_seconds"},
		},
		"to native": {func(job *promconfig.ScrapeConfig) { on := true; job.ConvertClassicHistogramsToNHCB = &on }, nil},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := prepare(t, configure(t, strings.Replace(twoJobs, "config:\n", "config:\n  global: {extra_scrape_metrics: true}\n", 1)), withoutTraces)
				r.dial = pagesByPath(map[string]string{"/metrics": text, "/other": text})
				require.NoError(t, r.Start(t.Context(), componenttest.NewNopHost()))
				time.Sleep(10 * time.Second)
				f := follower{scraper: r.scraper}
				found := discover.Update{Groups: discover.Groups{"first": {{Targets: []model.LabelSet{{"__address__": "host:1"}}}}}}
				f.sync(found)
				time.Sleep(13 * time.Second)
				read, err := r.cfg.read()
				require.NoError(t, err)
				test.change(read.jobs[0])
				s, err := r.prepare(read.jobs, allocator.Answer{})
				require.NoError(t, err)
				r.set(s, nil)
				f.sync(found)
				time.Sleep(time.Minute)
				require.NoError(t, r.Shutdown(t.Context()))
				assert.Equal(t, test.ended, names(r.sink.AllMetrics(), true))
				assert.Contains(t, names(r.sink.AllMetrics(), false), "up")
			})
		})
	}
}

// names returns the names of the metrics of points that are stale, or not.
func names(all []pmetric.Metrics, stale bool) (out []string) {
	for _, md := range all {
		for _, rm := range md.ResourceMetrics().All() {
			for _, sm := range rm.ScopeMetrics().All() {
				for _, m := range sm.Metrics().All() {
					for _, p := range numbers(m).All() {
						if p.Flags().NoRecordedValue() == stale {
							out = append(out, m.Name())
						}
					}
					if m.Type() == pmetric.MetricTypeHistogram && m.Histogram().DataPoints().At(0).Flags().NoRecordedValue() == stale {
						out = append(out, m.Name())
					}
				}
			}
		}
	}
	slices.Sort(out)
	return out
}
