// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package fastprometheusreceiver

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"math"
	"net/http"
	"net/http/httptest"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/klauspost/compress/zstd"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/consumer/consumertest"

	"github.com/godwit-otel/godwit/internal/racetest"
)

// manyLabels returns a series with this many labels, each with another value.
func manyLabels(n int) string {
	var out strings.Builder
	out.WriteString("crowded{")
	for i := range n {
		fmt.Fprintf(&out, "label_%d=\"value %d\",", i, i)
	}
	out.WriteString("} 1\n")
	return out.String()
}

const (
	typeText        = "text/plain; version=0.0.4"
	typeOpenMetrics = "application/openmetrics-text; version=1.0.0; charset=utf-8"
	typeProtobuf    = "application/vnd.google.protobuf; proto=io.prometheus.client.MetricFamily; encoding=delimited"
)

var hostilePages = func() []trial {
	long := strings.Repeat("x", 64<<10)
	crowd := manyLabels(10_000)
	var all []trial
	in := func(contentType, name, body, reason string, keys ...string) {
		all = append(all, trial{name, strings.Join(keys, "\n"), answers(contentType, body), reason})
	}
	plain := func(name, body, reason string, keys ...string) { in(typeText, name, body, reason, keys...) }

	plain("10000 labels", crowd, "")
	plain("10000 labels, limited", crowd, "limit", "label_limit: 100")
	plain("10000 labels, exactly", crowd, "", "label_limit: 10003") // with name, instance and job
	plain("10000 labels, one too many", crowd, "limit", "label_limit: 10002")
	plain("10000 labels, dropped", crowd, "", "metric_relabel_configs: [{regex: label_.*, action: labeldrop}]", "label_limit: 3")
	plain("long value", "a{b=\""+long+"\"} 1\n", "")
	plain("long value, limited", "a{b=\""+long+"\"} 1\n", "limit", "label_value_length_limit: 65535")
	plain("long value, exactly", "a{b=\""+long+"\"} 1\n", "", "label_value_length_limit: 65536")
	plain("long label", "a{"+long+"=\"b\"} 1\n", "")
	plain("long label, limited", "a{"+long+"=\"b\"} 1\n", "limit", "label_name_length_limit: 65535")
	plain("long label, exactly", "a{"+long+"=\"b\"} 1\n", "", "label_name_length_limit: 65536")
	plain("long name", long+" 1\n", "")
	plain("long name, limited", long+" 1\n", "limit", "label_value_length_limit: 65535")
	plain("long help", "# HELP a "+long+"\na 1\n", "")
	plain("long comment", "# "+strings.Repeat(long, 64)+"\na 1\n", "")
	plain("long number, rounded", "a 0."+strings.Repeat("1", 64<<10)+"\n", "")
	plain("long number, too large", "a 1"+strings.Repeat("0", 64<<10)+"\nb 0."+strings.Repeat("0", 64<<10)+"1\n", "parse")
	plain("long timestamp", "a 1 "+strings.Repeat("9", 64<<10)+"\n", "parse")
	plain("samples at the limit", "a 1\nb 1\n", "", "sample_limit: 2")
	plain("samples beyond the limit", "a 1\nb 1\n", "limit", "sample_limit: 1")
	plain("samples dropped", "a 1\nb 1\n", "", "sample_limit: 1", "metric_relabel_configs: [{source_labels: [__name__], regex: b, action: drop}]")
	plain("body at the limit", "a 1\n", "body_size", "body_size_limit: 4B")
	plain("body within the limit", "a 1\n", "", "body_size_limit: 5B")

	plain("NUL in a value", "a{b=\"\x00\"} 1\n", "")
	plain("NUL in help", "# HELP a \x00b\na 1\n", "")
	plain("NUL in a name", "a\x00b 1\n", "parse")
	plain("NUL in a label", "a{b\x00=\"c\"} 1\n", "parse")
	plain("NUL behind a value", "a 1\x00\n", "parse")
	plain("NUL in front", "\x00a 1\n", "") // at which Prometheus ends the page
	plain("only NUL", strings.Repeat("\x00", 100), "")
	plain("bad UTF-8 in a value", "a{b=\"\xc3\x28\"} 1\n", "parse")
	plain("bad UTF-8 in help", "# HELP a \xff\na 1\n", "parse")
	plain("bad UTF-8 in a name", "{\"\xff\"} 1\n", "parse")
	plain("bad UTF-8 in a label", "a{\"\xff\"=\"b\"} 1\n", "parse")
	plain("half a rune at the end of a value", "a{b=\"\xe2\x82\"} 1\n", "parse")
	plain("byte order mark", "\xef\xbb\xbfa 1\n", "parse")
	plain("UTF-16", "a\x00 \x001\x00\n\x00", "parse")
	plain("CRLF", "a 1\r\nb 1\r\n", "parse")
	plain("CRLF of a comment", "# TYPE a counter\r\na 1\n", "parse")
	plain("CR in a value", "a{b=\"\r\"} 1\n", "")
	plain("vertical tab", "a\v1\n", "parse")

	plain("empty", "", "")
	plain("only comments", "# a\n#b\n#\n", "")
	plain("no end of line", "a 1\nb 2", "")
	plain("cut in a label", "a 1\nb{c=\"d", "parse")
	plain("cut in a number", "a 1\nb ", "parse")
	plain("open braces", strings.Repeat("{", 64<<10), "parse")
	plain("only quotes", strings.Repeat("\"", 64<<10), "parse")
	plain("only backslashes", "a{b=\""+strings.Repeat("\\", 64<<10)+"\"} 1\n", "")
	plain("two labels of a name", "a{b=\"1\",b=\"2\"} 1\n", "parse")
	plain("no name", "{a=\"b\"} 1\n", "parse")
	plain("an empty name", "{\"\"} 1\n", "parse")
	plain("an empty label", "a{\"\"=\"b\"} 1\n", "parse")
	plain("name as a label", "a{__name__=\"b\"} 1\n", "parse")
	plain("labels of the target's", "a{job=\"x\",instance=\"y\"} 1\n", "")
	plain("labels of the target's, honored", "a{job=\"x\",instance=\"y\"} 1\n", "", "honor_labels: true")
	plain("unknown type", "# TYPE a goose\na 1\n", "parse")
	plain("numbers", "a 1e999\nb -1e999\nc 1e-999\nd NaN\ne nan\nf -Inf\ng +inf\nh 0x10\ni 1_0\n", "parse")
	plain("extreme numbers", "a 1e999\nb -1e999\nc 1e-999\nd NaN\nf -Inf\ng +Inf\nh -0\n", "parse")
	plain("negative timestamp", "a 1 -5\n", "parse")
	plain("timestamp of the year 10000000", "a 1 9223372036854775807\nb 1\n", "")
	plain("timestamp beyond what there is", "a 1 9223372036854775808\nb 1\n", "parse")
	plain("timestamp of long ago", "a 1 0\nb 1\n", "")
	plain("le that is no number", "# TYPE h histogram\nh_bucket{le=\"x\"} 1\nh_bucket{le=\"\"} 1\nh_bucket 1\nh_count 1\nh_sum 1\n", "")
	plain("quantile that is no number", "# TYPE s summary\ns{quantile=\"x\"} 1\ns_count 1\ns_sum 1\n", "")

	const om = "# TYPE a counter\na_total 1\n"
	in(typeOpenMetrics, "OpenMetrics", om+"# EOF\n", "")
	in(typeOpenMetrics, "OpenMetrics without end", om, "parse")
	in(typeOpenMetrics, "OpenMetrics after its end", om+"# EOF\nb 1\n", "parse")
	in(typeOpenMetrics, "OpenMetrics with two ends", om+"# EOF\n# EOF\n", "parse")
	in(typeOpenMetrics, "OpenMetrics with CRLF", "a_total 1\r\n# EOF\r\n", "parse")
	in(typeOpenMetrics, "OpenMetrics, empty", "", "")
	in(typeOpenMetrics, "OpenMetrics, exemplar of 64 KiB", "# TYPE a counter\na_total 1 # {b=\""+long+"\"} 1\n# EOF\n", "")
	in(typeOpenMetrics, "OpenMetrics, bad exemplar", "# TYPE a counter\na_total 1 # {b=\"c\"\n# EOF\n", "parse")

	in(typeProtobuf, "protobuf, empty", "", "")
	in(typeProtobuf, "protobuf that is text", om, "parse")
	in(typeProtobuf, "protobuf of 2^63 bytes", "\xff\xff\xff\xff\xff\xff\xff\xff\x7f", "parse")
	in(typeProtobuf, "protobuf, endless length", strings.Repeat("\xff", 100), "parse")
	in(typeProtobuf, "protobuf, cut", "\x7f\x0a\x01a", "parse")
	in(typeProtobuf, "protobuf, empty families", strings.Repeat("\x00", 1000), "")
	in(typeProtobuf, "protobuf, family without name", "\x04\x18\x01\x22\x00", "parse")

	in("", "no type", "a 1\n", "")
	in("text/html", "HTML", "<!doctype html>\n<p>Honk\n", "parse")
	in("text/html", "text called HTML", "a 1\n", "")
	in("application/json", "JSON", "{\"a\": 1}\n", "parse")
	in("text/plain; version=9.9.9", "version of text that is not there", "a 1\n", "")
	in("application/openmetrics-text", "OpenMetrics without version", om+"# EOF\n", "")
	in("application/openmetrics-text; version=9.9.9", "version of OpenMetrics that is not there", om+"# EOF\n", "")
	in("text/plain; version=0.0.4; version=1.0.0", "two versions", "a 1\n", "")
	in(";;;", "no type at all", "a 1\n", "")
	in(long[:32<<10], "type of 32 KiB", "a 1\n", "")
	in("application/vnd.google.protobuf", "some protobuf", "a 1\n", "parse")
	in("text/html", "HTML taken for OpenMetrics", om+"# EOF\n", "", "fallback_scrape_protocol: OpenMetricsText1.0.0")
	in("text/html", "HTML taken for OpenMetrics, without end", om, "parse", "fallback_scrape_protocol: OpenMetricsText1.0.0")
	in("text/html", "HTML taken for protobuf", om, "parse", "fallback_scrape_protocol: PrometheusProto")
	for _, coding := range []string{"utf-8", "text/plain; version=0.0.4", "none", "identity", "\"gzip\""} {
		all = append(all, trial{"encoding " + coding, "", func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Encoding", coding)
			answers(typeText, "a 1\n")(w, r)
		}, ""})
	}
	all = append(all, trial{"folded header", "", func(w http.ResponseWriter, _ *http.Request) {
		conn, _, err := http.NewResponseController(w).Hijack()
		if err != nil {
			return
		}
		defer conn.Close()
		fmt.Fprint(conn, "HTTP/1.1 200 OK\r\nContent-Type: text/plain;\r\n version=0.0.4\r\nContent-Length: 4\r\n\r\na 1\n")
	}, ""})
	return all
}()

