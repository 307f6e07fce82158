// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package encode

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/prometheus/common/model"
	writev2 "github.com/prometheus/prometheus/prompb/io/prometheus/write/v2"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/godwit-otel/godwit/internal/promwrite"

	"github.com/godwit-otel/godwit/exporter/remotewriteexporter/internal/block"
	"github.com/godwit-otel/godwit/exporter/remotewriteexporter/internal/encode/cache"
	"github.com/godwit-otel/godwit/exporter/remotewriteexporter/internal/encode/loss"
)

// gauge returns metrics with one gauge point.
func gauge(name string, value float64, at time.Time, attrs ...string) pmetric.Metrics {
	md := pmetric.NewMetrics()
	m := md.ResourceMetrics().AppendEmpty().ScopeMetrics().AppendEmpty().Metrics().AppendEmpty()
	m.SetName(name)
	addPoint(m.SetEmptyGauge().DataPoints(), value, at, attrs...)
	return md
}

func addPoint(points pmetric.NumberDataPointSlice, value float64, at time.Time, attrs ...string) pmetric.NumberDataPoint {
	dp := points.AppendEmpty()
	dp.SetDoubleValue(value)
	dp.SetTimestamp(pcommon.NewTimestampFromTime(at))
	for i := 0; i+1 < len(attrs); i += 2 {
		dp.Attributes().PutStr(attrs[i], attrs[i+1])
	}
	return dp
}

// sent adds md to a new encoder and decodes the result.
func sent(t testing.TB, f block.Format, change func(*Config), md pmetric.Metrics) ([]promwrite.Series, *drops) {
	t.Helper()
	e, d := newEncoder(t, change)
	require.NoError(t, e.Add(md, ""))
	series, _ := decode(t, flushAll(e, f))
	return series, d
}

// TestEveryRequestIsAsTheSpecificationSays checks generated data for rules that hold for any data.
func TestEveryRequestIsAsTheSpecificationSays(t *testing.T) {
	for seed := range uint64(8) {
		for _, f := range formats {
			g := generator{r: rand.New(rand.NewPCG(seed, 2)), version: promwrite.V2}
			e, _ := newEncoder(t, func(c *Config) {
				c.Cache.TargetInfo, c.MaxSamples, c.Cache.ScopeLabels = true, 40, cache.ScopeLabelsOn
				c.Cache.PromoteResourceAttributes = []string{"host.*"}
			})
			work := g.workload()
			for round := range 3 {
				require.NoError(t, e.Add(work.metrics(&g, round), ""))
			}
			for _, b := range flushAll(e, f) {
				require.LessOrEqual(t, b.Samples+b.Histograms, 40)
				raw, err := b.Raw()
				require.NoError(t, err)
				var d promwrite.Decoder
				require.NoError(t, d.Decode(b.Version, raw))
				for _, s := range d.Series {
					checkSeries(t, s, f.Version)
				}
				if f.Version == promwrite.V2 {
					checkSymbols(t, raw)
				}
			}
		}
	}
}

func checkSeries(t *testing.T, s promwrite.Series, version promwrite.Version) {
	require.True(t, slices.ContainsFunc(s.Labels, func(l promwrite.Label) bool { return l.Name == "__name__" }), "no name")
	for i, l := range s.Labels {
		require.NotEmpty(t, l.Value, l.Name)
		require.True(t, model.LegacyValidation.IsValidLabelName(l.Name), l.Name)
		require.True(t, utf8.ValidString(l.Value))
		if l.Name == "__name__" {
			require.True(t, model.LegacyValidation.IsValidMetricName(l.Value), l.Value)
		}
		if i > 0 {
			require.Less(t, s.Labels[i-1].Name, l.Name, "sorted, no name twice")
		}
	}
	require.NotEqual(t, len(s.Samples) > 0, len(s.Histograms) > 0, "samples or histograms, never both")
	for i, p := range s.Samples {
		if i > 0 {
			require.Less(t, s.Samples[i-1].Timestamp, p.Timestamp)
		}
		if version == promwrite.V1 {
			require.Zero(t, p.StartTimestamp)
		}
	}
	for i, h := range s.Histograms {
		if i > 0 {
			require.Less(t, s.Histograms[i-1].Timestamp, h.Timestamp)
		}
		require.Equal(t, promwrite.ResetUnknown, h.ResetHint)
		require.False(t, version == promwrite.V1 && h.Schema == promwrite.CustomBucketsSchema)
	}
	if version == promwrite.V1 {
		require.Zero(t, s.Type)
	}
}

