// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package remotewritereceiver

import (
	"math"
	"strings"
	"testing"

	writev2 "github.com/prometheus/prometheus/prompb/io/prometheus/write/v2"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/consumer/consumertest"

	"github.com/godwit-otel/godwit/internal/promwrite"
)

const (
	unspecified = writev2.Metadata_METRIC_TYPE_UNSPECIFIED
	counter     = writev2.Metadata_METRIC_TYPE_COUNTER
	gauge       = writev2.Metadata_METRIC_TYPE_GAUGE
	histogram   = writev2.Metadata_METRIC_TYPE_HISTOGRAM
	summary     = writev2.Metadata_METRIC_TYPE_SUMMARY
	info        = writev2.Metadata_METRIC_TYPE_INFO
	stateset    = writev2.Metadata_METRIC_TYPE_STATESET
	gaugeHist   = writev2.Metadata_METRIC_TYPE_GAUGEHISTOGRAM
)

// translated sends req through a socket and describes what arrives.
func translated(t *testing.T, req *v2) (answer, []string) {
	t.Helper()
	sink := new(consumertest.MetricsSink)
	got := postV2(t, start(t, settings(), sink), &req.Request)
	var lines []string
	for _, md := range sink.AllMetrics() {
		lines = append(lines, describe(md)...)
	}
	return got, lines
}

func TestFloatSeries(t *testing.T) {
	req := newV2().
		series(sample(5, 2000, 1000), counter, "All of them.", "", "__name__", "http_requests_total", "code", "200", "instance", "a:1", "job", "web").
		series(sample(7, 2000, 0), counter, "All of them.", "", "__name__", "http_requests_total", "code", "500", "instance", "a:1", "job", "web").
		series(sample(0.5, 2000, 0), gauge, "", "seconds", "__name__", "lag_seconds", "instance", "b:1", "job", "ns/web").
		series(sample(9, 2000, 1000), histogram, "", "", "__name__", "rpc_bucket", "le", "+Inf").
		series(sample(9, 2000, 1000), histogram, "", "", "__name__", "rpc_count").
		series(sample(4.5, 2000, 1000), histogram, "", "", "__name__", "rpc_sum").
		series(sample(0.25, 2000, 0), summary, "", "", "__name__", "gc", "quantile", "0.5").
		series(sample(3, 2000, 1000), summary, "", "", "__name__", "gc_count").
		series(sample(1, 2000, 0), info, "", "", "__name__", "target_info", "k8s_pod", "p", "job", "web").
		series(sample(1, 2000, 0), stateset, "", "", "__name__", "state", "state", "on").
		series(sample(1, 2000, 0), gaugeHist, "", "", "__name__", "queue_bucket", "le", "1").
		series(sample(1, 2000, 0), unspecified, "", "", "__name__", "odd", "empty", "").
		series(sample(1, 2000, 0), 99, "", "", "__name__", "future").
		series(sample(math.Float64frombits(promwrite.StaleNaN), 2000, 0), counter, "", "", "__name__", "gone_total").
		series(sample(math.NaN(), 2000, 0), gauge, "", "", "__name__", "nan")
	got, lines := translated(t, req)
	require.Equal(t, 204, got.code, got.body)
	require.Equal(t, promwrite.Written{Samples: 15}, got.written)
	require.Equal(t, strings.Split(strings.TrimSpace(`
{service.instance.id=a:1 service.name=web} http_requests_total{code=200} = sum(true,Cumulative) 5 @1000..2000 (counter, "", "All of them.")
{service.instance.id=a:1 service.name=web} http_requests_total{code=500} = sum(true,Cumulative) 7 @0..2000 (counter, "", "All of them.")
{service.instance.id=b:1 service.name=web service.namespace=ns} lag_seconds{} = gauge 0.5 @0..2000 (gauge, "s", "")
{} rpc_bucket{le=+Inf} = sum(true,Cumulative) 9 @1000..2000 (histogram, "", "")
{} rpc_count{} = sum(true,Cumulative) 9 @1000..2000 (histogram, "", "")
{} rpc_sum{} = sum(true,Cumulative) 4.5 @1000..2000 (histogram, "", "")
{} gc{quantile=0.5} = gauge 0.25 @0..2000 (summary, "", "")
{} gc_count{} = sum(true,Cumulative) 3 @1000..2000 (summary, "", "")
{} state{state=on} = sum(false,Cumulative) 1 @0..2000 (stateset, "", "")
{} queue_bucket{le=1} = gauge 1 @0..2000 (gaugehistogram, "", "")
{} odd{} = gauge 1 @0..2000 (unknown, "", "")
{} future{} = gauge 1 @0..2000 (unknown, "", "")
{} gone_total{} = sum(true,Cumulative) none @0..2000 stale (counter, "", "")
{} nan{} = gauge NaN @0..2000 (gauge, "", "")
{service.name=web} target_info{k8s_pod=p} = sum(false,Cumulative) 1 @0..2000 (info, "", "")
`), "\n"), lines)
}

