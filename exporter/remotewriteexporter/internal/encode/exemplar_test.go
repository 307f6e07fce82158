// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package encode

import (
	"math"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/godwit-otel/godwit/internal/promwrite"

	"github.com/godwit-otel/godwit/exporter/remotewriteexporter/internal/block"
	"github.com/godwit-otel/godwit/exporter/remotewriteexporter/internal/encode/loss"
)

// classicOf returns one histogram with bounds 1 and 2.
func classicOf(attrs ...string) (pmetric.Metrics, pmetric.HistogramDataPoint) {
	md := pmetric.NewMetrics()
	m := md.ResourceMetrics().AppendEmpty().ScopeMetrics().AppendEmpty().Metrics().AppendEmpty()
	m.SetName("h")
	m.SetEmptyHistogram().SetAggregationTemporality(pmetric.AggregationTemporalityCumulative)
	dp := m.Histogram().DataPoints().AppendEmpty()
	dp.SetTimestamp(pcommon.NewTimestampFromTime(epoch))
	dp.ExplicitBounds().FromRaw([]float64{1, 2})
	dp.BucketCounts().FromRaw([]uint64{1, 2, 3})
	dp.SetCount(6)
	for i := 0; i < len(attrs); i += 2 {
		dp.Attributes().PutStr(attrs[i], attrs[i+1])
	}
	return md, dp
}

func TestExemplarsGoToTheirBucket(t *testing.T) {
	for _, f := range formats {
		md, dp := classicOf()
		for _, v := range []float64{0.5, 1, 1.5, 99} {
			dp.Exemplars().AppendEmpty().SetDoubleValue(v)
		}
		series, _ := sent(t, f, nil, md)
		got := map[string][]float64{}
		for _, s := range series {
			for _, x := range s.Exemplars {
				got[labelsOf(s)] = append(got[labelsOf(s)], x.Value)
				assert.Equal(t, epoch.UnixMilli(), x.Timestamp, "as old as its point")
			}
		}
		assert.Equal(t, map[string][]float64{
			`__name__="h_bucket",le="1",`: {0.5, 1}, `__name__="h_bucket",le="2",`: {1.5}, `__name__="h_bucket",le="+Inf",`: {99},
		}, got)
		series, _ = sent(t, f, func(c *Config) { c.Exemplars = false }, md)
		for _, s := range series {
			assert.Empty(t, s.Exemplars)
		}
	}
}

// A bucket without a count has no sample for an exemplar. Only the exemplar is lost.
func TestAnExemplarWithoutASampleIsLeftOut(t *testing.T) {
	f := func(format block.Format, change func(*Config), fill func(dp pmetric.HistogramDataPoint), want int) {
		t.Helper()
		e, d := newEncoder(t, change)
		for i := range 2 {
			md, dp := classicOf()
			dp.SetTimestamp(pcommon.NewTimestampFromTime(epoch.Add(time.Duration(i) * time.Minute)))
			dp.Exemplars().AppendEmpty().SetDoubleValue(2.5)
			fill(dp)
			gauge("g", 1, epoch).ResourceMetrics().At(0).CopyTo(md.ResourceMetrics().AppendEmpty())
			require.NoError(t, e.Add(md, ""))
		}
		series, _ := decode(t, flushAll(e, format))
		require.Empty(t, d.panics)
		require.Len(t, series, want)
		for _, s := range series {
			require.Empty(t, s.Exemplars)
		}
	}
	for _, format := range formats {
		f(format, nil, func(dp pmetric.HistogramDataPoint) {
			dp.ExplicitBounds().FromRaw([]float64{1, 2, 3})
			dp.BucketCounts().FromRaw([]uint64{6})
		}, 4)
	}
	f(v2Zstd, func(c *Config) { c.Cache.CustomBuckets = true }, func(dp pmetric.HistogramDataPoint) {
		dp.ExplicitBounds().FromRaw([]float64{2, 1}) // invalid for a native histogram
	}, 1)
}

func TestExemplarLabels(t *testing.T) {
	for _, f := range formats {
		md := gauge("g", 1, epoch)
		x := md.ResourceMetrics().At(0).ScopeMetrics().At(0).Metrics().At(0).Gauge().DataPoints().At(0).Exemplars().AppendEmpty()
		x.SetIntValue(3)
		x.SetTimestamp(pcommon.NewTimestampFromTime(epoch.Add(-time.Second)))
		x.SetTraceID(pcommon.TraceID{0xab})
		x.SetSpanID(pcommon.SpanID{0xcd})
		x.FilteredAttributes().PutStr("a.b", "c\xff")
		x.FilteredAttributes().PutStr("empty", "")
		x.FilteredAttributes().PutStr("trace_id", "another")
		series, _ := sent(t, f, nil, md)
		require.Len(t, series, 1)
		ids := []promwrite.Label{{Name: "span_id", Value: "cd00000000000000"}, {Name: "trace_id", Value: "ab000000000000000000000000000000"}}
		assert.Equal(t, []promwrite.Exemplar{{
			Labels: append([]promwrite.Label{{Name: "a_b", Value: "c�"}}, ids...), Value: 3, Timestamp: epoch.UnixMilli() - 1000,
		}}, series[0].Exemplars)

		x.FilteredAttributes().PutStr("long", strings.Repeat("x", maxExemplarRunes))
		series, _ = sent(t, f, nil, md)
		assert.Equal(t, ids, series[0].Exemplars[0].Labels, "the IDs alone where all is too long")
	}
}

