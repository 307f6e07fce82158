// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package fastprometheusreceiver

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
)

// goClient serves metrics of every kind in the requested format, using Go's client library.
func goClient() http.Handler {
	registry := prometheus.NewRegistry()
	exemplar := prometheus.Labels{"trace_id": "4bf92f3577b34da6a3ce929d0e0e4736", "flock": "north"}
	at := time.Unix(1_700_000_000, 0)
	counter := prometheus.NewCounterVec(prometheus.CounterOpts{Name: "honks_total", Help: "Honks."}, []string{"flock"})
	counter.WithLabelValues("north").(prometheus.ExemplarAdder).AddWithExemplar(42, exemplar)
	named := prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: "geese.in.flight", Help: "With dots \\ and\nlines."}, []string{"flock.name"})
	named.WithLabelValues("süd").Set(1.5)
	classic := prometheus.NewHistogram(prometheus.HistogramOpts{Name: "wingspan_meters", Help: "Wingspans.", Buckets: []float64{1, 2}})
	native := prometheus.NewHistogram(prometheus.HistogramOpts{Name: "flight_seconds", Help: "Flights.", NativeHistogramBucketFactor: 1.1})
	both := prometheus.NewHistogram(prometheus.HistogramOpts{Name: "both_seconds", Help: "Both.", Buckets: []float64{1, 2}, NativeHistogramBucketFactor: 1.5})
	summary := prometheus.NewSummary(prometheus.SummaryOpts{Name: "feathers", Help: "Feathers.", Objectives: map[float64]float64{0.5: 0.05}})
	for i := range 10 {
		for _, h := range []prometheus.Histogram{classic, native, both} {
			h.(prometheus.ExemplarObserver).ObserveWithExemplar(float64(i), exemplar)
		}
		summary.Observe(float64(i))
	}
	stamped := prometheus.NewMetricWithTimestamp(at, prometheus.MustNewConstMetric(prometheus.NewDesc("stamped", "With a time.", nil, nil), prometheus.UntypedValue, 7))
	registry.MustRegister(counter, named, classic, native, both, summary, fixed{stamped})
	return promhttp.HandlerFor(registry, promhttp.HandlerOpts{EnableOpenMetrics: true})
}

// A fixed metric never changes.
type fixed struct{ prometheus.Metric }

func (f fixed) Describe(to chan<- *prometheus.Desc) { to <- f.Desc() }
func (f fixed) Collect(to chan<- prometheus.Metric) { to <- f.Metric }

const keysOfTheRequest = `params: {"match[]": ["a", "{b=\"c\"}"], empty: [""]}
scrape_timeout: 1500ms
basic_auth: {username: goose, password: "h o:nk"}
http_headers: {X-Flock: {values: [north, south], secrets: [hidden]}}
relabel_configs: [{target_label: __param_module, replacement: "a b&c"}, {target_label: __metrics_path__, replacement: "/${1}", source_labels: [__metrics_path__], regex: "/(.*)"}]`

// With any keys about formats, the request is the same as that of the Collector's receiver, and so is the result.
func TestNegotiatesLikeTheCollectors(t *testing.T) {
	client := goClient()
	var all []trial
	for _, keys := range []string{
		"",
		"scrape_protocols: [PrometheusProto]",
		"scrape_protocols: [OpenMetricsText0.0.1]",
		"scrape_protocols: [OpenMetricsText1.0.0]",
		"scrape_protocols: [PrometheusText0.0.4]",
		"scrape_protocols: [PrometheusText1.0.0]",
		"scrape_protocols: [PrometheusText0.0.4, PrometheusProto, OpenMetricsText1.0.0, OpenMetricsText0.0.1, PrometheusText1.0.0]",
		"scrape_native_histograms: true",
		"scrape_native_histograms: true\nalways_scrape_classic_histograms: true",
		"scrape_native_histograms: true\nscrape_protocols: [PrometheusText0.0.4]",
		"scrape_native_histograms: true\nnative_histogram_bucket_limit: 3",
		"scrape_native_histograms: true\nnative_histogram_min_bucket_factor: 2",
		"convert_classic_histograms_to_nhcb: true",
		"convert_classic_histograms_to_nhcb: true\nscrape_native_histograms: true\nalways_scrape_classic_histograms: true",
		"fallback_scrape_protocol: OpenMetricsText1.0.0",
		"fallback_scrape_protocol: PrometheusProto",
		"metric_name_validation_scheme: legacy",
		"metric_name_validation_scheme: legacy\nmetric_name_escaping_scheme: dots",
		"metric_name_validation_scheme: legacy\nmetric_name_escaping_scheme: values\nscrape_protocols: [PrometheusText1.0.0]",
		"metric_name_escaping_scheme: allow-utf-8\nscrape_protocols: [PrometheusText1.0.0]",
		"metric_name_escaping_scheme: underscores",
		"metric_name_escaping_scheme: dots",
		"metric_name_escaping_scheme: values",
		"metric_name_escaping_scheme: underscores\nscrape_protocols: [PrometheusProto]",
		"metric_name_escaping_scheme: values\nscrape_native_histograms: true",
		"enable_compression: false",
		"honor_timestamps: false",
	} {
		all = append(all, trial{name: strings.ReplaceAll(keys, "\n", " "), keys: keys, answer: client.ServeHTTP})
	}
	// Servers that respond with the last offered type, or with one that was not offered.
	all = append(all,
		trial{"text to who offers protobuf", "scrape_protocols: [PrometheusProto]", answers(typeText, "a 1\n"), ""},
		trial{"OpenMetrics to who offers text", "scrape_protocols: [PrometheusText0.0.4]", answers(typeOpenMetrics, "# TYPE a counter\na_total 1\n# EOF\n"), ""},
		trial{"UTF-8 names to who wants none", "metric_name_validation_scheme: legacy\nmetric_name_escaping_scheme: underscores", answers(typeText, "{\"a.b\"} 1\n"), "parse"},
		trial{"request", keysOfTheRequest, answers(typeText, "a 1\n"), ""},
		trial{"authorization", "authorization: {type: Goose, credentials: honk}", answers(typeText, "a 1\n"), ""},
	)
	compareWithTheirs(t, all)
}
