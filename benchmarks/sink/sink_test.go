// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package sink

import (
	"bytes"
	"context"
	"math"
	"net/http"
	"testing"
	"time"

	"github.com/golang/snappy"
	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"
	"github.com/prometheus/prometheus/model/value"
	"github.com/prometheus/prometheus/prompb"
	writev2 "github.com/prometheus/prometheus/prompb/io/prometheus/write/v2"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/pdata/pmetric/pmetricotlp"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/godwit-otel/godwit/benchmarks/tally"
)

// open serves a sink until the test ends.
func open(t *testing.T) *Sink {
	t.Helper()
	s, err := Listen(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- s.Serve(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	return s
}

func post(t *testing.T, s *Sink, path, contentType, coding string, body []byte) *http.Response {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://"+s.HTTPAddress()+path, bytes.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Type", contentType)
	req.Header.Set("Content-Encoding", coding)
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	return resp
}

func compress(t *testing.T, coding string, message []byte) []byte {
	t.Helper()
	var out bytes.Buffer
	switch coding {
	case "snappy":
		return snappy.Encode(nil, message)
	case "zstd":
		w, err := zstd.NewWriter(&out)
		if err != nil {
			t.Fatal(err)
		}
		w.Write(message)
		w.Close()
	case "gzip":
		w := gzip.NewWriter(&out)
		w.Write(message)
		w.Close()
	default:
		return message
	}
	return out.Bytes()
}

const at = 1_700_000_000_000

// sent is what each test sends: two samples of target 3 in scrape 7, and series that agents add.
var (
	stale = math.Float64frombits(value.StaleNaN)
	sent  = []struct {
		name     string
		instance string
		value    float64
	}{
		{"a", tally.Address(3, 9100), 1.5},
		{tally.ScrapeID, tally.Address(3, 9100), 7},
		{"gone", tally.Address(3, 9100), stale},
		{"up", tally.Address(3, 9100), 1},
		{"scrape_duration_seconds", tally.Address(3, 9100), 0.25},
		{"http_server_requests_created", tally.Address(3, 9100), 1e9},
		{"a", "somewhere:80", 1},
	}
)

// check compares the ledger with what was sent, times times.
func check(t *testing.T, s *Sink, times, raw int) {
	t.Helper()
	want := Stats{
		Requests: int64(times), Raw: int64(times * raw), Samples: int64(2 * times), Created: int64(times),
		Own: int64(2 * times), Stale: int64(times), Strangers: int64(times), Durations: int64(times), Seconds: 0.25 * float64(times),
	}
	got := s.Stats()
	if got.Wire == 0 {
		t.Error("nothing was counted on the wire")
	}
	if got.Series != 7 {
		t.Errorf("%d series, want 7", got.Series)
	}
	got.Wire, got.Series = 0, 0
	if got != want {
		t.Errorf("stats %+v, want %+v", got, want)
	}
	var page tally.Tally
	for range times {
		page.Add(1.5)
		page.Add(7)
	}
	groups := s.Ledger.Arrived()[3]
	if len(groups) != 1 || groups[0] != (Group{Time: at, Number: 7, Page: page}) {
		t.Errorf("arrived %+v, want one group of scrape 7 with %+v", groups, page)
	}
}

func TestRemoteWrite1IsAccountedFor(t *testing.T) {
	s := open(t)
	var req prompb.WriteRequest
	for _, m := range sent {
		req.Timeseries = append(req.Timeseries, prompb.TimeSeries{
			Labels:  []prompb.Label{{Name: "__name__", Value: m.name}, {Name: "instance", Value: m.instance}},
			Samples: []prompb.Sample{{Value: m.value, Timestamp: at}},
		})
	}
	message, err := req.Marshal()
	if err != nil {
		t.Fatal(err)
	}
	for _, coding := range []string{"snappy", "zstd"} {
		if resp := post(t, s, "/api/v1/write", "application/x-protobuf", coding, compress(t, coding, message)); resp.StatusCode != http.StatusNoContent {
			t.Fatalf("%s: status %s", coding, resp.Status)
		}
	}
	check(t, s, 2, len(message))
}

func TestRemoteWrite2IsAccountedFor(t *testing.T) {
	s := open(t)
	symbols := writev2.NewSymbolTable()
	var req writev2.Request
	for _, m := range sent {
		req.Timeseries = append(req.Timeseries, writev2.TimeSeries{
			LabelsRefs: []uint32{symbols.Symbolize("__name__"), symbols.Symbolize(m.name), symbols.Symbolize("instance"), symbols.Symbolize(m.instance)},
			Samples:    []writev2.Sample{{Value: m.value, Timestamp: at}},
		})
	}
	req.Symbols = symbols.Symbols()
	message, err := req.Marshal()
	if err != nil {
		t.Fatal(err)
	}
	for _, coding := range []string{"snappy", "zstd"} {
		resp := post(t, s, "/api/v1/write", "application/x-protobuf;proto=io.prometheus.write.v2.Request", coding, compress(t, coding, message))
		if resp.StatusCode != http.StatusNoContent || resp.Header.Get("X-Prometheus-Remote-Write-Samples-Written") != "7" {
			t.Fatalf("%s: status %s, header %v", coding, resp.Status, resp.Header)
		}
	}
	check(t, s, 2, len(message))
}

func otlpMessage(t *testing.T) []byte {
	t.Helper()
	md := pmetric.NewMetrics()
	for _, m := range sent {
		rm := md.ResourceMetrics().AppendEmpty()
		rm.Resource().Attributes().PutStr("service.instance.id", m.instance)
		metric := rm.ScopeMetrics().AppendEmpty().Metrics().AppendEmpty()
		metric.SetName(m.name)
		p := metric.SetEmptyGauge().DataPoints().AppendEmpty()
		p.SetTimestamp(at * 1e6)
		if m.value != m.value {
			p.SetFlags(pmetric.DefaultDataPointFlags.WithNoRecordedValue(true))
			continue
		}
		p.SetDoubleValue(m.value)
	}
	message, err := pmetricotlp.NewExportRequestFromMetrics(md).MarshalProto()
	if err != nil {
		t.Fatal(err)
	}
	return message
}

func TestOTLPOverHTTPIsAccountedFor(t *testing.T) {
	s := open(t)
	message := otlpMessage(t)
	codings := []string{"", "gzip", "zstd"}
	for _, coding := range codings {
		if resp := post(t, s, "/v1/metrics", "application/x-protobuf", coding, compress(t, coding, message)); resp.StatusCode != http.StatusOK {
			t.Fatalf("%q: status %s", coding, resp.Status)
		}
	}
	check(t, s, len(codings), len(message))
}

func TestOTLPOverGRPCIsAccountedFor(t *testing.T) {
	s := open(t)
	message := otlpMessage(t)
	conn, err := grpc.NewClient(s.GRPCAddress(), grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	req := pmetricotlp.NewExportRequest()
	if err := req.UnmarshalProto(message); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	calls := [][]grpc.CallOption{nil, {grpc.UseCompressor("gzip")}, {grpc.UseCompressor("zstd")}}
	for _, options := range calls {
		if _, err := pmetricotlp.NewGRPCClient(conn).Export(ctx, req, options...); err != nil {
			t.Fatal(err)
		}
	}
	check(t, s, len(calls), len(message))
}

func TestDistributionsCountAsTheSamplesTheyWere(t *testing.T) {
	md := pmetric.NewMetrics()
	rm := md.ResourceMetrics().AppendEmpty()
	rm.Resource().Attributes().PutStr("service.instance.id", tally.Address(0, 1))
	metrics := rm.ScopeMetrics().AppendEmpty().Metrics()
	h := metrics.AppendEmpty()
	h.SetName("h")
	hp := h.SetEmptyHistogram().DataPoints().AppendEmpty()
	hp.SetTimestamp(at * 1e6)
	hp.ExplicitBounds().FromRaw([]float64{1, 2})
	hp.BucketCounts().FromRaw([]uint64{1, 2, 3})
	hp.SetCount(6)
	hp.SetSum(9.5)
	hp.Exemplars().AppendEmpty().SetDoubleValue(1)
	q := metrics.AppendEmpty()
	q.SetName("q")
	qp := q.SetEmptySummary().DataPoints().AppendEmpty()
	qp.SetTimestamp(at * 1e6)
	qp.SetCount(4)
	qp.SetSum(2.5)
	qp.QuantileValues().AppendEmpty().SetValue(0)
	qp.QuantileValues().AppendEmpty().SetValue(0.75)
	message, err := pmetricotlp.NewExportRequestFromMetrics(md).MarshalProto()
	if err != nil {
		t.Fatal(err)
	}
	e := newEntry(len(message))
	if err := otlp(message, e); err != nil {
		t.Fatal(err)
	}
	var want tally.Tally
	for _, v := range []float64{1, 3, 6, 6, 9.5, 0, 0.75, 4, 2.5} {
		want.Add(v)
	}
	if got := e.groups[groupKey{0, at}].Page; got != want || e.stats.Exemplars != 1 || len(e.series) != 9 {
		t.Errorf("got %+v, %d exemplars, %d series; want %+v, 1, 9", got, e.stats.Exemplars, len(e.series), want)
	}
}

func TestWhatCannotBeDecodedIsRefusedAndCounted(t *testing.T) {
	s := open(t)
	for i, coding := range []string{"snappy", "zstd", "gzip", "br", "identity"} {
		if resp := post(t, s, "/api/v1/write", "application/x-protobuf", coding, []byte{0xff, 0xff, 0xff}); resp.StatusCode != http.StatusBadRequest {
			t.Errorf("%s: status %s", coding, resp.Status)
		}
		if got := s.Stats(); got.Failed != int64(i+1) || got.Requests != 0 {
			t.Errorf("%s: stats %+v", coding, got)
		}
	}
	s.Reset()
	if got := s.Stats(); got != (Stats{}) {
		t.Errorf("stats after a reset: %+v", got)
	}
}

// Whatever arrives, the parsers return without a panic.
func FuzzWalkers(f *testing.F) {
	var req prompb.WriteRequest
	req.Timeseries = []prompb.TimeSeries{{Labels: []prompb.Label{{Name: "instance", Value: tally.Address(3, 9100)}}, Samples: []prompb.Sample{{Value: 1, Timestamp: 2}}}}
	message, _ := req.Marshal()
	f.Add(message)
	f.Add([]byte{0x22, 0x01, 0x61, 0x2a, 0x04, 0x0a, 0x02, 0x00, 0x00})
	f.Fuzz(func(_ *testing.T, message []byte) {
		for _, account := range []func([]byte, *entry) error{remoteWrite1, remoteWrite2, otlp} {
			_ = account(message, newEntry(len(message)))
		}
		var u unpacker
		_, _, _ = u.request(message)
		u.close()
	})
}
