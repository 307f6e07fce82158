// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package rwserver

import (
	"context"
	"math"
	"net/http"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/metadata"
	"github.com/prometheus/prometheus/model/value"
	"github.com/prometheus/prometheus/prompb"
	writev2 "github.com/prometheus/prometheus/prompb/io/prometheus/write/v2"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/godwit-otel/godwit/e2e/wait"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestVersion1IsRemembered(t *testing.T) {
	for _, encoding := range []string{Snappy, Zstd} {
		t.Run(encoding, func(t *testing.T) {
			s := New(t, Options{})
			req := v1("up", "job", "node").samples(1000, 1, 2000, math.Float64frombits(value.StaleNaN)).request()
			req.Metadata = []prompb.MetricMetadata{{MetricFamilyName: "up", Type: prompb.MetricMetadata_GAUGE, Help: "Is it?", Unit: "bool"}}
			req.Timeseries[0].Exemplars = []prompb.Exemplar{{Labels: []prompb.Label{{Name: "trace_id", Value: "7"}}, Value: 1, Timestamp: 1000}}
			req.Timeseries = append(req.Timeseries, v1("sizes").histogram(1000).TimeSeries)
			resp := s.mustSend(t, message1(t, req, encoding))
			assert.Equal(t, http.StatusNoContent, resp.StatusCode)
			assert.Empty(t, resp.Header.Get("X-Prometheus-Remote-Write-Samples-Written"))

			up := s.Only(t, "up", "job", "node")
			assert.Equal(t, labels.FromStrings("__name__", "up", "job", "node"), up.Labels)
			require.Len(t, up.Samples, 2)
			assert.Equal(t, Sample{T: 1000, V: 1}, up.Samples[0])
			assert.False(t, up.Samples[0].Stale())
			assert.True(t, up.Samples[1].Stale())
			assert.Equal(t, "7", up.Exemplars[0].Labels.Get("trace_id"))
			assert.InDelta(t, 3, s.Only(t, "sizes").Histograms[0].Int.Sum, 0)
			assert.Equal(t, metadata.Metadata{Type: model.MetricTypeGauge, Help: "Is it?", Unit: "bool"}, s.Metadata()["up"])

			got := s.Requests()[0]
			assert.Equal(t, []any{V1, encoding, 2, 1, 1, true, 204}, []any{got.Version, got.Encoding, got.Samples, got.Histograms, got.Exemplars, got.Kept, got.Status})
			assert.Positive(t, got.WireBytes)
			assert.Equal(t, req.Size(), got.RawBytes)
			assert.Equal(t, "test", got.Header.Get("User-Agent"))
			assert.Empty(t, s.Violations())
			assert.Empty(t, s.StepsBack())
		})
	}
}

func TestVersion2IsRemembered(t *testing.T) {
	for _, encoding := range []string{Snappy, Zstd} {
		t.Run(encoding, func(t *testing.T) {
			s := New(t, Options{})
			symbols := writev2.NewSymbolTable()
			ref := func(lset ...string) []uint32 { return symbols.SymbolizeLabels(labels.FromStrings(lset...), nil) }
			req := &writev2.Request{Timeseries: []writev2.TimeSeries{
				{
					LabelsRefs: ref("__name__", "hits_total", "job", "node"),
					Samples:    []writev2.Sample{{Timestamp: 2000, Value: 5, StartTimestamp: 1000}},
					Exemplars:  []writev2.Exemplar{{LabelsRefs: ref("trace_id", "7"), Value: 1, Timestamp: 1500}},
					Metadata:   writev2.Metadata{Type: writev2.Metadata_METRIC_TYPE_COUNTER, HelpRef: symbols.Symbolize("Hits.")},
				},
				{LabelsRefs: ref("__name__", "sizes"), Histograms: []writev2.Histogram{writev2.FromFloatHistogram(2000, aHistogram().ToFloat(nil))}},
			}}
			req.Symbols = symbols.Symbols()
			resp := s.mustSend(t, message2(t, req, encoding))
			assert.Equal(t, "1", resp.Header.Get("X-Prometheus-Remote-Write-Samples-Written"))
			assert.Equal(t, "1", resp.Header.Get("X-Prometheus-Remote-Write-Histograms-Written"))
			assert.Equal(t, "1", resp.Header.Get("X-Prometheus-Remote-Write-Exemplars-Written"))

			hits := s.Only(t, "hits_total")
			assert.Equal(t, []Sample{{T: 2000, ST: 1000, V: 5}}, hits.Samples)
			assert.Equal(t, "7", hits.Exemplars[0].Labels.Get("trace_id"))
			assert.InDelta(t, 3, s.Only(t, "sizes").Histograms[0].Float.Sum, 0)
			assert.Equal(t, metadata.Metadata{Type: model.MetricTypeCounter, Help: "Hits."}, s.Metadata()["hits_total"])
			assert.Equal(t, V2, s.Requests()[0].Version)
			assert.Empty(t, s.Violations())
		})
	}
}

