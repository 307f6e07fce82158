// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package interop

import (
	"bytes"
	"fmt"
	"hash/fnv"
	"io"
	"slices"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/timestamppb"
)

// perPage is the difference between the values of two consecutive pages: a value says which page it is from.
const perPage = 100_000

// A showing generates the pages of a pipeline's targets. Series, families, values and order follow from a number.
type showing struct {
	seed   uint64
	kind   string // of labels, and of the number of series
	format expfmt.FormatType
	steady bool // the same series in the same order on each page
}

var (
	showingKinds   = []string{"plain", "plain", "plain", "own", "own", "own", "within", "within", "named", "medium"}
	showingFormats = []expfmt.FormatType{expfmt.TypeTextPlain, expfmt.TypeOpenMetrics, expfmt.TypeProtoDelim}
)

// draw returns a number that follows from the seed and the arguments.
func (s showing) draw(of ...any) uint64 {
	h := fnv.New64a()
	_, _ = fmt.Fprint(h, s.seed, of)
	return h.Sum64() >> 7
}

// metrics returns the number of metrics of a family.
func (s showing) metrics() int {
	switch s.kind {
	case "medium": // more than are built at once without a tree
		return 80
	case "large": // too many for a tree
		return 1600
	}
	return 7
}

// page returns the nth page of a target.
func (s showing) page(target string, n int) (contentType string, body []byte, err error) {
	format := expfmt.NewFormat(s.format)
	var b bytes.Buffer
	enc := expfmt.NewEncoder(&b, format, expfmt.WithCreatedLines())
	for _, f := range s.families(target, n) {
		if err := enc.Encode(f); err != nil {
			return "", nil, fmt.Errorf("cannot encode %s: %w", f.GetName(), err)
		}
	}
	if c, ok := enc.(io.Closer); ok {
		if err := c.Close(); err != nil {
			return "", nil, err
		}
	}
	return string(format), b.Bytes(), nil
}

const showingFamilies = 14

func (s showing) families(target string, n int) (all []*dto.MetricFamily) {
	for f := range showingFamilies {
		if !s.steady && f > 1 && s.draw("family", f, n/2)%8 == 0 {
			continue
		}
		family := s.family(target, f, n)
		if len(family.GetMetric()) > 0 {
			all = append(all, family)
		}
	}
	if !s.steady && s.draw("order", n)%3 == 0 {
		slices.Reverse(all)
		for _, f := range all {
			slices.Reverse(f.GetMetric())
		}
	}
	return all
}

// family returns a family of metrics. The first two are for limits: all of their metrics are on each page.
func (s showing) family(target string, f, n int) *dto.MetricFamily {
	name, kinds := fmt.Sprintf("random_%d", f), []dto.MetricType{
		dto.MetricType_GAUGE, dto.MetricType_COUNTER, dto.MetricType_HISTOGRAM, dto.MetricType_SUMMARY, dto.MetricType_UNTYPED, dto.MetricType_GAUGE, dto.MetricType_COUNTER,
	}
	kind := kinds[f%len(kinds)]
	if f < 2 {
		name = fmt.Sprintf("kept_%d", f)
	}
	if kind == dto.MetricType_COUNTER {
		name += "_total"
	}
	family := &dto.MetricFamily{Name: &name, Type: &kind, Help: proto.String("Help of " + name + ".")}
	for i := range s.metrics() {
		if f > 1 && !s.steady && s.draw("metric", f, i, n/2)%4 == 0 {
			continue
		}
		family.Metric = append(family.Metric, s.metric(kind, target, f, i, n))
	}
	return family
}

func (s showing) metric(kind dto.MetricType, target string, f, i, n int) *dto.Metric {
	m := &dto.Metric{Label: s.labels(target, f, i, n)}
	value := float64(n*perPage+i) + float64(f%2)/2
	begun := &timestamppb.Timestamp{Seconds: 1_000_000_000 + int64(n/5)}
	exemplar := &dto.Exemplar{Label: []*dto.LabelPair{label("trace_id", fmt.Sprint("t", n%3, i))}, Value: proto.Float64(value)}
	if (i+n)%3 > 0 {
		exemplar = nil
	}
	switch kind {
	case dto.MetricType_COUNTER:
		m.Counter = &dto.Counter{Value: &value, CreatedTimestamp: begun, Exemplar: exemplar}
	case dto.MetricType_SUMMARY:
		m.Summary = &dto.Summary{
			SampleCount: proto.Uint64(uint64(value)), SampleSum: &value, CreatedTimestamp: begun,
			Quantile: []*dto.Quantile{{Quantile: proto.Float64(0.5), Value: &value}},
		}
	case dto.MetricType_HISTOGRAM:
		h := &dto.Histogram{SampleCount: proto.Uint64(uint64(value)), SampleSum: &value, CreatedTimestamp: begun}
		if f%3 == 0 && s.format == expfmt.TypeProtoDelim {
			h.Schema, h.ZeroThreshold, h.ZeroCount = proto.Int32(1), proto.Float64(0.01), proto.Uint64(uint64(n))
			h.PositiveSpan = []*dto.BucketSpan{{Offset: proto.Int32(int32(n % 3)), Length: proto.Uint32(2)}, {Offset: proto.Int32(1), Length: proto.Uint32(1)}}
			h.PositiveDelta = []int64{int64(n), 1, int64(i)}
			h.SampleCount = proto.Uint64(uint64(4*n + 2 + i))
		} else {
			for j, bound := range []float64{0.5, 1, 2.5} {
				h.Bucket = append(h.Bucket, &dto.Bucket{CumulativeCount: proto.Uint64(uint64(n*(j+1) + i)), UpperBound: &bound, Exemplar: exemplar})
			}
		}
		m.Histogram = h
	case dto.MetricType_UNTYPED:
		m.Untyped = &dto.Untyped{Value: &value}
	default:
		m.Gauge = &dto.Gauge{Value: &value}
		if f == 5 {
			m.TimestampMs = proto.Int64(1_700_000_000_000 + int64(n)*1000)
		}
	}
	return m
}

func (s showing) labels(target string, f, i, n int) []*dto.LabelPair {
	path := fmt.Sprint("/path", i)
	if s.kind == "within" { // a value of the target's own within other text
		path = fmt.Sprintf("/var/pods/%x/volume%d", s.draw("uid", target, n/7), i)
	}
	if f == 8 && i == 0 && !s.steady { // a new one now and then
		path = fmt.Sprint("/once", n/3)
	}
	all := []*dto.LabelPair{label("code", fmt.Sprint(200+i%3)), label("path", path), label("user", fmt.Sprint("u", i))}
	switch {
	case s.kind == "own": // whose name changes after a while
		all = append(all, label("pod", fmt.Sprintf("pod-%s-%d", target, n/6)))
	case s.kind == "named" && i%2 == 0:
		all = append(all, label("node", target))
	}
	return all
}

func label(name, value string) *dto.LabelPair { return &dto.LabelPair{Name: &name, Value: &value} }