// checkSymbols checks the table: empty string first, no duplicates, nothing unused.
func checkSymbols(t *testing.T, raw []byte) {
	var r writev2.Request
	require.NoError(t, r.Unmarshal(raw))
	require.Empty(t, r.Symbols[0])
	used := make([]bool, len(r.Symbols))
	used[0] = true
	mark := func(refs ...uint32) {
		for _, ref := range refs {
			used[ref] = true
		}
	}
	for _, ts := range r.Timeseries {
		require.Zero(t, len(ts.LabelsRefs)%2)
		mark(ts.LabelsRefs...)
		mark(ts.Metadata.HelpRef, ts.Metadata.UnitRef)
		for _, x := range ts.Exemplars {
			mark(x.LabelsRefs...)
		}
	}
	require.NotContains(t, used, false)
	slices.Sort(r.Symbols)
	require.Len(t, slices.Compact(r.Symbols), len(used))
}

func TestStartTimestamps(t *testing.T) {
	md := pmetric.NewMetrics()
	metrics := md.ResourceMetrics().AppendEmpty().ScopeMetrics().AppendEmpty().Metrics()
	at, start := pcommon.NewTimestampFromTime(epoch), pcommon.NewTimestampFromTime(epoch.Add(-time.Hour))
	sum := func(name string, monotonic bool, start pcommon.Timestamp) {
		m := metrics.AppendEmpty()
		m.SetName(name)
		m.SetEmptySum().SetIsMonotonic(monotonic)
		m.Sum().SetAggregationTemporality(pmetric.AggregationTemporalityCumulative)
		addPoint(m.Sum().DataPoints(), 1, epoch).SetStartTimestamp(start)
	}
	sum("counter", true, start)
	sum("updown", false, start)
	sum("unknown", true, 0)
	sum("zero", true, 5) // within the first millisecond: 0 would mean unknown
	h := metrics.AppendEmpty()
	h.SetName("native")
	h.SetEmptyExponentialHistogram().SetAggregationTemporality(pmetric.AggregationTemporalityCumulative)
	dp := h.ExponentialHistogram().DataPoints().AppendEmpty()
	dp.SetTimestamp(at)
	dp.SetStartTimestamp(start)
	s := metrics.AppendEmpty()
	s.SetName("summary")
	q := s.SetEmptySummary().DataPoints().AppendEmpty()
	q.SetTimestamp(at)
	q.SetStartTimestamp(start)

	starts := func(change func(*Config), f block.Format) map[string]int64 {
		got := map[string]int64{}
		series, _ := sent(t, f, change, md)
		for _, s := range series {
			for _, p := range s.Samples {
				got[s.Labels[0].Value] = p.StartTimestamp
			}
			for _, p := range s.Histograms {
				got[s.Labels[0].Value] = p.StartTimestamp
			}
		}
		return got
	}
	hour := epoch.Add(-time.Hour).UnixMilli()
	assert.Equal(t, map[string]int64{
		"counter_total": hour, "updown": 0, "unknown_total": 0, "zero_total": 1, "native": hour, "summary_sum": hour, "summary_count": hour,
	}, starts(nil, v2Zstd))
	for _, got := range starts(nil, v1Zstd) {
		assert.Zero(t, got)
	}
	for _, got := range starts(func(c *Config) { c.StartTimestamps = false }, v2Zstd) {
		assert.Zero(t, got)
	}
}

func TestTimesAreMillisecondsCut(t *testing.T) {
	series, d := sent(t, v2Zstd, nil, gauge("g", 1, time.Unix(1, 999_999)))
	assert.EqualValues(t, 1000, series[0].Samples[0].Timestamp)
	assert.Zero(t, d.total())
	series, d = sent(t, v2Zstd, nil, gauge("g", 1, time.Unix(0, 0)))
	assert.Empty(t, series)
	assert.Equal(t, map[loss.Reason]int{loss.Time: 1}, d.counts)
	assert.Equal(t, map[loss.Reason]string{loss.Time: "g"}, d.firsts)
}