// TestExemplarsAreSentOnce: exemplars of the series' last point are not sent again, as in Prometheus; all others are.
func TestExemplarsAreSentOnce(t *testing.T) {
	for _, native := range []bool{false, true} {
		e, _ := newEncoder(t, func(c *Config) {
			c.RepeatExemplars = false
			c.Cache.CustomBuckets, c.Cache.KeepClassic = native, native
		})
		scrape := 0
		shown := func(host, attribute string, change func(first, second pmetric.Exemplar)) (n int) {
			scrape++
			at := epoch.Add(time.Duration(scrape) * time.Minute)
			md, dp := classicOf("a", attribute)
			md.ResourceMetrics().At(0).Resource().Attributes().PutStr("service.instance.id", host)
			dp.SetTimestamp(pcommon.NewTimestampFromTime(at))
			dp.Exemplars().EnsureCapacity(2)
			first, second := dp.Exemplars().AppendEmpty(), dp.Exemplars().AppendEmpty()
			first.SetDoubleValue(0.5)
			first.SetTraceID(pcommon.TraceID{1})
			first.SetTimestamp(dp.Timestamp()) // like on pages without timestamps
			second.SetDoubleValue(1.5)
			second.SetSpanID(pcommon.SpanID{2})
			second.FilteredAttributes().PutStr("user", "one")
			second.SetTimestamp(pcommon.NewTimestampFromTime(epoch))
			change(first, second)
			require.NoError(t, e.Add(md, ""))
			series, _ := decode(t, flushAll(e, v2Zstd))
			for _, s := range series {
				n += len(s.Exemplars)
			}
			if native {
				require.Zero(t, n%2, "classic and native series have the same")
				n /= 2
			}
			return n
		}
		same := func(_, _ pmetric.Exemplar) {}
		assert.Equal(t, 2, shown("h", "x", same))
		assert.Zero(t, shown("h", "x", same))
		e.ForgetExemplars()
		assert.Equal(t, 2, shown("h", "x", same), "they may not have arrived")
		assert.Zero(t, shown("h", "x", same))
		assert.Equal(t, 2, shown("h2", "x", same), "another target")
		assert.Equal(t, 2, shown("h", "y", same), "another series")
		assert.Zero(t, shown("h", "x", same))
		assert.Equal(t, 1, shown("h", "x", func(first, _ pmetric.Exemplar) { first.SetTraceID(pcommon.TraceID{1, 1}) }))
		assert.Equal(t, 1, shown("h", "x", same), "what was before the last is new")
		assert.Equal(t, 1, shown("h", "x", func(first, _ pmetric.Exemplar) { first.SetDoubleValue(0.25) }))
		assert.Equal(t, 1, shown("h", "x", same))
		for _, change := range []func(_, second pmetric.Exemplar){
			func(_, second pmetric.Exemplar) { second.SetSpanID(pcommon.SpanID{3}) },
			func(_, second pmetric.Exemplar) { second.FilteredAttributes().PutStr("user", "two") },
			func(_, second pmetric.Exemplar) { second.FilteredAttributes().PutStr("and", "more") },
			func(_, second pmetric.Exemplar) {
				second.SetTimestamp(pcommon.NewTimestampFromTime(epoch.Add(time.Millisecond)))
			},
			func(_, second pmetric.Exemplar) { second.SetIntValue(2) },
		} {
			assert.Equal(t, 1, shown("h", "x", change))
			assert.Zero(t, shown("h", "x", change))
			assert.Equal(t, 1, shown("h", "x", same))
		}
	}
}

// TestExemplarsOfSeriesThatAreNotKept: if there is no room for a series, its memory is used by another one the next
// time. The exemplars of one must not affect the other.
func TestExemplarsOfSeriesThatAreNotKept(t *testing.T) {
	e, _ := newEncoder(t, func(c *Config) { c.RepeatExemplars, c.Cache.MaxSeries = false, 1 })
	sent := map[string]int{}
	for scrape := range 3 {
		for _, of := range []string{"kept", "x", "y", "z"} {
			md, dp := classicOf("a", of)
			dp.SetTimestamp(pcommon.NewTimestampFromTime(epoch.Add(time.Duration(scrape) * time.Minute)))
			dp.Exemplars().AppendEmpty().SetDoubleValue(0.5)
			require.NoError(t, e.Add(md, ""))
			series, _ := decode(t, flushAll(e, v2Zstd))
			for _, s := range series {
				sent[of] += len(s.Exemplars)
			}
		}
	}
	assert.Equal(t, map[string]int{"kept": 1, "x": 3, "y": 3, "z": 3}, sent)
}

