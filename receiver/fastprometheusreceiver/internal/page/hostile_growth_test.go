// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package page

import (
	"fmt"
	"strings"
	"testing"

	promconfig "github.com/prometheus/prometheus/config"
	dto "github.com/prometheus/prometheus/prompb/io/prometheus/client"
	"github.com/stretchr/testify/require"

	"github.com/godwit-otel/godwit/internal/racetest"
	"github.com/godwit-otel/godwit/receiver/fastprometheusreceiver/internal/growthtest"
)

// times concatenates n generated texts.
func times(n int, f func(i int) string) string {
	var b strings.Builder
	for i := range n {
		b.WriteString(f(i))
	}
	return b.String()
}

func protoLabels(n int) (all []dto.LabelPair) {
	for i := range n {
		all = append(all, dto.LabelPair{Name: fmt.Sprint("l", i), Value: fmt.Sprint("v", i)})
	}
	return all
}

func protoHistogram(h *dto.Histogram, ls ...dto.LabelPair) string {
	h.SampleSum, h.ZeroThreshold = 1, 1
	return framed(&dto.MetricFamily{Name: "h", Type: dto.MetricType_HISTOGRAM, Metric: []dto.Metric{{Label: ls, Histogram: h}}})
}

// Reading a page, the first time and later, takes time in proportion to its length, whatever there is much of: labels
// of a series, families, metadata, exemplars and their labels, buckets and spans.
func TestPagesTakeAsLongAsTheyAreLong(t *testing.T) {
	racetest.Sequential(t)
	const labelRules = "  metric_relabel_configs:\n  - {regex: 'l.*[05]', action: labeldrop}\n  - {regex: 'l.*[16]', action: labeldrop}\n" +
		"  - {regex: 'l(.*)[27]', replacement: 'm$1', action: labelmap}\n  - {regex: 'm(.*)', replacement: 'k$1', action: labelmap}\n" +
		"  - {source_labels: [l3, m3], target_label: n}\n  - {regex: 'l.*[49]', action: labeldrop}\n"
	labels := func(n int, name string) string {
		return times(n, func(i int) string { return fmt.Sprintf("%s%d=\"v%d\",", name, i, i) })
	}
	for _, k := range []struct {
		name, media, job string
		n                int
		page             func(n int) string
	}{
		{"labels", typeText, "", 1000, func(n int) string { return "a{" + labels(n, "l") + "} 1\n" }},
		{"labels of several series", typeText, "", 100, func(n int) string {
			return times(10, func(i int) string { return fmt.Sprintf("a{x=\"%d\",%s} 1\n", i, labels(n, "l")) })
		}},
		{"labels that rules are about", typeText, labelRules, 500, func(n int) string { return "a{" + labels(n, "l") + "} 1\n" }},
		{"labels, limited", typeText, "  label_name_length_limit: 100\n  label_value_length_limit: 100\n", 1000, func(n int) string { return "a{" + labels(n, "l") + "} 1\n" }},
		{"labels in OpenMetrics", typeOM, "", 1000, func(n int) string { return "a{" + strings.TrimSuffix(labels(n, "l"), ",") + "} 1\n# EOF\n" }},
		{"labels in protobuf", typeProto, "", 1000, func(n int) string {
			return framed(&dto.MetricFamily{Name: "g", Type: dto.MetricType_GAUGE, Metric: []dto.Metric{{Label: protoLabels(n), Gauge: &dto.Gauge{Value: 1}}}})
		}},
		{"labels of a native histogram", typeProto, "", 1000, func(n int) string {
			return protoHistogram(&dto.Histogram{SampleCount: 1, PositiveSpan: []dto.BucketSpan{{Length: 1}}, PositiveDelta: []int64{1}}, protoLabels(n)...)
		}},
		{"labels of a scope", typeText, "", 1000, func(n int) string { return "a{" + labels(n, "otel_scope_x") + "} 1\n" }},
		{"labels of the target", typeText, "", 1000, func(n int) string { return "target_info{" + labels(n, "l") + "} 1\na 1\n" }},
		{"infos of the target", typeText, "", 200, func(n int) string {
			return times(n, func(i int) string { return fmt.Sprintf("target_info{l%d=\"v\"} 1\n", i) }) + "a 1\n"
		}},
		{"labels that are there twice", typeText, "", 1000, func(n int) string { return "a{" + labels(n, "l") + labels(n, "l") + "} 1\n" }},
		{"labels like the target's", typeText, "", 100, func(n int) string {
			return "a{" + times(n, func(i int) string { return fmt.Sprintf("job%d=\"\",", i) }) + "job=\"x\"} 1\n"
		}},
		{"escapes", typeText, "", 5000, func(n int) string { return "a{b=\"" + strings.Repeat("\\n", n) + "\"} 1\n" }},
		{"line breaks", typeText, "", 5000, func(n int) string { return "a{b=\"" + strings.Repeat("\n", n) + "\"} 1\n" }},
		{"NULs", typeText, "", 1000, func(n int) string { return strings.Repeat("# \x00\n", n) }},
		{"types", typeText, "", 200, func(n int) string {
			return times(n, func(i int) string { return fmt.Sprintf("# TYPE m%d gauge\n", i) })
		}},
		{"types of one family", typeText, "", 500, func(n int) string {
			return times(n, func(i int) string { return "# TYPE m " + []string{"gauge", "counter"}[i%2] + "\nm 1\n" })
		}},
		{"helps of one family", typeText, "", 200, func(n int) string {
			return times(n, func(i int) string { return fmt.Sprintf("# HELP m h%d\nm 1\n", i) })
		}},
		{"types and samples in turn", typeText, "", 200, func(n int) string {
			return times(n, func(i int) string { return fmt.Sprintf("# TYPE m%d counter\nm%d{a=\"1\"} 1\nm 1\n", i, i) })
		}},
		{"scopes", typeText, "", 200, func(n int) string {
			return times(n, func(i int) string { return fmt.Sprintf("a{otel_scope_name=\"%d\"} 1\n", i) })
		}},
		{"resources", typeText, "  honor_labels: true\n", 200, func(n int) string { return times(n, func(i int) string { return fmt.Sprintf("a{job=\"%d\"} 1\n", i) }) }},
		{"duplicates", typeText, "", 1000, func(n int) string { return strings.Repeat("a 1\n", n) }},
		{"duplicates by relabelling", typeText, "  metric_relabel_configs: [{regex: x, action: labeldrop}]\n", 200, func(n int) string {
			return times(n, func(i int) string { return fmt.Sprintf("a{x=\"%d\"} 1\n", i) })
		}},
		{"times of a series", typeText, "", 200, func(n int) string { return times(n, func(i int) string { return fmt.Sprintf("a 1 %d\n", i) }) }},
		{"buckets", typeText, "", 200, func(n int) string {
			return "# TYPE h histogram\n" + times(n, func(i int) string { return fmt.Sprintf("h_bucket{le=\"%d\"} %d\n", i, i) }) + fmt.Sprintf("h_count %d\n", n)
		}},
		{"buckets, falling", typeText, "", 200, func(n int) string {
			return "# TYPE h histogram\n" + times(n, func(i int) string { return fmt.Sprintf("h_bucket{le=\"%d\"} %d\n", n-i, i) }) + fmt.Sprintf("h_count %d\n", n)
		}},
		{"buckets of one bound", typeText, "", 200, func(n int) string {
			return "# TYPE h histogram\n" + times(n, func(i int) string { return fmt.Sprintf("h_bucket{le=\"1.%s\"} 1\n", strings.Repeat("0", i%100)) }) + "h_count 1\n"
		}},
		{"quantiles", typeText, "", 200, func(n int) string {
			return "# TYPE s summary\n" + times(n, func(i int) string { return fmt.Sprintf("s{quantile=\"%d\"} 1\n", i) }) + "s_count 1\n"
		}},
		{"exemplars", typeOM, "", 200, func(n int) string {
			return "# TYPE a counter\n" + times(n, func(i int) string { return fmt.Sprintf("a_total{b=\"%d\"} 1 # {trace_id=\"%032x\"} 1\n", i, i) }) + "# EOF\n"
		}},
		{"exemplars of a series", typeOM, "", 200, func(n int) string {
			return "# TYPE a counter\n" + times(n, func(i int) string { return fmt.Sprintf("a_total 1 %d # {c=\"%d\"} 1\n", i, i) }) + "# EOF\n"
		}},
		{"labels of an exemplar", typeOM, "", 1000, func(n int) string {
			return "# TYPE a counter\na_total 1 # {" + strings.TrimSuffix(labels(n, "l"), ",") + "} 1\n# EOF\n"
		}},
		{"spans", typeProto, "", 500, func(n int) string {
			h := &dto.Histogram{SampleCount: uint64(n), Schema: 1}
			for range n {
				h.PositiveSpan = append(h.PositiveSpan, dto.BucketSpan{Offset: 1, Length: 1})
				h.PositiveDelta = append(h.PositiveDelta, 0)
			}
			h.PositiveDelta[0] = 1
			return protoHistogram(h)
		}},
		{"empty spans", typeProto, "", 500, func(n int) string {
			h := &dto.Histogram{SampleCount: 1, Schema: 1, PositiveSpan: make([]dto.BucketSpan, n)}
			h.PositiveSpan = append(h.PositiveSpan, dto.BucketSpan{Length: 1})
			h.PositiveDelta = []int64{1}
			return protoHistogram(h)
		}},
		{"empty buckets", typeProto, "", 1000, func(n int) string {
			h := &dto.Histogram{SampleCount: uint64(n), Schema: 1, PositiveSpan: []dto.BucketSpan{{Length: uint32(2 * n)}}}
			for range n {
				h.PositiveDelta = append(h.PositiveDelta, 1, -1)
			}
			return protoHistogram(h)
		}},
		{"empty buckets of floats", typeProto, "", 1000, func(n int) string {
			h := &dto.Histogram{SampleCountFloat: float64(n), Schema: 1, PositiveSpan: []dto.BucketSpan{{Length: uint32(2 * n)}}}
			for range n {
				h.PositiveCount = append(h.PositiveCount, 1, 0)
			}
			return protoHistogram(h)
		}},
		{"buckets that are limited", typeProto, "  native_histogram_bucket_limit: 10\n", 500, func(n int) string {
			h := &dto.Histogram{SampleCount: uint64(n), Schema: 8, PositiveSpan: []dto.BucketSpan{{Length: uint32(n)}}, PositiveDelta: make([]int64, n)}
			h.PositiveDelta[0] = 1
			return protoHistogram(h)
		}},
		{"exemplars of a native histogram", typeProto, "", 200, func(n int) string {
			h := &dto.Histogram{SampleCount: 1, Schema: 1, PositiveSpan: []dto.BucketSpan{{Length: 1}}, PositiveDelta: []int64{1}}
			for i := range n {
				h.Exemplars = append(h.Exemplars, &dto.Exemplar{Value: float64(i), Label: protoLabels(1)})
			}
			return protoHistogram(h)
		}},
		{"families in protobuf", typeProto, "", 100, func(n int) string {
			return times(n, func(i int) string { return nativeOf(fmt.Sprintf("h%d", i), 3, 1) })
		}},
	} {
		t.Run(k.name, func(t *testing.T) {
			cfg := scrapeConfig(t, "  scrape_native_histograms: true\n"+k.job)
			growthtest.RequireLinear(t, k.n, func(n int) func() {
				page := []byte(k.page(n))
				return func() {
					target := testTarget(newTestJob(t, Config{Scrape: cfg}), 1)
					for range 2 {
						for r := showBytes(target, start, k.media, page); r.Pending() > 0; {
							r = r.Next()
						}
					}
					target.Retire(start)
				}
			})
		})
	}
}

// scrapeConfig parses a job's configuration, indented as in a file.
func scrapeConfig(t testing.TB, text string) *promconfig.ScrapeConfig {
	t.Helper()
	c, err := promconfig.Load("scrape_configs:\n- job_name: j\n"+text, nil)
	require.NoError(t, err)
	cfg := c.ScrapeConfigs[0]
	cfg.ScrapeFallbackProtocol = promconfig.PrometheusText0_0_4
	return cfg
}