// Hostile pages give the same result as in the Collector's receiver.
func TestHostilePagesLikeTheCollectors(t *testing.T) {
	racetest.Sequential(t)
	compareWithTheirs(t, hostilePages)
}

// compressed returns a response with an encoded page.
func compressed(t *testing.T, encoding, page string) http.HandlerFunc {
	t.Helper()
	var body bytes.Buffer
	if encoding == "gzip" {
		w := gzip.NewWriter(&body)
		_, err := w.Write([]byte(page))
		require.NoError(t, err)
		require.NoError(t, w.Close())
	} else {
		w, err := zstd.NewWriter(&body)
		require.NoError(t, err)
		_, err = w.Write([]byte(page))
		require.NoError(t, err)
		require.NoError(t, w.Close())
	}
	return func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Encoding", encoding)
		answers(typeText, body.String())(w, r)
	}
}

// Hostile pages take no more memory than a large valid page, the first time and later, and it does not add up.
func TestHostilePagesCostWhatTheyWeigh(t *testing.T) {
	racetest.Sequential(t)
	const (
		// The limits of allocations per scrape, including garbage and the target's side, and of memory that remains
		// after all.
		most, rest = 64 << 20, 64 << 20
		times      = 3
		limited    = "body_size_limit: 1MB"
	)
	huge := strings.Repeat("a 1\n", 8<<20)
	all := append([]trial{
		{"gzip bomb", limited, compressed(t, "gzip", huge), "body_size"},
		{"zstd bomb", limited, compressed(t, "zstd", huge), "body_size"},
		{"gzip bomb of one line", limited, compressed(t, "gzip", strings.Repeat("a", len(huge))), "body_size"},
		{"zstd bomb of one line", limited, compressed(t, "zstd", strings.Repeat("a", len(huge))), "body_size"},
		{"never ending", limited, func(w http.ResponseWriter, _ *http.Request) {
			for err := error(nil); err == nil; {
				_, err = w.Write([]byte(huge[:64<<10]))
			}
		}, "body_size"},
		{"other names each time", "", func(w http.ResponseWriter, r *http.Request) {
			answers(typeText, distinctNames(5_000, int(time.Now().UnixNano())))(w, r)
		}, ""},
	}, hostilePages...)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if i, err := strconv.Atoi(strings.TrimPrefix(r.URL.Path, "/")); err == nil {
			all[i].answer(w, r)
		}
	}))
	defer server.Close()
	var config strings.Builder
	config.WriteString("initial_scrape_offset: 1h\nconfig:\n  global: {scrape_interval: 1m, scrape_timeout: 1m}\n  scrape_configs:\n")
	for i, one := range all {
		fmt.Fprintf(&config, "    - job_name: job%d\n      metrics_path: /%d\n      static_configs: [{targets: [%q]}]\n", i, i, strings.TrimPrefix(server.URL, "http://"))
		config.WriteString("      " + strings.ReplaceAll(one.keys, "\n", "\n      ") + "\n")
	}
	r := run(t, config.String(), withConsumer(consumertest.NewNop()), withoutTraces)
	require.Eventually(t, func() bool { return r.census()[stateUnknown] == len(all) }, patience, glance)
	before := heap()
	for i, one := range all {
		target := r.targetOf(fmt.Sprint("job", i))
		for n := range times {
			allocated := totalAlloc()
			target.scrape(time.Now())
			allocated = totalAlloc() - allocated
			require.Equal(t, one.reason, target.status.reason, "%s: %v", one.name, target.status.err)
			assert.LessOrEqual(t, allocated, uint64(most), "%s, scrape %d", one.name, n)
		}
	}
	stays := heap() - before
	t.Logf("%d KiB stay of %d targets", stays>>10, len(all))
	assert.LessOrEqual(t, stays, int64(rest))
}

