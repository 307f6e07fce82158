// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package rwserver

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"testing"

	"github.com/golang/snappy"
	"github.com/klauspost/compress/zstd"
	"github.com/prometheus/prometheus/model/histogram"
	"github.com/prometheus/prometheus/prompb"
	writev2 "github.com/prometheus/prometheus/prompb/io/prometheus/write/v2"
	"github.com/stretchr/testify/require"
)

// aSeries builds series of remote write 1.0, valid or not.
type aSeries struct{ prompb.TimeSeries }

func v1(name string, pairs ...string) aSeries {
	s := aSeries{prompb.TimeSeries{Labels: []prompb.Label{{Name: "__name__", Value: name}}}}
	for i := 0; i < len(pairs); i += 2 {
		s.Labels = append(s.Labels, prompb.Label{Name: pairs[i], Value: pairs[i+1]})
	}
	return s
}

// samples adds samples: timestamp, value, and so on.
func (s aSeries) samples(pairs ...float64) aSeries {
	for i := 0; i < len(pairs); i += 2 {
		s.Samples = append(s.Samples, prompb.Sample{Timestamp: int64(pairs[i]), Value: pairs[i+1]})
	}
	return s
}

func (s aSeries) histogram(at int64) aSeries {
	s.Histograms = append(s.Histograms, prompb.FromIntHistogram(at, aHistogram()))
	return s
}

func (s aSeries) request() *prompb.WriteRequest {
	return &prompb.WriteRequest{Timeseries: []prompb.TimeSeries{s.TimeSeries}}
}

func aHistogram() *histogram.Histogram {
	return &histogram.Histogram{
		Count: 2, Sum: 3,
		PositiveSpans:   []histogram.Span{{Offset: 0, Length: 1}},
		PositiveBuckets: []int64{2},
	}
}

// sent is a request to send, which tests may break.
type sent struct {
	http.Header

	body []byte
}

func message1(t *testing.T, req *prompb.WriteRequest, encoding string) sent {
	t.Helper()
	raw, err := req.Marshal()
	require.NoError(t, err)
	return sent{http.Header{
		"Content-Type":                      {"application/x-protobuf"},
		"Content-Encoding":                  {encoding},
		"User-Agent":                        {"test"},
		"X-Prometheus-Remote-Write-Version": {"0.1.0"},
	}, pack(t, raw, encoding)}
}

func message2(t *testing.T, req *writev2.Request, encoding string) sent {
	t.Helper()
	raw, err := req.Marshal()
	require.NoError(t, err)
	return sent{http.Header{
		"Content-Type":                      {"application/x-protobuf;proto=io.prometheus.write.v2.Request"},
		"Content-Encoding":                  {encoding},
		"User-Agent":                        {"test"},
		"X-Prometheus-Remote-Write-Version": {"2.0.0"},
	}, pack(t, raw, encoding)}
}

func pack(t *testing.T, raw []byte, encoding string) []byte {
	t.Helper()
	if encoding == Snappy {
		return snappy.Encode(nil, raw)
	}
	w, err := zstd.NewWriter(nil)
	require.NoError(t, err)
	defer w.Close()
	return w.EncodeAll(raw, nil)
}

func (s *Server) send(ctx context.Context, m sent) (*http.Response, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, s.URL(), bytes.NewReader(m.body))
	if err != nil {
		return nil, err
	}
	req.Header = m.Clone()
	c := http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	resp, err := c.Do(req)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	_, err = io.Copy(io.Discard, resp.Body)
	return resp, err
}

func (s *Server) mustSend(t *testing.T, m sent) *http.Response {
	t.Helper()
	resp, err := s.send(t.Context(), m)
	require.NoError(t, err)
	return resp
}
