// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package page

import (
	"testing"

	"github.com/godwit-otel/godwit/internal/racetest"
)

const node = `# HELP up_total How often.
# TYPE up_total counter
up_total{a="b"} 3
up_total{a="c"} 4.5
# HELP temp Degrees.
# TYPE temp gauge
temp -2e-3
temp{room="x",empty=""} NaN
# TYPE lat histogram
lat_bucket{m="g",le="1"} 1
lat_bucket{m="g",le="2.5"} 3
lat_bucket{m="g",le="+Inf"} 4
lat_sum{m="g"} 7.5
lat_count{m="g"} 4
# TYPE req summary
req{quantile="0.5"} 1
req{quantile="0.99"} 2
req_sum 10
req_count 5
bare 1
# TYPE x untyped
x{b="1",a="2"} +Inf
`

const om = `# TYPE foo counter
# HELP foo Foos.
foo_total{a="b"} 17.0 # {trace_id="0102030405060708090a0b0c0d0e0f10",span_id="0102030405060708",k="v"} 0.5 1520879607.789
foo_created{a="b"} 1520872607.123
# TYPE lat_seconds histogram
# UNIT lat_seconds seconds
lat_seconds_bucket{le="0.1"} 1 # {trace_id="ab"} 0.05
lat_seconds_bucket{le="1.0"} 2 # {a="b"} 0.5 1520879607.1
lat_seconds_bucket{le="+Inf"} 3
lat_seconds_count 3
lat_seconds_sum 2.5
lat_seconds_created 1520872607.123
# TYPE build info
build_info{version="1"} 1
# TYPE state stateset
state{state="on"} 1
state{state="off"} 0
# TYPE q summary
q{quantile="0.5"} 1
q_count 2
q_sum 3
q_created 100.5
# TYPE gh gaugehistogram
gh_bucket{le="1"} 1
gh_bucket{le="+Inf"} 1
gh_gsum 3
gh_gcount 1
# TYPE u unknown
u 1 1520879607.789
# EOF
`