func totalAlloc() uint64 {
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.TotalAlloc
}

// distinctNames returns a page of metrics with one series each, without labels.
func distinctNames(n, first int) string {
	var out strings.Builder
	for i := range n {
		fmt.Fprintf(&out, "m%x 1\n", first+i)
	}
	return out.String()
}

// New names cost more than new label values, but not as if each were compared with all others.
func TestManyNamesTakeTheirTime(t *testing.T) {
	racetest.Sequential(t)
	const series = 40_000
	var values strings.Builder
	for i := range series {
		fmt.Fprintf(&values, "m{i=\"%x\"} 1\n", i)
	}
	took := func(page string) time.Duration {
		target := still(t, "", canned(t, "", []byte(page)))
		began := time.Now()
		target.scrape(time.Now())
		took := time.Since(began)
		require.Equal(t, series, target.status.samples)
		return took
	}
	few, many := time.Duration(math.MaxInt64), time.Duration(math.MaxInt64)
	const most = 8 // it is four on an idle machine, and hundreds if each name were compared with all others
	for range 20 { // on a busy machine, the least of many is what it takes
		few, many = min(few, took(values.String())), min(many, took(distinctNames(series, 0)))
		t.Logf("%v for values, %v for names", few, many)
		if many < most*few {
			return
		}
	}
	assert.Less(t, many, most*few)
}

// A page that would take more memory than one page may is rejected, however small it is. Another page, twice as long,
// may be accepted.
func TestPagesBeyondTheirMemoryFail(t *testing.T) {
	const key, series = "max_page_memory: 8388608\n", 20_000
	names := distinctNames(series, 1<<20)
	target := still(t, key, canned(t, "", []byte(names)))
	target.scrape(time.Now())
	require.Equal(t, reasonPageMemory, target.status.reason)
	require.Equal(t, stateFailing, target.status.state)
	require.ErrorContains(t, target.status.err, "`max_page_memory` allows (8388608 bytes)")
	i, known := slices.BinarySearch(reasons[:], reasonPageMemory)
	require.True(t, known)
	require.Equal(t, int64(1), target.job.owner.counters.failures[i].Load())

	values := "m{i=\"" + strings.Repeat("x", 2*len(names)) + "\"} 1\n"
	target = still(t, key, canned(t, "", []byte(values)))
	target.scrape(time.Now())
	require.NoError(t, target.status.err)
}
