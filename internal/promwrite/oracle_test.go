// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package promwrite

import (
	"errors"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/prometheus/prometheus/prompb"
	writev2 "github.com/prometheus/prometheus/prompb/io/prometheus/write/v2"
	"github.com/stretchr/testify/require"
)

// The oracle is Prometheus's own generated code. This file converts its messages to what Decode must return.

func fromV1(req *prompb.WriteRequest) (series []Series, metadata []Metadata) {
	labels := func(in []prompb.Label) (out []Label) {
		for _, l := range in {
			out = append(out, Label{l.Name, l.Value})
		}
		return out
	}
	for _, ts := range req.Timeseries {
		s := Series{Labels: labels(ts.Labels)}
		for _, p := range ts.Samples {
			s.Samples = append(s.Samples, Sample{Value: p.Value, Timestamp: p.Timestamp})
		}
		for _, e := range ts.Exemplars {
			s.Exemplars = append(s.Exemplars, Exemplar{labels(e.Labels), e.Value, e.Timestamp})
		}
		for i := range ts.Histograms {
			h := &ts.Histograms[i]
			out := Histogram{
				Timestamp: h.Timestamp, Sum: h.Sum, ZeroThreshold: h.ZeroThreshold,
				Schema: h.Schema, ResetHint: ResetHint(h.ResetHint), CustomValues: h.CustomValues,
				PositiveDeltas: h.PositiveDeltas, PositiveCounts: h.PositiveCounts, PositiveSpans: spans(h.PositiveSpans),
				NegativeDeltas: h.NegativeDeltas, NegativeCounts: h.NegativeCounts, NegativeSpans: spans(h.NegativeSpans),
			}
			switch n := h.Count.(type) {
			case *prompb.Histogram_CountInt:
				out.Count = Number{Int: n.CountInt}
			case *prompb.Histogram_CountFloat:
				out.Count = Number{Float: n.CountFloat, IsFloat: true}
			}
			switch n := h.ZeroCount.(type) {
			case *prompb.Histogram_ZeroCountInt:
				out.ZeroCount = Number{Int: n.ZeroCountInt}
			case *prompb.Histogram_ZeroCountFloat:
				out.ZeroCount = Number{Float: n.ZeroCountFloat, IsFloat: true}
			}
			s.Histograms = append(s.Histograms, out)
		}
		series = append(series, s)
	}
	for _, m := range req.Metadata {
		metadata = append(metadata, Metadata{MetricType(m.Type), m.MetricFamilyName, m.Help, m.Unit})
	}
	return series, metadata
}

func fromV2(req *writev2.Request) (series []Series) {
	labels := func(refs []uint32) (out []Label) {
		for i := 0; i < len(refs); i += 2 {
			out = append(out, Label{req.Symbols[refs[i]], req.Symbols[refs[i+1]]})
		}
		return out
	}
	text := func(ref uint32) string {
		if ref == 0 {
			return ""
		}
		return req.Symbols[ref]
	}
	for _, ts := range req.Timeseries {
		s := Series{
			Labels: labels(ts.LabelsRefs), Type: MetricType(ts.Metadata.Type),
			Help: text(ts.Metadata.HelpRef), Unit: text(ts.Metadata.UnitRef),
		}
		for _, p := range ts.Samples {
			s.Samples = append(s.Samples, Sample{p.Value, p.Timestamp, p.StartTimestamp})
		}
		for _, e := range ts.Exemplars {
			s.Exemplars = append(s.Exemplars, Exemplar{labels(e.LabelsRefs), e.Value, e.Timestamp})
		}
		for i := range ts.Histograms {
			h := &ts.Histograms[i]
			out := Histogram{
				Timestamp: h.Timestamp, StartTimestamp: h.StartTimestamp, Sum: h.Sum, ZeroThreshold: h.ZeroThreshold,
				Schema: h.Schema, ResetHint: ResetHint(h.ResetHint), CustomValues: h.CustomValues,
				PositiveDeltas: h.PositiveDeltas, PositiveCounts: h.PositiveCounts, PositiveSpans: spans(h.PositiveSpans),
				NegativeDeltas: h.NegativeDeltas, NegativeCounts: h.NegativeCounts, NegativeSpans: spans(h.NegativeSpans),
			}
			switch n := h.Count.(type) {
			case *writev2.Histogram_CountInt:
				out.Count = Number{Int: n.CountInt}
			case *writev2.Histogram_CountFloat:
				out.Count = Number{Float: n.CountFloat, IsFloat: true}
			}
			switch n := h.ZeroCount.(type) {
			case *writev2.Histogram_ZeroCountInt:
				out.ZeroCount = Number{Int: n.ZeroCountInt}
			case *writev2.Histogram_ZeroCountFloat:
				out.ZeroCount = Number{Float: n.ZeroCountFloat, IsFloat: true}
			}
			s.Histograms = append(s.Histograms, out)
		}
		series = append(series, s)
	}
	return series
}

