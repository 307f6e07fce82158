// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package page

import (
	"encoding/binary"
	"strings"
	"testing"

	"github.com/gogo/protobuf/proto"
	"github.com/gogo/protobuf/types"
	dto "github.com/prometheus/prometheus/prompb/io/prometheus/client"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/godwit-otel/godwit/internal/racetest"
)

const typeProto = "application/vnd.google.protobuf; proto=io.prometheus.client.MetricFamily; encoding=delimited"

func delimited(families ...string) string {
	var b strings.Builder
	for _, f := range families {
		m := &dto.MetricFamily{}
		if err := proto.UnmarshalText(f, m); err != nil {
			panic(err)
		}
		raw, err := m.Marshal()
		if err != nil {
			panic(err)
		}
		b.Write(binary.AppendUvarint(nil, uint64(len(raw))))
		b.Write(raw)
	}
	return b.String()
}

const (
	protoCounter = `name: "c_total" help: "C." type: COUNTER metric: < label: < name: "a" value: "b" >
		counter: < value: 3 exemplar: < label: < name: "trace_id" value: "0102030405060708090a0b0c0d0e0f10" > value: 0.5 > > >`
	protoGauge   = `name: "g" type: GAUGE unit: "s" metric: < gauge: < value: 1.5 > timestamp_ms: 1520879607789 >`
	protoSummary = `name: "s" type: SUMMARY metric: < summary: < sample_count: 3 sample_sum: 4 quantile: < quantile: 0.5 value: 2 > > >`
	protoClassic = `name: "h" type: HISTOGRAM metric: < histogram: < sample_count: 3 sample_sum: 4 bucket: < cumulative_count: 1 upper_bound: 1 >
		bucket: < cumulative_count: 2 upper_bound: 2.5 > > >`
	protoNative = `name: "n" type: HISTOGRAM metric: < label: < name: "a" value: "b" > histogram: < sample_count: 9 sample_sum: 4.5 schema: 3
		zero_threshold: 0.001 zero_count: 1 positive_span: < offset: -2 length: 2 > positive_span: < offset: 3 length: 1 > positive_delta: 2 positive_delta: 1
		positive_delta: -1 negative_span: < offset: 0 length: 1 > negative_delta: 1
		bucket: < cumulative_count: 4 upper_bound: 1 exemplar: < label: < name: "k" value: "v" > value: 0.5 timestamp: < seconds: 1520879607 > > > > >`
	protoFloat = `name: "f" type: HISTOGRAM metric: < histogram: < sample_count_float: 4.5 sample_sum: 4.5 schema: 1 zero_threshold: 0.1 zero_count_float: 1.5
		positive_span: < offset: 0 length: 2 > positive_count: 1.5 positive_count: 1.5 > >`
	protoUntyped = `name: "u" type: UNTYPED metric: < untyped: < value: 2 > >`
)

var _ = types.Timestamp{} // registers the text form of an exemplar's timestamp

func TestProtobufAgainstStock(t *testing.T) {
	racetest.Sequential(t)
	all := delimited(protoCounter, protoGauge, protoSummary, protoClassic, protoNative, protoFloat, protoUntyped)
	seq := func(name, job string, pages ...string) sequence {
		return sequence{name: name, media: typeProto, job: job, pages: pages}
	}
	compareWithStock(t, receiverOptions{}, []sequence{
		seq("native ignored", "", all, all),
		seq("native", "scrape_native_histograms: true", all, all, delimited(protoGauge), all),
		seq("native and classic", "scrape_native_histograms: true\nalways_scrape_classic_histograms: true", all, all),
		seq("converted", "scrape_native_histograms: true\nconvert_classic_histograms_to_nhcb: true", all, all),
		seq("bucket factor", "scrape_native_histograms: true\nnative_histogram_min_bucket_factor: 1.5", all, all),
		seq("bucket limit", "scrape_native_histograms: true\nnative_histogram_bucket_limit: 2", all),
		seq("bucket limit exceeded", "scrape_native_histograms: true\nconvert_classic_histograms_to_nhcb: true\nnative_histogram_bucket_limit: 1", all),
		seq("cut", "", all[:len(all)-3]),
		seq("labels", "metric_relabel_configs:\n- {source_labels: [a], target_label: c}", all, all),
	})
}

