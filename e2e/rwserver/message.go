// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package rwserver

import (
	"fmt"
	"net/http"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/metadata"
	"github.com/prometheus/prometheus/prompb"
	writev2 "github.com/prometheus/prometheus/prompb/io/prometheus/write/v2"
)

// message is a decoded request of either version.
type message struct {
	version, encoding string
	rawBytes          int

	series   []Series
	metadata map[string]metadata.Metadata

	samples, histograms, exemplars int
	violations                     []string
}

func (m *message) violate(format string, args ...any) {
	if len(m.violations) < maxViolations {
		m.violations = append(m.violations, fmt.Sprintf("remote write "+m.version+": "+format, args...))
	}
}

// The dialect that introduced zstd has a version header of its own.
const victoriaVersion = "X-Victoriametrics-Remote-Write-Version"

func (m *message) checkHeader(h http.Header) {
	if h.Get("User-Agent") == "" {
		m.violate("no User-Agent")
	}
	const name = "X-Prometheus-Remote-Write-Version"
	want := "0.1.0"
	if m.version == V2 {
		want = "2.0.0"
	}
	got := h.Get(name)
	if got == "" && m.version == V1 && m.encoding == Zstd && h.Get(victoriaVersion) != "" {
		return
	}
	if got != want {
		m.violate("header %s is %q, not %q", name, got, want)
	}
}

func (m *message) decodeV1(raw []byte) error {
	var req prompb.WriteRequest
	if err := req.Unmarshal(raw); err != nil {
		return fmt.Errorf("cannot decode %d bytes of remote write 1.0: %w", len(raw), err)
	}
	if len(req.XXX_unrecognized) > 0 {
		m.violate("unknown fields of %d bytes in the request", len(req.XXX_unrecognized))
	}
	m.metadata = map[string]metadata.Metadata{}
	for _, md := range req.Metadata {
		m.metadata[md.MetricFamilyName] = metadata.Metadata{Type: typeV1(md.Type), Help: md.Help, Unit: md.Unit}
	}
	b := labels.NewScratchBuilder(0)
	for _, ts := range req.Timeseries {
		m.checkLabelsV1(ts.Labels)
		s := Series{Labels: ts.ToLabels(&b, nil)}
		for _, sample := range ts.Samples {
			s.Samples = append(s.Samples, Sample{T: sample.Timestamp, V: sample.Value})
		}
		for _, h := range ts.Histograms {
			s.Histograms = append(s.Histograms, histogramOf(h, h.Timestamp, 0))
		}
		for _, e := range ts.Exemplars {
			s.Exemplars = append(s.Exemplars, e.ToExemplar(&b, nil))
		}
		if n := len(ts.XXX_unrecognized); n > 0 {
			m.violate("unknown fields of %d bytes in series %s", n, s.Labels)
		}
		m.take(s)
	}
	return nil
}

func (m *message) decodeV2(raw []byte) error {
	var req writev2.Request
	if err := req.Unmarshal(raw); err != nil {
		return fmt.Errorf("cannot decode %d bytes of remote write 2.0: %w", len(raw), err)
	}
	if len(req.XXX_unrecognized) > 0 {
		m.violate("unknown fields of %d bytes in the request", len(req.XXX_unrecognized))
	}
	m.checkSymbols(req)
	m.metadata = map[string]metadata.Metadata{}
	b := labels.NewScratchBuilder(0)
	for i, ts := range req.Timeseries {
		lset, err := ts.ToLabels(&b, req.Symbols)
		if err != nil {
			return fmt.Errorf("cannot resolve the labels of series %d of %d: %w", i, len(req.Timeseries), err)
		}
		m.checkLabelsV2(ts.LabelsRefs, req.Symbols)
		s := Series{Labels: lset}
		for _, sample := range ts.Samples {
			s.Samples = append(s.Samples, Sample{T: sample.Timestamp, V: sample.Value, ST: sample.StartTimestamp})
		}
		for _, h := range ts.Histograms {
			s.Histograms = append(s.Histograms, histogramOf(h, h.Timestamp, h.StartTimestamp))
		}
		for _, e := range ts.Exemplars {
			ex, err := e.ToExemplar(&b, req.Symbols)
			if err != nil {
				return fmt.Errorf("cannot resolve an exemplar of %s: %w", lset, err)
			}
			s.Exemplars = append(s.Exemplars, ex)
		}
		md, err := ts.ToMetadata(req.Symbols)
		if err != nil {
			return fmt.Errorf("cannot resolve the metadata of %s: %w", lset, err)
		}
		if !md.IsEmpty() {
			m.metadata[lset.Get(model.MetricNameLabel)] = md
		}
		if n := len(ts.XXX_unrecognized); n > 0 {
			m.violate("unknown fields of %d bytes in series %s", n, lset)
		}
		m.take(s)
	}
	return nil
}

func (m *message) take(s Series) {
	m.checkSeries(s)
	m.series = append(m.series, s)
	m.samples += len(s.Samples)
	m.histograms += len(s.Histograms)
	m.exemplars += len(s.Exemplars)
}

func typeV1(t prompb.MetricMetadata_MetricType) model.MetricType {
	switch t {
	case prompb.MetricMetadata_COUNTER:
		return model.MetricTypeCounter
	case prompb.MetricMetadata_GAUGE:
		return model.MetricTypeGauge
	case prompb.MetricMetadata_HISTOGRAM:
		return model.MetricTypeHistogram
	case prompb.MetricMetadata_GAUGEHISTOGRAM:
		return model.MetricTypeGaugeHistogram
	case prompb.MetricMetadata_SUMMARY:
		return model.MetricTypeSummary
	case prompb.MetricMetadata_INFO:
		return model.MetricTypeInfo
	case prompb.MetricMetadata_STATESET:
		return model.MetricTypeStateset
	}
	return model.MetricTypeUnknown
}