func TestRulesAgainstStock(t *testing.T) {
	racetest.Sequential(t)
	rel := func(s string) string { return "metric_relabel_configs:\n" + s }
	compareWithStock(t, receiverOptions{}, []sequence{
		{name: "text", media: typeText, pages: []string{node, node, node}},
		{name: "openmetrics", media: typeOM, pages: []string{om, om, om}},
		{name: "target labels", media: typeText, pages: []string{node, node}, labels: map[string]string{"zone": "z1", "a": "target", "le": "x"}},
		{
			name: "honor labels", media: typeText, job: "honor_labels: true", labels: map[string]string{"zone": "z1", "a": "target"},
			pages: []string{node + "f{job=\"j\",instance=\"i:80\"} 1\nf{job=\"j2\"} 1\nf{instance=\"i2\",zone=\"q\"} 2\n", node, node + "f{job=\"j\",instance=\"i:80\"} 1\n"},
		},
		{name: "exported", media: typeText, pages: []string{"a{job=\"x\",instance=\"y\",exported_job=\"z\"} 1\n", "a{job=\"x\",instance=\"y\"} 1\n"}},
		{name: "vanish", media: typeText, pages: []string{"# TYPE c counter\nc{a=\"1\"} 1\nc{a=\"2\"} 2\n", "# TYPE c counter\nc{a=\"1\"} 1\n", "# TYPE c counter\nc{a=\"1\"} 1\nc{a=\"2\"} 2\n", "", node, node}},
		{name: "vanish histogram", media: typeText, pages: []string{node, "bare 1\n", "bare 2\n", node}},
		{name: "failures", media: typeText, pages: []string{node, errorPage, errorPage, node, node, "bad{ 1\n", node}},
		{name: "type after samples", media: typeText, pages: []string{"foo 1\n# TYPE foo counter\n", "foo 1\n# TYPE foo counter\n", "foo 1\n# TYPE foo counter\n"}},
		{name: "type changes", media: typeText, pages: []string{"# TYPE foo gauge\nfoo 1\n", "# TYPE foo counter\nfoo 1\n", "# TYPE foo counter\nfoo 1\n", "foo 1\n", "foo 2\n"}},
		{name: "metadata lingers", media: typeText, pages: []string{
			"# TYPE foo counter\nfoo 1\n", "foo 1\n", "foo 1\n", "foo 1\n", "foo 1\n", "foo 1\n", "foo 1\n", "foo 1\n", "foo 1\n",
			"foo 1\n", "foo 1\n", "foo 1\n", "foo 1\n", "foo 1\n",
		}},
		{name: "split families", media: typeText, pages: []string{"# TYPE a counter\na{x=\"1\"} 1\n# TYPE b gauge\nb 1\na{x=\"2\"} 1\n", "a{x=\"2\"} 1\nb 1\na{x=\"1\"} 1\n"}},
		{name: "duplicates", media: typeText, pages: []string{"a 1\na 2\nb{x=\"1\",y=\"2\"} 1\nb{y=\"2\",x=\"1\"} 2\n", "a 1\na 2\nb{x=\"1\",y=\"2\"} 1\nb{y=\"2\",x=\"1\"} 2\n", "a 3\n", "b{y=\"2\",x=\"1\"} 2\n", "b{x=\"1\",y=\"2\"} 1\n"}},
		{name: "timestamps", media: typeText, pages: []string{"a 1 1000\nb 2\n", "a 1 2000\nb 2\n", "b 2\n", "a 1 5000\n"}},
		{name: "timestamps tracked", media: typeText, job: "track_timestamps_staleness: true", pages: []string{"a 1 1000\nb 2\n", "a 1 2000\nb 2\n", "b 2\n", "a 1 5000\n", "b 1\n"}},
		{name: "timestamps not honored", media: typeText, job: "honor_timestamps: false", pages: []string{"a 1 1000\nb 2\n", "a 1 2000\nb 2\n", "b 2\n"}},
		{name: "histogram timestamps", media: typeText, pages: []string{"# TYPE h histogram\nh_bucket{le=\"1\"} 1 1000\nh_sum 1 1000\nh_count 1 1000\n", "# TYPE h histogram\nh_bucket{le=\"1\"} 1 1000\nh_sum 1 1000\nh_count 1 1000\n"}},
		{name: "future", media: typeText, pages: []string{"a 1 99999999999999\nb 2\n", "a 1 99999999999999\nb 2\n", "b 2\n", "a 1\n"}},
		{name: "target_info", media: typeText, pages: []string{"target_info{a=\"b\",service_name=\"x\"} 1\nfoo 1\n", "foo 1\ntarget_info{a=\"c\"} 1\n", "foo 1\n"}, labels: map[string]string{"zone": "z"}},
		{name: "scopes", media: typeText, pages: []string{"foo{otel_scope_name=\"s\",otel_scope_version=\"1\",otel_scope_x=\"y\",a=\"b\"} 1\nfoo{otel_scope_name=\"t\",otel_scope_schema_url=\"u\"} 1\nfoo 2\notel_scope_info{otel_scope_name=\"s\"} 1\nfoo{otel_scope_name=\"\"} 3\n", "foo{otel_scope_name=\"t\",otel_scope_schema_url=\"u\"} 1\n"}},
		{name: "no count", media: typeText, pages: []string{"# TYPE h histogram\nh_bucket{le=\"1\"} 1\nh_sum 1\n# TYPE s summary\ns{quantile=\"0.5\"} 1\n", "b 1\n", "# TYPE h histogram\nh_count 1\n# TYPE s summary\ns_count 2\n", "# TYPE h histogram\nh_count 1\nh_bucket 1\nh_bucket{le=\"x\"} 1\n", "# TYPE h histogram\nh_count 1\n"}},
		{name: "drop", media: typeText, job: rel("- {source_labels: [__name__], regex: 'lat.*', action: drop}"), pages: []string{node, node, node}},
		{name: "relabel target label", media: typeText, job: rel("- {source_labels: [zone, a], target_label: both}\n- {regex: room, action: labeldrop}"), labels: map[string]string{"zone": "z1", "rack": "r"}, pages: []string{node, node}},
		{name: "labelmap", media: typeText, job: rel("- {regex: 'zo(.*)', replacement: 'xx$1', action: labelmap}"), labels: map[string]string{"zone": "z1", "rack": "r"}, pages: []string{node, node}},
		{name: "labelkeep", media: typeText, job: rel("- {regex: '__name__|le|quantile|rack', action: labelkeep}"), labels: map[string]string{"zone": "z1", "rack": "r"}, pages: []string{node, node}},
		{name: "relabel job", media: typeText, job: rel("- {source_labels: [a], regex: b, target_label: job, replacement: other}"), pages: []string{node, node}},
		{name: "sample limit", media: typeText, job: "sample_limit: 5", pages: []string{"a 1\n", errorPage, node}},
		{name: "label limit", media: typeText, job: "label_limit: 4", pages: []string{"a 1\n", "b{a=\"1\",b=\"2\",c=\"3\"} 1\n", "a 1\n"}},
		{name: "label name length", media: typeText, job: "label_name_length_limit: 9", pages: []string{"a 1\n", "b{abcdefghij=\"1\"} 1\n", "a 1\n"}},
		{name: "label value length", media: typeText, job: "label_value_length_limit: 25", pages: []string{"a 1\n", "b{x=\"abcdefghijklmnopqrstuvwxyz\"} 1\n", "a 1\n"}},
		{name: "duplicate label", media: typeText, pages: []string{"a 1\n", "b{x=\"1\",x=\"2\"} 1\n", "a 1\n"}},
		{name: "utf8", media: typeText, pages: []string{"{\"a.b\",\"c d\"=\"e\\n\\\"f\"} 1\n", "# TYPE \"a.b\" counter\n{\"a.b\",\"c d\"=\"e\"} 1\n"}},
		{name: "legacy names", media: typeText, job: "metric_name_validation_scheme: legacy\nmetric_name_escaping_scheme: underscores", pages: []string{"a 1\n", "{\"a.b\"} 1\n", "a 1\n"}},
		{name: "up exposed", media: typeText, pages: []string{"up 7\nup{a=\"b\"} 3\nscrape_samples_scraped 9\n", "up 7\nup{a=\"b\"} 3\n", "foo 1\n"}},
		{name: "extra metrics", media: typeText, job: "extra_scrape_metrics: true\nsample_limit: 100", pages: []string{"a 1\n", errorPage, "a 1\n"}},
		{name: "created in text", media: typeText, pages: []string{"# TYPE h histogram\nh_bucket{le=\"1\"} 1\nh_count 1\nh_created 12.5\n# TYPE c counter\nc_total 1\nc_created 5\n"}},
		{name: "wrong type", media: "image/png", pages: []string{"a 1\n"}},
		{name: "no eof", media: typeOM, pages: []string{om[:len(om)-6]}},
		{name: "buckets out of order", media: typeText, pages: []string{"# TYPE h histogram\nh_bucket{le=\"+Inf\"} 5\nh_bucket{le=\"2\"} 3\nh_bucket{le=\"1\"} 1\nh_count 5\nh_sum 2\n"}},
		{name: "blank lines", media: typeText, pages: []string{"\n\n  \n# comment\n#\n a 1\n\tb{ x = \"1\" , } 2 \n", "a 1"}},
		{name: "line break in value", media: typeText, pages: []string{"a{x=\"1\n2\"} 1\n", "a{x=\"1\n2\"} 2\nb 1\n", "a{x=\"1\n2\"} 2\nb 1\n"}},
		{name: "nhcb", media: typeText, job: "convert_classic_histograms_to_nhcb: true", pages: []string{node, node}},
		{name: "nhcb classic too", media: typeOM, job: "convert_classic_histograms_to_nhcb: true\nalways_scrape_classic_histograms: true", pages: []string{om, om}},
	})
}

func TestExternalLabelsAgainstStock(t *testing.T) {
	racetest.Sequential(t)
	compareWithStock(t, receiverOptions{external: "{zone: ext, a: over, cluster: c}"}, []sequence{
		{name: "text", media: typeText, pages: []string{node, node, "bare 1\n"}, labels: map[string]string{"zone": "z1"}},
	})
}

func TestTrimmedSuffixesAgainstStock(t *testing.T) {
	racetest.Sequential(t)
	compareWithStock(t, receiverOptions{trim: true}, []sequence{
		{name: "text", media: typeText, pages: []string{node, node}},
		{name: "openmetrics", media: typeOM, pages: []string{om, om}},
	})
}
