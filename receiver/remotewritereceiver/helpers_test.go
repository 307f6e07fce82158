// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package remotewritereceiver

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/klauspost/compress/s2"
	"github.com/klauspost/compress/zstd"
	"github.com/prometheus/prometheus/prompb"
	writev2 "github.com/prometheus/prometheus/prompb/io/prometheus/write/v2"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/receiver"
	"go.opentelemetry.io/collector/receiver/receivertest"

	"github.com/godwit-otel/godwit/internal/promwrite"
	"github.com/godwit-otel/godwit/receiver/remotewritereceiver/internal/metadata"
)

// start runs a receiver on a free port and returns its URL.
func start(tb testing.TB, set receiver.Settings, next consumer.Metrics, change ...func(*Config)) string {
	cfg := createDefaultConfig().(*Config)
	cfg.HTTP.NetAddr.Endpoint = "localhost:0"
	for _, f := range change {
		f(cfg)
	}
	r, err := newReceiver(cfg, set, next)
	require.NoError(tb, err)
	require.NoError(tb, r.Start(context.Background(), componenttest.NewNopHost()))
	tb.Cleanup(func() { require.NoError(tb, r.Shutdown(context.Background())) })
	return "http://" + r.address.String() + cfg.Path
}

func settings() receiver.Settings { return receivertest.NewNopSettings(metadata.Type) }

func compress(tb testing.TB, encoding promwrite.Encoding, plain []byte) []byte {
	switch encoding {
	case promwrite.Snappy:
		return s2.EncodeSnappy(nil, plain)
	case promwrite.Zstd:
		encoder, err := zstd.NewWriter(nil)
		require.NoError(tb, err)
		defer encoder.Close()
		return encoder.EncodeAll(plain, nil)
	}
	return plain
}

type answer struct {
	code    int
	body    string
	written promwrite.Written
	header  http.Header
}

func post(tb testing.TB, url, contentType, encoding string, body []byte) answer {
	req, err := http.NewRequest(http.MethodPost, url, bytes.NewReader(body))
	require.NoError(tb, err)
	req.Header.Set("Content-Type", contentType)
	req.Header.Set("Content-Encoding", encoding)
	// Connections are not kept: they would outlive the test.
	req.Close = true
	resp, err := http.DefaultClient.Do(req)
	require.NoError(tb, err)
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	require.NoError(tb, err)
	written, _ := promwrite.ParseWritten(resp.Header)
	return answer{resp.StatusCode, strings.TrimSpace(string(text)), written, resp.Header}
}

func postV2(tb testing.TB, url string, req *writev2.Request) answer {
	body, err := req.Marshal()
	require.NoError(tb, err)
	return post(tb, url, promwrite.ContentTypeV2, "snappy", compress(tb, promwrite.Snappy, body))
}

// v2 builds 2.0 requests.
type v2 struct {
	writev2.Request

	symbols writev2.SymbolsTable
}

func newV2() *v2 { return &v2{symbols: writev2.NewSymbolTable()} }

// series adds a series; labels alternate names and values.
func (b *v2) series(ts writev2.TimeSeries, typ writev2.Metadata_MetricType, help, unit string, labels ...string) *v2 {
	for _, l := range labels {
		ts.LabelsRefs = append(ts.LabelsRefs, b.symbols.Symbolize(l))
	}
	ts.Metadata = writev2.Metadata{Type: typ, HelpRef: b.symbols.Symbolize(help), UnitRef: b.symbols.Symbolize(unit)}
	b.Timeseries = append(b.Timeseries, ts)
	b.Symbols = b.symbols.Symbols()
	return b
}

func (b *v2) refs(labels ...string) (refs []uint32) {
	for _, l := range labels {
		refs = append(refs, b.symbols.Symbolize(l))
	}
	return refs
}

func sample(value float64, at, start int64) writev2.TimeSeries {
	return writev2.TimeSeries{Samples: []writev2.Sample{{Value: value, Timestamp: at, StartTimestamp: start}}}
}

// v1 returns a 1.0 request with one sample for each list of labels.
func v1(tb testing.TB, series ...[]string) []byte {
	var req prompb.WriteRequest
	for i, names := range series {
		var labels []prompb.Label
		for l := 0; l < len(names); l += 2 {
			labels = append(labels, prompb.Label{Name: names[l], Value: names[l+1]})
		}
		req.Timeseries = append(req.Timeseries, prompb.TimeSeries{
			Labels: labels, Samples: []prompb.Sample{{Value: float64(i), Timestamp: 1000}},
		})
	}
	body, err := req.Marshal()
	require.NoError(tb, err)
	return body
}