func TestStaleMarkersKeepTheirBits(t *testing.T) {
	md := gauge("g", 5, epoch)
	md.ResourceMetrics().At(0).ScopeMetrics().At(0).Metrics().At(0).Gauge().DataPoints().At(0).
		SetFlags(pmetric.DefaultDataPointFlags.WithNoRecordedValue(true))
	for _, f := range formats {
		series, _ := sent(t, f, nil, md)
		assert.Equal(t, promwrite.StaleNaN, math.Float64bits(series[0].Samples[0].Value))
	}
}

func TestStaleHistogramEndsEachOfItsSeries(t *testing.T) {
	md := pmetric.NewMetrics()
	m := md.ResourceMetrics().AppendEmpty().ScopeMetrics().AppendEmpty().Metrics().AppendEmpty()
	m.SetName("h")
	m.SetEmptyHistogram().SetAggregationTemporality(pmetric.AggregationTemporalityCumulative)
	dp := m.Histogram().DataPoints().AppendEmpty()
	dp.SetTimestamp(pcommon.NewTimestampFromTime(epoch))
	dp.ExplicitBounds().FromRaw([]float64{1, 2})
	dp.SetFlags(pmetric.DefaultDataPointFlags.WithNoRecordedValue(true))
	series, _ := sent(t, v2Zstd, nil, md)
	require.Len(t, series, 5)
	for _, s := range series {
		assert.Equal(t, promwrite.StaleNaN, math.Float64bits(s.Samples[0].Value))
	}
}

func TestInvalidTextIsReplaced(t *testing.T) {
	for _, f := range formats {
		series, d := sent(t, f, nil, gauge("g", 1, epoch, "k", "a\xffb"))
		assert.Equal(t, `__name__="g",k="a�b",`, labelsOf(series[0]))
		assert.Zero(t, d.total())
	}
}

func TestPointsOfNoValueAreCounted(t *testing.T) {
	md := pmetric.NewMetrics()
	metrics := md.ResourceMetrics().AppendEmpty().ScopeMetrics().AppendEmpty().Metrics()
	metrics.AppendEmpty().SetName("no type")
	m := metrics.AppendEmpty()
	m.SetName("no value")
	m.SetEmptyGauge().DataPoints().AppendEmpty().SetTimestamp(pcommon.NewTimestampFromTime(epoch))
	m = metrics.AppendEmpty()
	m.SetName("___")
	addPoint(m.SetEmptyGauge().DataPoints(), 1, epoch)
	m = metrics.AppendEmpty()
	m.SetName("g")
	addPoint(m.SetEmptyGauge().DataPoints(), 1, epoch, "", "no key")
	series, d := sent(t, v2Zstd, nil, md)
	assert.Empty(t, series)
	assert.Equal(t, map[loss.Reason]int{loss.Empty: 2, loss.Name: 1, loss.Label: 1}, d.counts)
}

func TestSecondSampleOfATimeIsCounted(t *testing.T) {
	for _, f := range formats {
		e, d := newEncoder(t, nil)
		require.NoError(t, e.Add(gauge("a.b", 1, epoch), ""))
		require.NoError(t, e.Add(gauge("a_b", 2, epoch), "")) // another metric, the same series
		require.NoError(t, e.Add(gauge("a.b", 3, epoch.Add(time.Second)), ""))
		series, _ := decode(t, flushAll(e, f))
		require.Len(t, series, 1)
		require.Len(t, series[0].Samples, 2)
		assert.InDelta(t, 1, series[0].Samples[0].Value, 0)
		assert.InDelta(t, 3, series[0].Samples[1].Value, 0)
		assert.Equal(t, map[loss.Reason]int{loss.Duplicate: 1}, d.counts)
		assert.Equal(t, "a_b", d.firsts[loss.Duplicate])
	}
}

func TestMetadataOfOneIsSentAgainAfterItsInterval(t *testing.T) {
	e, _ := newEncoder(t, func(c *Config) { c.MetadataInterval = time.Minute })
	counts := []int{}
	for _, after := range []time.Duration{0, 30 * time.Second, time.Minute, 70 * time.Second, 3 * time.Minute} {
		require.NoError(t, e.Add(page(0, 8, epoch.Add(after)), ""))
		_, metadata := decode(t, flushAll(e, v1Zstd))
		counts = append(counts, len(metadata))
	}
	assert.Equal(t, []int{4, 0, 4, 0, 4}, counts)
	e, _ = newEncoder(t, func(c *Config) { c.Cache.Metadata = false })
	require.NoError(t, e.Add(page(0, 8, epoch), ""))
	_, metadata := decode(t, flushAll(e, v1Zstd))
	assert.Empty(t, metadata)
}

