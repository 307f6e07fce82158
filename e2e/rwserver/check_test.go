// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package rwserver

import (
	"fmt"
	"testing"

	"github.com/prometheus/prometheus/prompb"
	writev2 "github.com/prometheus/prometheus/prompb/io/prometheus/write/v2"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestBreachesOfVersion1AreSeen(t *testing.T) {
	f := func(want string, series ...aSeries) {
		t.Helper()
		s := New(t, Options{})
		req := &prompb.WriteRequest{}
		for _, one := range series {
			req.Timeseries = append(req.Timeseries, one.TimeSeries)
		}
		s.mustSend(t, message1(t, req, Snappy))
		require.NotEmpty(t, s.Violations(), want)
		assert.Contains(t, s.Violations()[0], want)
	}
	f(`label "a" after "b"`, v1("up", "b", "1", "a", "1"))
	f(`label "a" twice`, v1("up", "a", "1", "a", "2"))
	f(`empty label name`, aSeries{prompb.TimeSeries{Labels: []prompb.Label{{Value: "1"}, {Name: "__name__", Value: "up"}}}})
	f(`empty value of label "a"`, v1("up", "a", ""))
	f(`label name "a.b" is not of the 1.0 alphabet`, v1("up", "a.b", "1"))
	f(`is not UTF-8`, v1("up", "a", "\xff"))
	f(`no metric name`, aSeries{prompb.TimeSeries{Labels: []prompb.Label{{Name: "a", Value: "1"}}}})
	f(`timestamp 1 of {__name__="up"} is not after the one before`, v1("up").samples(2, 1, 1, 1))
	f(`samples and histograms in one series`, v1("up").samples(1, 1).histogram(1))
}

func TestBreachesOfVersion2AreSeen(t *testing.T) {
	up := []string{"", "__name__", "up", "a", "b"}
	sample := []writev2.Sample{{Timestamp: 1}}
	f := func(want string, symbols []string, series writev2.TimeSeries) {
		t.Helper()
		s := New(t, Options{})
		resp := s.mustSend(t, message2(t, &writev2.Request{Symbols: symbols, Timeseries: []writev2.TimeSeries{series}}, Zstd))
		require.NotEmpty(t, s.Violations(), "%s (status %d)", want, resp.StatusCode)
		assert.Contains(t, s.Violations()[0], want)
	}
	f("the first symbol is not the empty string", up[1:], writev2.TimeSeries{LabelsRefs: []uint32{0, 1}, Samples: sample})
	f(`symbol "a" twice`, append(up, "a"), writev2.TimeSeries{LabelsRefs: []uint32{1, 2}, Samples: sample})
	f("neither samples nor histograms", up, writev2.TimeSeries{LabelsRefs: []uint32{1, 2}})
	f(`empty value of label "a"`, up, writev2.TimeSeries{LabelsRefs: []uint32{1, 2, 3, 0}, Samples: sample})
	f(`label "__name__" after "a"`, up, writev2.TimeSeries{LabelsRefs: []uint32{3, 4, 1, 2}, Samples: sample})
	f("cannot resolve the labels of series 0 of 1", up, writev2.TimeSeries{LabelsRefs: []uint32{1, 9}, Samples: sample})
	f("cannot resolve the labels of series 0 of 1", up, writev2.TimeSeries{LabelsRefs: []uint32{1}, Samples: sample})
	f("cannot resolve the metadata", up, writev2.TimeSeries{LabelsRefs: []uint32{1, 2}, Samples: sample, Metadata: writev2.Metadata{HelpRef: 9}})
	f("cannot resolve an exemplar", up, writev2.TimeSeries{LabelsRefs: []uint32{1, 2}, Samples: sample, Exemplars: []writev2.Exemplar{{LabelsRefs: []uint32{9, 9}}}})
	f("unknown fields of 2 bytes in series", up, writev2.TimeSeries{LabelsRefs: []uint32{1, 2}, Samples: sample, XXX_unrecognized: []byte{0x7a, 0}})
}

func TestBadHeadersAndBodiesAreAnswered(t *testing.T) {
	s := New(t, Options{})
	f := func(name, value string, status int, violation string) {
		t.Helper()
		req := message1(t, v1("up").samples(1, 1).request(), Snappy)
		req.Set(name, value)
		before := len(s.Violations())
		assert.Equal(t, status, s.mustSend(t, req).StatusCode)
		if violation == "" {
			assert.Len(t, s.Violations(), before)
			return
		}
		require.Len(t, s.Violations(), before+1)
		assert.Contains(t, s.Violations()[before], violation)
	}
	f("Content-Type", "text/plain", 415, "")
	f("Content-Type", "application/x-protobuf;proto=other.Request", 415, "")
	f("Content-Type", "application/x-protobuf;proto=prometheus.WriteRequest", 204, "")
	f("Content-Encoding", "br", 415, "")
	f("Content-Encoding", "zstd", 400, "magic number mismatch")
	f("User-Agent", "", 204, "no User-Agent")
	f("X-Prometheus-Remote-Write-Version", "1.0", 204, `is "1.0", not "0.1.0"`)

	garbage := message1(t, v1("up").samples(1, 1).request(), Snappy)
	garbage.body = pack(t, []byte("\xff\xff"), Snappy)
	assert.Equal(t, 400, s.mustSend(t, garbage).StatusCode)
	garbage.body = []byte("\xff\xff\xff\xff\xff\xff")
	assert.Equal(t, 400, s.mustSend(t, garbage).StatusCode)
}

func TestTheDialectThatBroughtZstdIsNoBreach(t *testing.T) {
	s := New(t, Options{})
	req := message1(t, v1("up").samples(1, 1).request(), Zstd)
	req.Del("X-Prometheus-Remote-Write-Version")
	req.Set(victoriaVersion, "1")
	s.mustSend(t, req)
	assert.Empty(t, s.Violations())
}

func TestStepsBackAcrossRequestsAreSeen(t *testing.T) {
	s := New(t, Options{})
	for _, at := range []float64{2, 3, 3} {
		s.mustSend(t, message1(t, v1("a").samples(at, 0).request(), Snappy))
	}
	s.mustSend(t, message1(t, v1("h").histogram(7).request(), Snappy))
	s.mustSend(t, message1(t, v1("h").histogram(6).request(), Snappy))
	s.mustSend(t, message1(t, v1("fine").samples(1, 0, 2, 0).request(), Snappy))
	assert.Equal(t, []string{`{__name__="a"} at 3`, `{__name__="h"} at 6`}, s.StepsBack())
	assert.Empty(t, s.Violations(), "a request says nothing of the one before")
}

func TestWhatIsRememberedOfBreachesIsBounded(t *testing.T) {
	s := New(t, Options{})
	req := &prompb.WriteRequest{}
	for i := range 2 * maxViolations {
		req.Timeseries = append(req.Timeseries, v1("up", "a", "", "i", fmt.Sprint(i)).TimeSeries)
	}
	for range 2 {
		s.mustSend(t, message1(t, req, Snappy))
	}
	assert.Len(t, s.Violations(), maxViolations)
}
