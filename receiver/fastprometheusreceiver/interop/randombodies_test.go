// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package interop

import (
	"fmt"
	"math"
	"slices"

	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/prompb"
	writev2 "github.com/prometheus/prometheus/prompb/io/prometheus/write/v2"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/pdata/pmetric/pmetricotlp"

	"github.com/godwit-otel/godwit/internal/promwrite"
)

// A sending generates requests whose series, order and values follow from a number.
type sending struct {
	showing

	series int
}

// A sentSeries is a series of a request, a number or a native histogram.
type sentSeries struct {
	labels    labels.Labels
	histogram bool
	counter   bool
	value     float64
	exemplar  bool
}

// request returns the nth request of a sender: mostly the previous series, with some missing, new, or in another order.
func (s sending) request(sender string, n int) (all []sentSeries) {
	for i := range s.series {
		if !s.steady && s.draw("series", i, n/3)%6 == 0 {
			continue
		}
		name, path := fmt.Sprintf("random_%d", i/5), fmt.Sprint("/path", i)
		switch {
		case i < 10:
			name = fmt.Sprintf("kept_%d", i/5)
		case !s.steady && s.draw("new", i)%9 == 0:
			path = fmt.Sprint("/new", i, "-", n/4)
		}
		set := map[string]string{
			"__name__": name, "code": fmt.Sprint(200 + i%3), "instance": "host-" + sender + ":1", "job": "node", "path": path, "target": sender, "user": fmt.Sprint("u", i),
		}
		if s.kind == "own" {
			set["pod"] = fmt.Sprintf("pod-%s-%d", sender, n/9)
		}
		one := sentSeries{labels: labels.FromMap(set), value: float64(n*perPage + i), histogram: i/5%4 == 3, counter: i/5%4 == 1, exemplar: (i+n)%5 == 0}
		if s.draw("stale", i, n)%40 == 0 {
			one.value, one.exemplar = math.Float64frombits(promwrite.StaleNaN), false
		}
		all = append(all, one)
	}
	if !s.steady && s.draw("order", n)%4 == 0 {
		slices.Reverse(all)
	}
	return all
}

// timeOf returns the time of a request's samples, in milliseconds.
func timeOf(n int) int64 { return 1000 + int64(n) }

var randomFormats = map[string]func(all []sentSeries, at int64) ([]byte, error){
	"1.0": inVersion1, "2.0": inVersion2, "otlp": inOTLP,
}

func inVersion1(all []sentSeries, at int64) ([]byte, error) {
	var r prompb.WriteRequest
	for _, s := range all {
		ts := prompb.TimeSeries{Labels: prompb.FromLabels(s.labels, nil)}
		if s.histogram {
			ts.Histograms = []prompb.Histogram{{
				Count: &prompb.Histogram_CountInt{CountInt: 4}, Sum: s.value, Schema: 1, ZeroThreshold: 0.01, ZeroCount: &prompb.Histogram_ZeroCountInt{ZeroCountInt: 1},
				PositiveSpans: []prompb.BucketSpan{{Offset: 1, Length: 2}}, PositiveDeltas: []int64{1, 1}, Timestamp: at,
			}}
		} else {
			ts.Samples = []prompb.Sample{{Value: s.value, Timestamp: at}}
		}
		if s.exemplar {
			ts.Exemplars = []prompb.Exemplar{{Labels: []prompb.Label{{Name: "trace_id", Value: fmt.Sprint("t", s.value)}}, Value: s.value, Timestamp: at}}
		}
		r.Timeseries = append(r.Timeseries, ts)
	}
	return r.Marshal()
}