func TestTargetInfoIsSentAgainAfterItsInterval(t *testing.T) {
	e, d := newEncoder(t, func(c *Config) { c.Cache.TargetInfo, c.TargetInfoInterval = true, time.Minute })
	counts := []int{}
	for _, after := range []time.Duration{0, 30 * time.Second, time.Minute, 50 * time.Second, 3 * time.Minute} {
		require.NoError(t, e.Add(page(0, 1, epoch.Add(after)), ""))
		series, _ := decode(t, flushAll(e, v2Zstd))
		n := 0
		for _, s := range series {
			if s.Labels[0].Value == "target_info" {
				n++
				assert.Equal(t, `__name__="target_info",instance="127.0.0.0:9100",job="node",server_port="9100",url_scheme="http",`, labelsOf(s))
				assert.Equal(t, []promwrite.Sample{{Value: 1, Timestamp: epoch.Add(after).UnixMilli()}}, s.Samples)
				assert.Equal(t, promwrite.Gauge, s.Type)
			}
		}
		counts = append(counts, n)
	}
	assert.Equal(t, []int{1, 0, 1, 0, 1}, counts)
	assert.Zero(t, d.total())
}

func TestCustomBucketsNeverGoOutInOne(t *testing.T) {
	g := generator{r: rand.New(rand.NewPCG(1, 1))}
	md := pmetric.NewMetrics()
	m := md.ResourceMetrics().AppendEmpty().ScopeMetrics().AppendEmpty().Metrics().AppendEmpty()
	m.SetName("h")
	m.SetEmptyHistogram().SetAggregationTemporality(pmetric.AggregationTemporalityCumulative)
	g.explicit(m.Histogram().DataPoints().AppendEmpty(), nil, []float64{1, 2}, pcommon.NewTimestampFromTime(epoch))
	change := func(c *Config) { c.Cache.CustomBuckets = true }
	series, d := sent(t, v1Zstd, change, md)
	assert.Empty(t, series)
	assert.Equal(t, map[loss.Reason]int{loss.CustomBuckets: 1}, d.counts)
	series, d = sent(t, v2Zstd, change, md)
	assert.Len(t, series, 1)
	assert.Zero(t, d.total())
}

func TestDownscaleMergesWhatBelongsTogether(t *testing.T) {
	for _, c := range []struct {
		counts []uint64
		want   string
	}{
		{[]uint64{0, 0, 3, 4}, "2:7 "},
		{[]uint64{1, 0, 0, 0, 3, 4}, "1:1 3:7 "},
		{[]uint64{1, 2, 3, 4}, "1:3 2:7 "},
		{[]uint64{0, 0, 0, 0, 0, 0, 0, 0, 0, 9}, "5:9 "},
	} {
		md := pmetric.NewMetrics()
		m := md.ResourceMetrics().AppendEmpty().ScopeMetrics().AppendEmpty().Metrics().AppendEmpty()
		m.SetName("h")
		m.SetEmptyExponentialHistogram().SetAggregationTemporality(pmetric.AggregationTemporalityCumulative)
		dp := m.ExponentialHistogram().DataPoints().AppendEmpty()
		dp.SetTimestamp(pcommon.NewTimestampFromTime(epoch))
		dp.SetScale(9)
		dp.Positive().BucketCounts().FromRaw(c.counts)
		total := uint64(0)
		for _, n := range c.counts {
			total += n
		}
		dp.SetCount(total)
		series, d := sent(t, v2Zstd, nil, md)
		require.Len(t, series, 1)
		assert.Contains(t, canonicalHistogram(series[0].Histograms[0]), fmt.Sprintf("schema=8 count={%d 0 false} zero={0 0 false}/1e-128 sum=0 +[%s]", total, c.want))
		assert.Zero(t, d.total())

		dp.SetCount(total + 1) // no receiver would accept it
		series, d = sent(t, v2Zstd, nil, md)
		assert.Empty(t, series)
		assert.Equal(t, map[loss.Reason]int{loss.Buckets: 1}, d.counts)
	}
}