func spans[S prompb.BucketSpan | writev2.BucketSpan](in []S) (out []Span) {
	for _, s := range in {
		switch s := any(s).(type) {
		case prompb.BucketSpan:
			out = append(out, Span{s.Offset, s.Length})
		case writev2.BucketSpan:
			out = append(out, Span{s.Offset, s.Length})
		}
	}
	return out
}

// diff compares floats by their bits: a stale marker is one of many NaNs.
func diff(want, got any) string {
	return cmp.Diff(want, got, cmpopts.EquateEmpty(), cmp.Comparer(func(a, b float64) bool {
		return math.Float64bits(a) == math.Float64bits(b)
	}))
}

// dice generates random requests.
type dice struct{ *rand.Rand }

func newDice(seed uint64) dice { return dice{rand.New(rand.NewPCG(seed, seed))} }

func times[T any](n int, f func() T) (out []T) {
	for range n {
		out = append(out, f())
	}
	return out
}

func (d dice) text() string {
	return string(times(d.IntN(20), func() byte { return byte(d.IntN(256)) }))
}

func (d dice) float() float64 {
	switch d.IntN(4) {
	case 0:
		return 0
	case 1:
		return math.Float64frombits(StaleNaN)
	case 2:
		return math.Float64frombits(d.Uint64())
	}
	return float64(d.IntN(1000))
}

func (d dice) int64() int64 { return int64(d.Uint64()) >> d.IntN(64) }

func (d dice) v1() *prompb.WriteRequest {
	labels := func() []prompb.Label {
		return times(d.IntN(6), func() prompb.Label { return prompb.Label{Name: d.text(), Value: d.text()} })
	}
	span := func() prompb.BucketSpan {
		return prompb.BucketSpan{Offset: int32(d.int64()), Length: d.Uint32()}
	}
	histogram := func() prompb.Histogram {
		h := prompb.Histogram{
			Sum: d.float(), Schema: int32(d.int64()), ZeroThreshold: d.float(), Timestamp: 1 + d.int64(),
			NegativeSpans: times(d.IntN(3), span), NegativeDeltas: times(d.IntN(5), d.int64), NegativeCounts: times(d.IntN(5), d.float),
			PositiveSpans: times(d.IntN(3), span), PositiveDeltas: times(d.IntN(5), d.int64), PositiveCounts: times(d.IntN(5), d.float),
			ResetHint: prompb.Histogram_ResetHint(d.IntN(4)), CustomValues: times(d.IntN(5), d.float),
			Count: &prompb.Histogram_CountInt{CountInt: d.Uint64()}, ZeroCount: &prompb.Histogram_ZeroCountInt{ZeroCountInt: d.Uint64()},
		}
		if d.IntN(2) == 0 {
			h.Count, h.ZeroCount = &prompb.Histogram_CountFloat{CountFloat: d.float()}, &prompb.Histogram_ZeroCountFloat{ZeroCountFloat: d.float()}
		}
		return h
	}
	return &prompb.WriteRequest{
		Timeseries: times(d.IntN(10), func() prompb.TimeSeries {
			return prompb.TimeSeries{
				Labels:  append(labels(), prompb.Label{Name: "__name__", Value: "x"}),
				Samples: times(d.IntN(4), func() prompb.Sample { return prompb.Sample{Value: d.float(), Timestamp: d.int64()} }),
				Exemplars: times(d.IntN(3), func() prompb.Exemplar {
					return prompb.Exemplar{Labels: labels(), Value: d.float(), Timestamp: d.int64()}
				}),
				Histograms: times(d.IntN(3), histogram),
			}
		}),
		Metadata: times(d.IntN(4), func() prompb.MetricMetadata {
			return prompb.MetricMetadata{Type: prompb.MetricMetadata_MetricType(d.IntN(9)), MetricFamilyName: d.text(), Help: d.text(), Unit: d.text()}
		}),
	}
}