func inVersion2(all []sentSeries, at int64) ([]byte, error) {
	var r writev2.Request
	symbols := writev2.NewSymbolTable()
	for _, s := range all {
		ts := writev2.TimeSeries{LabelsRefs: symbols.SymbolizeLabels(s.labels, nil)}
		ts.Metadata.Type, ts.Metadata.HelpRef = writev2.Metadata_METRIC_TYPE_GAUGE, symbols.Symbolize("Help.")
		start := int64(0)
		if s.counter {
			ts.Metadata.Type, start = writev2.Metadata_METRIC_TYPE_COUNTER, 500
		}
		if s.histogram {
			ts.Metadata.Type = writev2.Metadata_METRIC_TYPE_HISTOGRAM
			ts.Histograms = []writev2.Histogram{{
				Count: &writev2.Histogram_CountInt{CountInt: 4}, Sum: s.value, Schema: 1, ZeroThreshold: 0.01, ZeroCount: &writev2.Histogram_ZeroCountInt{ZeroCountInt: 1},
				PositiveSpans: []writev2.BucketSpan{{Offset: 1, Length: 2}}, PositiveDeltas: []int64{1, 1}, Timestamp: at,
			}}
		} else {
			ts.Samples = []writev2.Sample{{Value: s.value, Timestamp: at, StartTimestamp: start}}
		}
		if s.exemplar {
			ts.Exemplars = []writev2.Exemplar{{LabelsRefs: symbols.SymbolizeLabels(labels.FromStrings("trace_id", fmt.Sprint("t", s.value)), nil), Value: s.value, Timestamp: at}}
		}
		r.Timeseries = append(r.Timeseries, ts)
	}
	r.Symbols = symbols.Symbols()
	return r.Marshal()
}

// inOTLP encodes adjacent series of the same name as points of one metric.
func inOTLP(all []sentSeries, at int64) ([]byte, error) {
	md := pmetric.NewMetrics()
	var ms pmetric.MetricSlice
	var m pmetric.Metric
	for i, s := range all {
		if i == 0 {
			rm := md.ResourceMetrics().AppendEmpty()
			rm.Resource().Attributes().PutStr("service.instance.id", s.labels.Get("instance"))
			rm.Resource().Attributes().PutStr("service.name", s.labels.Get("job"))
			ms = rm.ScopeMetrics().AppendEmpty().Metrics()
		}
		if i == 0 || all[i-1].labels.Get("__name__") != s.labels.Get("__name__") {
			m = ms.AppendEmpty()
			m.SetName(s.labels.Get("__name__"))
			m.SetUnit("By")
		}
		var of pcommon.Map
		var es pmetric.ExemplarSlice
		stamp := pcommon.Timestamp(at * 1_000_000)
		flags := pmetric.DefaultDataPointFlags
		if math.IsNaN(s.value) {
			flags = flags.WithNoRecordedValue(true)
		}
		if s.histogram {
			if m.Type() == pmetric.MetricTypeEmpty {
				m.SetEmptyHistogram().SetAggregationTemporality(pmetric.AggregationTemporalityCumulative)
			}
			p := m.Histogram().DataPoints().AppendEmpty()
			p.SetTimestamp(stamp)
			p.SetFlags(flags)
			if !math.IsNaN(s.value) {
				p.SetCount(6)
				p.SetSum(s.value)
				p.ExplicitBounds().FromRaw([]float64{1, 2})
				p.BucketCounts().FromRaw([]uint64{1, 2, 3})
			}
			of, es = p.Attributes(), p.Exemplars()
		} else {
			if m.Type() == pmetric.MetricTypeEmpty && s.counter {
				sum := m.SetEmptySum()
				sum.SetIsMonotonic(true)
				sum.SetAggregationTemporality(pmetric.AggregationTemporalityCumulative)
			} else if m.Type() == pmetric.MetricTypeEmpty {
				m.SetEmptyGauge()
			}
			var p pmetric.NumberDataPoint
			if s.counter {
				p = m.Sum().DataPoints().AppendEmpty()
				p.SetStartTimestamp(500_000_000)
			} else {
				p = m.Gauge().DataPoints().AppendEmpty()
			}
			p.SetTimestamp(stamp)
			p.SetFlags(flags)
			switch {
			case math.IsNaN(s.value):
			case hashOf(s.labels.Get("path"))%3 == 0:
				p.SetIntValue(int64(s.value))
			default:
				p.SetDoubleValue(s.value)
			}
			of, es = p.Attributes(), p.Exemplars()
		}
		if s.exemplar {
			e := es.AppendEmpty()
			e.SetDoubleValue(s.value)
			e.SetTimestamp(stamp)
			e.FilteredAttributes().PutStr("trace", fmt.Sprint("t", s.value))
		}
		s.labels.Range(func(l labels.Label) {
			if l.Name != "__name__" && l.Name != "instance" && l.Name != "job" {
				of.PutStr(l.Name, l.Value)
			}
		})
	}
	return pmetricotlp.NewExportRequestFromMetrics(md).MarshalProto()
}