func TestJobIsSplitOnlyWhereExportersJoinedIt(t *testing.T) {
	f := func(job, want string) {
		t.Helper()
		_, lines := translated(t, newV2().series(sample(1, 1, 0), gauge, "", "", "__name__", "x", "job", job))
		require.Equal(t, want+` x{} = gauge 1 @0..1 (gauge, "", "")`, lines[0])
	}
	f("web", "{service.name=web}")
	f("ns/web", "{service.name=web service.namespace=ns}")
	f("monitor/ns/web", "{service.name=monitor/ns/web}")
	f("/web", "{service.name=/web}")
	f("web/", "{service.name=web/}")
	f("", "{}")
}

func TestFirstVersionHasNoTypes(t *testing.T) {
	sink := new(consumertest.MetricsSink)
	body := v1(t, []string{"__name__", "a_total", "job", "j"}, []string{"__name__", "b", "job", "k"}, []string{"__name__", "a_total", "job", "j", "x", "y"})
	got := post(t, start(t, settings(), sink), promwrite.ContentTypeV1, "snappy", compress(t, promwrite.Snappy, body))
	require.Equal(t, 204, got.code, got.body)
	require.Equal(t, promwrite.Written{Samples: 3}, got.written)
	require.Equal(t, []string{
		`{service.name=j} a_total{} = gauge 0 @0..1000 (unknown, "", "")`,
		`{service.name=j} a_total{x=y} = gauge 2 @0..1000 (unknown, "", "")`,
		`{service.name=k} b{} = gauge 1 @0..1000 (unknown, "", "")`,
	}, describe(sink.AllMetrics()[0]), "grouped by resource")
}

func TestExemplarsComeWithASampleOrBesideIt(t *testing.T) {
	req := newV2()
	exemplar := func(value float64, labels ...string) writev2.Exemplar {
		return writev2.Exemplar{LabelsRefs: req.refs(labels...), Value: value, Timestamp: 1500}
	}
	apart := writev2.TimeSeries{Exemplars: []writev2.Exemplar{exemplar(2, "trace_id", "not an id", "user", "u")}}
	both := sample(9, 2000, 0)
	both.Exemplars = []writev2.Exemplar{exemplar(1, "span_id", "0102030405060708", "trace_id", "0102030405060708090a0b0c0d0e0f10")}
	req.series(apart, counter, "", "", "__name__", "a_total", "x", "1").
		series(both, counter, "", "", "__name__", "a_total", "x", "1").
		series(sample(9, 2000, 0), counter, "", "", "__name__", "a_total", "x", "2").
		series(sample(10, 3000, 0), counter, "", "", "__name__", "a_total", "x", "1").
		series(apart, counter, "", "", "__name__", "elsewhere_total")
	got, lines := translated(t, req)
	require.Equal(t, 204, got.code, got.body)
	require.Equal(t, promwrite.Written{Samples: 3, Exemplars: 2}, got.written, "one had no sample to go with")
	require.Equal(t, []string{
		`{} a_total{x=1} = sum(true,Cumulative) 9 @0..2000 (counter, "", "")`,
		`  exemplar 1 @1500 trace=0102030405060708090a0b0c0d0e0f10 span=0102030405060708 {}`,
		`  exemplar 2 @1500 trace= span= {trace_id=not an id user=u}`,
		`{} a_total{x=2} = sum(true,Cumulative) 9 @0..2000 (counter, "", "")`,
		`{} a_total{x=1} = sum(true,Cumulative) 10 @0..3000 (counter, "", "")`,
	}, lines)
}