func (d dice) v2() *writev2.Request {
	symbols := append([]string{""}, times(d.IntN(300), d.text)...)
	ref := func() uint32 { return uint32(d.IntN(len(symbols))) }
	labels := func() []uint32 { return times(2*d.IntN(6), ref) }
	span := func() writev2.BucketSpan {
		return writev2.BucketSpan{Offset: int32(d.int64()), Length: d.Uint32()}
	}
	histogram := func() writev2.Histogram {
		h := writev2.Histogram{
			Sum: d.float(), Schema: int32(d.int64()), ZeroThreshold: d.float(), Timestamp: 1 + d.int64(), StartTimestamp: d.int64(),
			NegativeSpans: times(d.IntN(3), span), NegativeDeltas: times(d.IntN(5), d.int64), NegativeCounts: times(d.IntN(5), d.float),
			PositiveSpans: times(d.IntN(3), span), PositiveDeltas: times(d.IntN(5), d.int64), PositiveCounts: times(d.IntN(5), d.float),
			ResetHint: writev2.Histogram_ResetHint(d.IntN(4)), CustomValues: times(d.IntN(5), d.float),
			Count: &writev2.Histogram_CountInt{CountInt: d.Uint64()}, ZeroCount: &writev2.Histogram_ZeroCountInt{ZeroCountInt: d.Uint64()},
		}
		if d.IntN(2) == 0 {
			h.Count, h.ZeroCount = &writev2.Histogram_CountFloat{CountFloat: d.float()}, &writev2.Histogram_ZeroCountFloat{ZeroCountFloat: d.float()}
		}
		return h
	}
	return &writev2.Request{
		Symbols: symbols,
		Timeseries: times(d.IntN(10), func() writev2.TimeSeries {
			return writev2.TimeSeries{
				LabelsRefs: append(labels(), ref(), ref()),
				Samples: times(1+d.IntN(4), func() writev2.Sample {
					return writev2.Sample{Value: d.float(), Timestamp: 1 + d.int64(), StartTimestamp: d.int64()}
				}),
				Exemplars: times(d.IntN(3), func() writev2.Exemplar {
					return writev2.Exemplar{LabelsRefs: labels(), Value: d.float(), Timestamp: d.int64()}
				}),
				Histograms: times(d.IntN(3), histogram),
				Metadata:   writev2.Metadata{Type: writev2.Metadata_MetricType(d.IntN(9)), HelpRef: ref(), UnitRef: ref()},
			}
		}),
	}
}

func TestDecodeYieldsWhatPrometheusMarshals(t *testing.T) {
	var d Decoder // one for all, so that leftovers of a request would show in the next
	for seed := range uint64(500) {
		v1 := newDice(seed).v1()
		body, err := v1.Marshal()
		require.NoError(t, err)
		require.NoError(t, d.Decode(V1, body))
		clear(body) // nothing may refer to it
		series, metadata := fromV1(v1)
		require.Empty(t, diff(series, d.Series), "seed %d", seed)
		require.Empty(t, diff(metadata, d.Metadata), "seed %d", seed)

		v2 := newDice(seed).v2()
		body, err = v2.Marshal()
		require.NoError(t, err)
		require.NoError(t, d.Decode(V2, body))
		clear(body)
		require.Empty(t, diff(fromV2(v2), d.Series), "seed %d", seed)
		require.Empty(t, d.Metadata)
	}
}

// stricter lists why Decode deliberately refuses bodies that Prometheus's decoder accepts: numbers and tags that do not
// fit their type (gogo drops the upper bits), groups (proto3 has none), packed numbers that extend beyond their field
// (gogo reads on into the next one), references that Prometheus itself refuses a step later, symbol tables that do not
// begin as specified, and bodies of empty messages.
var stricter = []error{errVarint, errTag, errGroup, errPacked, errOddRefs, errNoSymbol, errFirstSymbol, errDense}

func isStricter(err error) bool {
	for _, reason := range stricter {
		if errors.Is(err, reason) {
			return true
		}
	}
	return false
}

func FuzzDecode(f *testing.F) {
	for seed := range uint64(1000) {
		v1, _ := newDice(seed).v1().Marshal()
		v2, _ := newDice(seed).v2().Marshal()
		for second, body := range map[bool][]byte{false: v1, true: v2} {
			if len(body) < 300 { // the fuzzer learns little from long ones, and slowly
				f.Add(second, body)
			}
		}
	}
	f.Fuzz(func(t *testing.T, second bool, body []byte) {
		checkMeasure(t, V1, body)
		checkMeasure(t, V2, body)
		checkEach(t, V1, body)
		checkEach(t, V2, body)
		var d Decoder
		var err, oracleErr error
		var series []Series
		var metadata []Metadata
		if second {
			err = d.Decode(V2, body)
			var req writev2.Request
			if oracleErr = req.Unmarshal(body); oracleErr == nil && err == nil {
				series = fromV2(&req)
			}
		} else {
			err = d.Decode(V1, body)
			var req prompb.WriteRequest
			if oracleErr = req.Unmarshal(body); oracleErr == nil && err == nil {
				series, metadata = fromV1(&req)
			}
		}
		switch {
		case err == nil && oracleErr != nil:
			t.Fatalf("taken, though Prometheus says %v", oracleErr)
		case err == nil:
			require.Empty(t, diff(series, d.Series))
			require.Empty(t, diff(metadata, d.Metadata))
		case oracleErr == nil && !isStricter(err):
			t.Fatalf("Prometheus takes it, but: %v", err)
		default:
			require.Empty(t, d.Series)
			require.Empty(t, d.Metadata)
		}
	})
}