// TestExemplarsOfSeriesInThePlaceOfOthers: series use the memory of others that have ended, and have the same
// exemplars, as when a target gets another label.
func TestExemplarsOfSeriesInThePlaceOfOthers(t *testing.T) {
	e, _ := newEncoder(t, func(c *Config) { c.RepeatExemplars, c.Cache.IdleGenerations = false, 1 })
	const series = 10
	scrape := 0
	shown := func(zone int, stale bool) (n int) {
		scrape++
		md := pmetric.NewMetrics()
		m := md.ResourceMetrics().AppendEmpty().ScopeMetrics().AppendEmpty().Metrics().AppendEmpty()
		m.SetName("g")
		points := m.SetEmptyGauge().DataPoints()
		for i := range series {
			dp := points.AppendEmpty()
			dp.SetTimestamp(pcommon.NewTimestampFromTime(epoch.Add(time.Duration(scrape) * time.Minute)))
			dp.SetDoubleValue(1)
			dp.Attributes().PutInt("series", int64(i))
			if i == 0 { // stays, so that the memory does
				continue
			}
			dp.Attributes().PutInt("zone", int64(zone))
			if stale {
				dp.SetFlags(dp.Flags().WithNoRecordedValue(true))
			} else {
				dp.Exemplars().AppendEmpty().SetDoubleValue(0.5)
			}
		}
		require.NoError(t, e.Add(md, ""))
		series, _ := decode(t, flushAll(e, v2Zstd))
		for _, s := range series {
			n += len(s.Exemplars)
		}
		return n
	}
	for zone := range 5 {
		assert.Equal(t, series-1, shown(zone, false), "zone %d", zone)
		assert.Zero(t, shown(zone, false), "zone %d", zone)
		shown(zone, true)
		e.Expire()
	}
}

func TestReservedLabelsAreTheMetrics(t *testing.T) {
	md, _ := classicOf("le", "mine", "quantile", "q")
	series, d := sent(t, v2Zstd, nil, md)
	require.Len(t, series, 4)
	assert.Equal(t, `__name__="h_count",le="mine",quantile="q",`, labelsOf(series[0]))
	assert.Equal(t, `__name__="h_bucket",le="1",quantile="q",`, labelsOf(series[1]))
	assert.Zero(t, d.total())
}

func TestInfiniteBoundIsTheLastBucket(t *testing.T) {
	for _, custom := range []bool{false, true} {
		md, dp := classicOf()
		want, _ := sent(t, v2Zstd, func(c *Config) { c.Cache.CustomBuckets = custom }, md)
		dp.ExplicitBounds().Append(math.Inf(1))
		got, d := sent(t, v2Zstd, func(c *Config) { c.Cache.CustomBuckets = custom }, md)
		assert.Equal(t, canonical(want), canonical(got))
		assert.Zero(t, d.total())
	}
}

func TestCustomBucketsThatDescendAreCounted(t *testing.T) {
	md, dp := classicOf()
	dp.ExplicitBounds().FromRaw([]float64{2, 1})
	series, d := sent(t, v2Zstd, func(c *Config) { c.Cache.CustomBuckets = true }, md)
	assert.Empty(t, series)
	assert.Equal(t, map[loss.Reason]int{loss.Buckets: 1}, d.counts)
}

func TestExemplarsOfIDsAlone(t *testing.T) {
	for _, f := range formats {
		md, dp := classicOf()
		for _, x := range []struct {
			trace pcommon.TraceID
			span  pcommon.SpanID
		}{{}, {trace: pcommon.TraceID{1}}, {span: pcommon.SpanID{2}}, {pcommon.TraceID{3}, pcommon.SpanID{4}}} {
			out := dp.Exemplars().AppendEmpty()
			out.SetDoubleValue(0.5)
			out.SetTraceID(x.trace)
			out.SetSpanID(x.span)
		}
		series, _ := sent(t, f, nil, md)
		var got [][]promwrite.Label
		for _, s := range series {
			for _, x := range s.Exemplars {
				got = append(got, x.Labels)
			}
		}
		label := func(name, value string) promwrite.Label { return promwrite.Label{Name: name, Value: value} }
		assert.Equal(t, [][]promwrite.Label{
			nil,
			{label("trace_id", "01000000000000000000000000000000")},
			{label("span_id", "0200000000000000")},
			{label("span_id", "0400000000000000"), label("trace_id", "03000000000000000000000000000000")},
		}, got)
	}
}