func TestTheScriptDecidesWhatIsKept(t *testing.T) {
	s := New(t, Options{CountOnly: true})
	req := message1(t, v1("up").samples(1, 1).request(), Snappy)
	f := func(step Step, status int, kept bool) {
		t.Helper()
		before := s.Totals().Requests
		s.Then(step)
		resp := s.mustSend(t, req)
		assert.Equal(t, status, resp.StatusCode)
		assert.Equal(t, kept, s.Totals().Requests > before)
	}
	f(Step{}, 204, true)
	f(Step{Status: 200}, 200, true)
	f(Step{Status: 503}, 503, false)
	f(Step{Status: 500, Keep: true}, 500, true)
	f(Step{Delay: time.Millisecond, ReadPause: time.Millisecond}, 204, true)

	s.Always(Step{Status: 429, Header: RetryAfterSeconds(3)})
	assert.Equal(t, "3", s.mustSend(t, req).Header.Get("Retry-After"))
	s.Always(Step{Status: 429, RetryDate: time.Minute})
	date, err := http.ParseTime(s.mustSend(t, req).Header.Get("Retry-After"))
	require.NoError(t, err)
	assert.WithinDuration(t, time.Now().Add(time.Minute), date, 10*time.Second)
	assert.Empty(t, s.Series(""), "only counted")
	assert.Equal(t, "4 requests with 4 samples, 0 histograms and 0 exemplars", s.Totals().String())
}

func TestAnObserverSeesWhatIsKept(t *testing.T) {
	var seen []string
	requests := 0
	s := New(t, Options{
		CountOnly: true,
		Observe:   func(series Series) { seen = append(seen, series.Labels.String()) },
		ObserveRequest: func(r Request, series []Series) {
			requests++
			assert.Len(t, series, r.Samples)
			assert.True(t, r.Kept)
		},
	})
	s.Then(Step{}, Step{Status: 503}, Step{})
	for _, name := range []string{"a", "b", "c"} {
		s.mustSend(t, message1(t, v1(name).samples(1, 1).request(), Snappy))
	}
	assert.Equal(t, []string{`{__name__="a"}`, `{__name__="c"}`}, seen)
	assert.Equal(t, 2, requests)
	assert.Empty(t, s.Series(""), "only counted")
}

func TestHeadersMayDecideBeforeTheScript(t *testing.T) {
	s := New(t, Options{Choose: func(h http.Header) (Step, bool) { return Step{Status: 403}, h.Get("X-Scope-Orgid") == "bad" }})
	s.Then(Step{Status: 503})
	req := message1(t, v1("up").samples(1, 1).request(), Snappy)
	req.Set("X-Scope-Orgid", "bad")
	assert.Equal(t, 403, s.mustSend(t, req).StatusCode)
	req.Set("X-Scope-Orgid", "good")
	assert.Equal(t, 503, s.mustSend(t, req).StatusCode)
	assert.Equal(t, 204, s.mustSend(t, req).StatusCode)
}

func TestWrittenHeadersCanBeMissingOrLie(t *testing.T) {
	s := New(t, Options{})
	symbols := writev2.NewSymbolTable()
	req := &writev2.Request{Timeseries: []writev2.TimeSeries{{
		LabelsRefs: symbols.SymbolizeLabels(labels.FromStrings("__name__", "up"), nil),
		Samples:    []writev2.Sample{{Timestamp: 1}},
	}}}
	req.Symbols = symbols.Symbols()
	const header = "X-Prometheus-Remote-Write-Samples-Written"
	s.Then(Step{NoWritten: true}, Step{Header: http.Header{header: {"77"}}}, Step{Status: 500})
	assert.Empty(t, s.mustSend(t, message2(t, req, Snappy)).Header.Values(header))
	assert.Equal(t, "77", s.mustSend(t, message2(t, req, Snappy)).Header.Get(header))
	assert.Equal(t, "0", s.mustSend(t, message2(t, req, Snappy)).Header.Get(header), "nothing was written")
}

func TestFaults(t *testing.T) {
	s := New(t, Options{})
	req := message1(t, v1("up").samples(1, 1).request(), Snappy)
	s.Then(Step{Fault: ResetBeforeBody}, Step{Fault: ResetAfterBody}, Step{Fault: ResetAfterBody, Keep: true}, Step{Fault: Hang})
	for range 3 {
		_, err := s.send(t.Context(), req)
		require.ErrorIs(t, err, syscall.ECONNRESET)
	}
	_, err := s.send(wait.Context(t, func() bool { return len(s.Requests()) == 3 }), req)
	require.ErrorIs(t, err, context.Canceled)
	assert.Len(t, s.Requests(), 3, "a body that was not read does not count")
	assert.Equal(t, 1, s.Totals().Requests)
	assert.Zero(t, s.Requests()[0].Status)
}

func TestAServerCanBeNarrow(t *testing.T) {
	s := New(t, Options{Versions: []string{V1}, Encodings: []string{Snappy}})
	series := v1("up").samples(1, 1).request()
	assert.Equal(t, 204, s.mustSend(t, message1(t, series, Snappy)).StatusCode)
	assert.Equal(t, 415, s.mustSend(t, message1(t, series, Zstd)).StatusCode)
	assert.Equal(t, 415, s.mustSend(t, message2(t, &writev2.Request{Symbols: []string{""}}, Snappy)).StatusCode)
	assert.Empty(t, s.Violations(), "asking for too much is not a breach")
	require.ErrorIs(t, s.Requests()[2].Err, errUnsupported)
}

func TestAServerCanComeBack(t *testing.T) {
	var addr string
	req := message1(t, v1("up").samples(1, 1).request(), Snappy)
	for range 2 {
		t.Run("life", func(t *testing.T) {
			s := New(t, Options{Addr: addr})
			addr = s.Addr()
			s.mustSend(t, req)
			assert.True(t, strings.HasPrefix(s.URL(), "http://"+addr+"/"))
		})
	}
}