func TestStaleNativeHistogram(t *testing.T) {
	cfg := testScrapeConfig()
	on := true
	cfg.ScrapeNativeHistograms = &on
	target := testTarget(newTestJob(t, Config{Scrape: cfg, Reuse: true}), 1)
	all := delimited(protoNative, protoGauge)
	for range 3 {
		show(target, start, typeProto, all, 100).Release()
	}
	r := show(target, start, typeProto, delimited(protoGauge), 100)
	n := find(t, r.Metrics, "n")
	require.Equal(t, pmetric.MetricTypeExponentialHistogram, n.Type())
	require.True(t, n.ExponentialHistogram().DataPoints().At(0).Flags().NoRecordedValue())
}

// A native histogram with negative or NaN bucket counts is omitted, as a classic one is: converted to an integer, the
// count would be wrong.
func TestNativeHistogramsThatAreBroken(t *testing.T) {
	on := true
	cfg := testScrapeConfig()
	cfg.ScrapeNativeHistograms = &on
	native := func(counts string) string {
		return delimited(`name: "n" type: HISTOGRAM metric: < histogram: < sample_sum: 4.5 schema: 3 zero_threshold: 0.001 positive_span: < length: 2 > `+counts+" > >", protoGauge)
	}
	sound := native("sample_count: 3 positive_delta: 2 positive_delta: -1")
	for name, counts := range map[string]string{
		"below zero":        "sample_count: 3 positive_delta: 2 positive_delta: -3",
		"no number":         "sample_count_float: 3 positive_count: 2 positive_count: nan",
		"floats below zero": "sample_count_float: 3 positive_count: 2 positive_count: -1",
		"endless":           "sample_count_float: inf positive_count: 2 positive_count: 1",
		"more than fit":     "sample_count_float: 3 zero_count_float: 1e20 positive_count: 2 positive_count: 1",
	} {
		for _, reuse := range []bool{false, true} {
			j := newTestJob(t, Config{Scrape: cfg, Reuse: reuse})
			target := testTarget(j, 1)
			for range 2 {
				r := show(target, start, typeProto, sound, 100)
				require.True(t, has(r.Metrics, "n"))
				r.Release()
				r = show(target, start, typeProto, native(counts), 100)
				require.NoError(t, r.Err)
				require.False(t, has(r.Metrics, "n"), name)
				require.True(t, has(r.Metrics, "g"))
				r.Release()
			}
			require.Equal(t, int64(2), j.cfg.BrokenHistograms.Load(), name)
			r := show(target, start, typeProto, delimited(protoGauge), 100)
			require.True(t, find(t, r.Metrics, "n").ExponentialHistogram().DataPoints().At(0).Flags().NoRecordedValue(), "it ends when it is gone")
		}
	}
}

// A native histogram that rules drop does not take the exemplars of the next one.
func TestExemplarsBehindADroppedHistogram(t *testing.T) {
	racetest.Sequential(t)
	of := func(id string) string {
		return `metric: < label: < name: "id" value: "` + id + `" > histogram: < sample_count: 1 schema: 3 zero_threshold: 0.001 zero_count: 1
			exemplars: < label: < name: "of" value: "` + id + `" > value: 0.5 timestamp: < seconds: 1520879607 > > > >`
	}
	page := delimited(`name: "n" type: HISTOGRAM ` + of("a") + of("b"))
	compareWithStock(t, receiverOptions{}, []sequence{{
		name: "dropped", media: typeProto, pages: []string{page, page},
		job: "scrape_native_histograms: true\nmetric_relabel_configs: [{source_labels: [id], regex: a, action: drop}]",
	}})
}