// describe formats metrics as lines, one for each point and, indented, for each exemplar.
func describe(md pmetric.Metrics) (lines []string) {
	for _, rm := range md.ResourceMetrics().All() {
		for _, sm := range rm.ScopeMetrics().All() {
			for _, m := range sm.Metrics().All() {
				head := fmt.Sprintf("%s %s", attributesOf(rm.Resource().Attributes()), m.Name())
				typ, _ := m.Metadata().Get("prometheus.type")
				about := fmt.Sprintf(" (%s, %q, %q)", typ.AsString(), m.Unit(), m.Description())
				numbers := func(shape string, points pmetric.NumberDataPointSlice) {
					for _, p := range points.All() {
						value := fmt.Sprint(p.DoubleValue())
						if p.ValueType() == pmetric.NumberDataPointValueTypeEmpty {
							value = "none"
						}
						lines = append(lines, fmt.Sprintf("%s%s = %s %s %s", head, attributesOf(p.Attributes()), shape,
							value, times(p.Flags(), p.StartTimestamp(), p.Timestamp()))+about)
						lines = append(lines, exemplarsOf(p.Exemplars())...)
					}
				}
				switch m.Type() {
				case pmetric.MetricTypeGauge:
					numbers("gauge", m.Gauge().DataPoints())
				case pmetric.MetricTypeSum:
					numbers(fmt.Sprintf("sum(%v,%s)", m.Sum().IsMonotonic(), m.Sum().AggregationTemporality()), m.Sum().DataPoints())
				case pmetric.MetricTypeHistogram:
					for _, p := range m.Histogram().DataPoints().All() {
						lines = append(lines, fmt.Sprintf("%s%s = histogram(%s) count=%d sum=%v bounds=%v counts=%v %s", head,
							attributesOf(p.Attributes()), m.Histogram().AggregationTemporality(), p.Count(), p.Sum(),
							p.ExplicitBounds().AsRaw(), p.BucketCounts().AsRaw(), times(p.Flags(), p.StartTimestamp(), p.Timestamp()))+about)
						lines = append(lines, exemplarsOf(p.Exemplars())...)
					}
				case pmetric.MetricTypeExponentialHistogram:
					for _, p := range m.ExponentialHistogram().DataPoints().All() {
						lines = append(lines, fmt.Sprintf("%s%s = exponential(%s) count=%d sum=%v scale=%d zero=%d@%v +%d%v -%d%v %s", head,
							attributesOf(p.Attributes()), m.ExponentialHistogram().AggregationTemporality(), p.Count(), p.Sum(), p.Scale(),
							p.ZeroCount(), p.ZeroThreshold(), p.Positive().Offset(), p.Positive().BucketCounts().AsRaw(),
							p.Negative().Offset(), p.Negative().BucketCounts().AsRaw(), times(p.Flags(), p.StartTimestamp(), p.Timestamp()))+about)
						lines = append(lines, exemplarsOf(p.Exemplars())...)
					}
				default:
					lines = append(lines, head+" is empty")
				}
			}
		}
	}
	return lines
}

func times(flags pmetric.DataPointFlags, start, at pcommon.Timestamp) string {
	text := fmt.Sprintf("@%d..%d", start/1e6, at/1e6)
	if flags.NoRecordedValue() {
		text += " stale"
	}
	return text
}

func exemplarsOf(list pmetric.ExemplarSlice) (lines []string) {
	for _, e := range list.All() {
		lines = append(lines, fmt.Sprintf("  exemplar %v @%d trace=%s span=%s %s", e.DoubleValue(), e.Timestamp()/1e6,
			e.TraceID(), e.SpanID(), attributesOf(e.FilteredAttributes())))
	}
	return lines
}

func attributesOf(m pcommon.Map) string {
	raw := m.AsRaw()
	parts := make([]string, 0, len(raw))
	for _, name := range slices.Sorted(maps.Keys(raw)) {
		parts = append(parts, fmt.Sprintf("%s=%v", name, raw[name]))
	}
	return "{" + strings.Join(parts, " ") + "}"
}