func TestBadSeriesDoNotTakeGoodOnesWithThem(t *testing.T) {
	many := []string{"__name__", "many"}
	for i := range maxLabels {
		many = append(many, "l"+string(rune('a'+i)), "v")
	}
	f := func(reason string, ts writev2.TimeSeries, labels ...string) {
		t.Helper()
		req := newV2().series(sample(1, 1, 0), gauge, "", "", "__name__", "good").
			series(ts, gauge, "", "", labels...).
			series(sample(2, 1, 0), gauge, "", "", "__name__", "good")
		got, lines := translated(t, req)
		require.Equal(t, 400, got.code)
		require.Equal(t, `cannot take 1 items, first: series 1 (`+reason, got.body)
		require.Equal(t, promwrite.Written{Samples: 2}, got.written)
		require.Equal(t, []string{
			`{} good{} = gauge 1 @0..1 (gauge, "", "")`,
			`{} good{} = gauge 2 @0..1 (gauge, "", "")`,
		}, lines)
	}
	f(`""): label __name__ is missing`, sample(1, 1, 0), "job", "x")
	f(`"x"): a label appears twice`, sample(1, 1, 0), "__name__", "x", "a", "1", "a", "2")
	f(`"x"): a label appears twice`, sample(1, 1, 0), "a", "1", "__name__", "x", "a", "2")
	f(`"x"): a label has no name`, sample(1, 1, 0), "__name__", "x", "", "1")
	f(`"x"): a label is not UTF-8`, sample(1, 1, 0), "__name__", "x", "a", "\xff")
	f(`""): more than 256 labels`, sample(1, 1, 0), many...)
	f(`"x"): timestamp is not between 1970 and 2262`, sample(1, -1, 0), "__name__", "x")
	f(`"x"): timestamp is not between 1970 and 2262`, sample(1, 0, 0), "__name__", "x")
	f(`"x"): timestamp is not between 1970 and 2262`, sample(1, math.MaxInt64, 0), "__name__", "x")
}

func TestUnsortedLabelsAreSorted(t *testing.T) {
	got, lines := translated(t, newV2().series(sample(1, 1, 0), gauge, "", "", "b", "2", "a", "1", "__name__", "x"))
	require.Equal(t, 204, got.code)
	require.Equal(t, []string{`{} x{a=1 b=2} = gauge 1 @0..1 (gauge, "", "")`}, lines)
}

func TestSamplesOfOneSeriesKeepTheirOrder(t *testing.T) {
	ts := sample(1, 1000, 0)
	ts.Samples = append(ts.Samples, writev2.Sample{Value: 2, Timestamp: 2000}, writev2.Sample{Value: 3, Timestamp: 3000})
	_, lines := translated(t, newV2().series(ts, gauge, "", "", "__name__", "x", "a", "b"))
	require.Equal(t, []string{
		`{} x{a=b} = gauge 1 @0..1000 (gauge, "", "")`,
		`{} x{a=b} = gauge 2 @0..2000 (gauge, "", "")`,
		`{} x{a=b} = gauge 3 @0..3000 (gauge, "", "")`,
	}, lines)
}
