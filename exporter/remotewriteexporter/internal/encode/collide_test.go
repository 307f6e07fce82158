// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package encode

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/prometheus/config"
	promhistogram "github.com/prometheus/prometheus/model/histogram"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/storage"
	"github.com/prometheus/prometheus/storage/remote/otlptranslator/prometheusremotewrite"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/godwit-otel/godwit/internal/promwrite"
	"github.com/godwit-otel/godwit/internal/racetest"

	"github.com/godwit-otel/godwit/exporter/remotewriteexporter/internal/encode/cache"
	"github.com/godwit-otel/godwit/exporter/remotewriteexporter/internal/encode/loss"
)

// tape makes choices from the bytes of a fuzz input: each takes one byte, and missing ones are 0.
type tape []byte

func (t *tape) choose(n int) int {
	if len(*t) == 0 {
		return 0
	}
	b := (*t)[0]
	*t = (*t)[1:]
	return int(b) % n
}

func (t *tape) pick(of ...string) string { return of[t.choose(len(of))] }

// collisions returns metrics whose series are the same after translation: resources without any difference in their
// labels, names that are translated to the same name, several types of the same name, metrics named like parts of
// histograms; with equal, earlier and later times.
func (t *tape) collisions() pmetric.Metrics {
	md := pmetric.NewMetrics()
	for range 1 + t.choose(6) {
		rm := md.ResourceMetrics().AppendEmpty()
		a := rm.Resource().Attributes()
		a.PutStr("service.name", "job")
		if instance := t.choose(8); instance > 0 {
			a.PutStr("service.instance.id", fmt.Sprint(instance))
		}
		if t.choose(2) > 0 { // does not become a label
			a.PutStr("process.pid", t.pick("1", "2"))
		}
		for range 1 + t.choose(2) {
			sm := rm.ScopeMetrics().AppendEmpty()
			sm.Scope().SetName(t.pick("", "a", "b"))
			for range 1 + t.choose(3) {
				t.metric(sm.Metrics().AppendEmpty())
			}
		}
	}
	return md
}

func (t *tape) metric(m pmetric.Metric) {
	m.SetName(t.pick("x", "x", "x", "x.y", "x_y", "x_sum", "x_count", "x_bucket"))
	m.SetDescription(t.pick("", "Other words."))
	points := 1 + t.choose(3)
	switch kind := t.choose(6); kind {
	case 0:
		list := m.SetEmptyGauge().DataPoints()
		for range points {
			t.number(list.AppendEmpty())
		}
	case 1, 2:
		m.SetEmptySum().SetAggregationTemporality(pmetric.AggregationTemporalityCumulative)
		m.Sum().SetIsMonotonic(kind == 1)
		for range points {
			t.number(m.Sum().DataPoints().AppendEmpty())
		}
	case 3:
		m.SetEmptyHistogram().SetAggregationTemporality(pmetric.AggregationTemporalityCumulative)
		for range points {
			t.explicit(m.Histogram().DataPoints().AppendEmpty())
		}
	case 4:
		m.SetEmptyExponentialHistogram().SetAggregationTemporality(pmetric.AggregationTemporalityCumulative)
		for range points {
			t.exponential(m.ExponentialHistogram().DataPoints().AppendEmpty())
		}
	default:
		list := m.SetEmptySummary().DataPoints()
		for range points {
			dp := list.AppendEmpty()
			t.place(dp)
			dp.SetCount(uint64(t.choose(3)))
			for _, q := range []float64{0.5, 0.9}[:t.choose(3)] {
				v := dp.QuantileValues().AppendEmpty()
				v.SetQuantile(q)
				v.SetValue(float64(t.choose(3)))
			}
		}
	}
}

// place sets what all points have.
func (t *tape) place(dp interface {
	Attributes() pcommon.Map
	SetTimestamp(pcommon.Timestamp)
	SetStartTimestamp(pcommon.Timestamp)
	SetFlags(pmetric.DataPointFlags)
},
) {
	if t.choose(4) == 3 {
		dp.Attributes().PutStr(t.pick("le", "quantile", "k.k", "k_k"), t.pick("1", "0.5"))
	}
	at := epoch.Add([]time.Duration{0, 0, time.Second, -time.Second, time.Millisecond}[t.choose(5)])
	dp.SetTimestamp(pcommon.NewTimestampFromTime(at))
	if start := []time.Duration{0, 0, time.Hour, 5000 * time.Hour, -time.Hour}[t.choose(5)]; start != 0 {
		dp.SetStartTimestamp(pcommon.NewTimestampFromTime(at.Add(-start)))
	}
	dp.SetFlags(pmetric.DefaultDataPointFlags.WithNoRecordedValue(t.choose(8) == 7))
}

func (t *tape) number(dp pmetric.NumberDataPoint) {
	t.place(dp)
	dp.SetDoubleValue(float64(t.choose(4)))
	t.exemplar(dp.Exemplars())
}

func (t *tape) exemplar(list pmetric.ExemplarSlice) {
	if t.choose(8) == 7 {
		x := list.AppendEmpty()
		x.SetTimestamp(pcommon.NewTimestampFromTime(epoch))
		x.SetDoubleValue(1)
		x.SetTraceID(pcommon.TraceID{1})
	}
}

func (t *tape) explicit(dp pmetric.HistogramDataPoint) {
	t.place(dp)
	bounds := []float64{0.5, 1, 2}[:t.choose(4)]
	dp.ExplicitBounds().FromRaw(bounds)
	total := uint64(0)
	for range len(bounds) + 1 {
		n := uint64(t.choose(3))
		dp.BucketCounts().Append(n)
		total += n
	}
	dp.SetCount(total)
	dp.SetSum(float64(t.choose(4)))
	t.exemplar(dp.Exemplars())
}

func (t *tape) exponential(dp pmetric.ExponentialHistogramDataPoint) {
	t.place(dp)
	dp.SetScale(int32(t.choose(13)) - 4)
	total := uint64(t.choose(2))
	dp.SetZeroCount(total)
	dp.SetZeroThreshold([]float64{0, 0.001}[t.choose(2)])
	for _, side := range []pmetric.ExponentialHistogramDataPointBuckets{dp.Positive(), dp.Negative()} {
		side.SetOffset(int32(t.choose(9)) - 4)
		for range t.choose(4) {
			n := uint64(t.choose(3))
			side.BucketCounts().Append(n)
			total += n
		}
	}
	dp.SetCount(total)
	dp.SetSum(float64(t.choose(4)))
	t.exemplar(dp.Exemplars())
}

// instant is a series at a time.
type instant struct {
	labels string
	time   int64
}

// candidates are the result of Prometheus' translation of OTLP: the values given for each instant.
type candidates map[instant][]string

func (c candidates) Append(
	_ storage.SeriesRef, ls labels.Labels, _, t int64, v float64, h *promhistogram.Histogram, _ *promhistogram.FloatHistogram,
	_ storage.AOptions,
) (storage.SeriesRef, error) {
	value := fmt.Sprintf("%x", math.Float64bits(v))
	if h != nil {
		value = "histogram " + histogramText(h)
	}
	at := instant{ls.String(), t}
	c[at] = append(c[at], value)
	return 0, nil
}

func (candidates) Commit() error   { return nil }
func (candidates) Rollback() error { return nil }

// histogramText formats a histogram in a canonical form, without the width of its zero bucket, which Prometheus takes
// from elsewhere.
func histogramText(h *promhistogram.Histogram) string {
	if math.Float64bits(h.Sum) == promwrite.StaleNaN {
		return "stale"
	}
	var b strings.Builder
	fmt.Fprintf(&b, "schema=%d count=%d zero=%d sum=%g", h.Schema, h.Count, h.ZeroCount, h.Sum)
	for _, it := range []promhistogram.BucketIterator[uint64]{h.PositiveBucketIterator(), h.NegativeBucketIterator()} {
		b.WriteByte('|')
		for it.Next() {
			if x := it.At(); x.Count > 0 {
				fmt.Fprintf(&b, "%d:%d ", x.Index, x.Count)
			}
		}
	}
	return b.String()
}

func valueText(h *promwrite.Histogram) string {
	spans := func(list []promwrite.Span) (out []promhistogram.Span) {
		for _, s := range list {
			out = append(out, promhistogram.Span{Offset: s.Offset, Length: s.Length})
		}
		return out
	}
	return "histogram " + histogramText(&promhistogram.Histogram{
		Schema: h.Schema, Count: h.Count.Int, ZeroCount: h.ZeroCount.Int, Sum: h.Sum,
		PositiveSpans: spans(h.PositiveSpans), PositiveBuckets: h.PositiveDeltas,
		NegativeSpans: spans(h.NegativeSpans), NegativeBuckets: h.NegativeDeltas,
	})
}

func translate(t testing.TB, md pmetric.Metrics) candidates {
	c := candidates{}
	_, err := prometheusremotewrite.NewPrometheusConverter(c).FromMetrics(context.Background(), md, prometheusremotewrite.Settings{
		AddMetricSuffixes: true, DisableTargetInfo: true, LabelNameUnderscoreSanitization: true,
		LabelNamePreserveMultipleUnderscores: true, PromoteScopeMetadata: false,
		PromoteResourceAttributes: prometheusremotewrite.NewPromoteResourceAttributes(config.OTLPConfig{}),
	})
	require.NoError(t, err)
	return c
}

// checkAnyCollisions encodes metrics with options that Prometheus' translation does not have, and with labels that
// belong to the point in one place and to the resource in another: the result is valid, and the same for Prometheus'
// decoders.
func checkAnyCollisions(t *testing.T, data []byte) {
	in := tape(data)
	options := in.choose(16)
	md := in.collisions()
	for _, rm := range md.ResourceMetrics().All() {
		if in.choose(2) == 0 {
			continue
		}
		instance, _ := rm.Resource().Attributes().Get("service.instance.id")
		for _, sm := range rm.ScopeMetrics().All() {
			for _, m := range sm.Metrics().All() {
				if m.Type() == pmetric.MetricTypeGauge {
					m.Gauge().DataPoints().At(0).Attributes().PutStr("instance", instance.Str())
				}
				if m.Type() == pmetric.MetricTypeSum && in.choose(2) > 0 {
					m.Sum().SetAggregationTemporality(pmetric.AggregationTemporalityDelta)
				}
			}
		}
		rm.Resource().Attributes().Remove("service.instance.id")
	}
	for _, f := range formats {
		e, _ := newEncoder(t, func(c *Config) {
			c.Cache.CustomBuckets, c.Cache.KeepClassic = options&1 > 0, options&2 > 0
			c.Cache.TargetInfo, c.TargetInfoInterval = options&4 > 0, time.Nanosecond
			if options&8 > 0 {
				c.Cache.Delta = cache.DeltaCumulative
			}
			c.MaxSamples = 1 + options
		})
		for range 2 {
			require.NoError(t, e.Add(md, ""))
			blocks := flushAll(e, f)
			series, _ := decode(t, blocks)
			for i := range series {
				checkSeries(t, series[i], f.Version)
			}
			require.Equal(t, canonical(series), canonical(decodePrometheus(t, blocks)))
		}
	}
}

// checkCollisions encodes metrics in each format. Each instant that Prometheus has occurs once, with one of the values
// given for it; duplicates are counted; times of a series ascend through all requests.
func checkCollisions(t *testing.T, data []byte) {
	in := tape(data)
	samples, shards := 1+in.choose(40), 1+in.choose(3)
	rounds := []pmetric.Metrics{in.collisions()}
	if in.choose(2) > 0 {
		rounds = append(rounds, in.collisions())
	}
	all := pmetric.NewMetrics()
	for _, md := range rounds {
		clone := pmetric.NewMetrics()
		md.CopyTo(clone)
		clone.ResourceMetrics().MoveAndAppendTo(all.ResourceMetrics())
	}
	want := translate(t, all)
	given := 0
	for _, values := range want {
		given += len(values)
	}
	for _, f := range formats {
		e, d := newEncoder(t, func(c *Config) {
			c.Cache.ScopeLabels, c.MaxSamples, c.Shards = cache.ScopeLabelsOff, samples, shards
		})
		for range 2 { // new, then known
			*d = drops{}
			for _, md := range rounds {
				require.NoError(t, e.Add(md, ""))
			}
			blocks := flushAll(e, f)
			series, _ := decode(t, blocks)
			require.Equal(t, canonical(series), canonical(decodePrometheus(t, blocks)))
			got := map[instant]bool{}
			last := map[string]int64{}
			check := func(ls string, time int64, value string) {
				at := instant{ls, time}
				require.Contains(t, want[at], value, at)
				require.False(t, got[at], "twice: %v", at)
				require.Greater(t, time, last[ls], "times of %s", ls)
				got[at], last[ls] = true, time
			}
			for i := range series {
				s := &series[i]
				checkSeries(t, *s, f.Version)
				var list []labels.Label
				for _, l := range s.Labels {
					list = append(list, labels.Label{Name: l.Name, Value: l.Value})
				}
				ls := labels.New(list...).String()
				for _, p := range s.Samples {
					check(ls, p.Timestamp, fmt.Sprintf("%x", math.Float64bits(p.Value)))
				}
				for j := range s.Histograms {
					check(ls, s.Histograms[j].Timestamp, valueText(&s.Histograms[j]))
				}
			}
			require.Len(t, got, len(want))
			require.Equal(t, given-len(want), d.counts[loss.Duplicate])
			require.Equal(t, d.counts[loss.Duplicate], d.total())
		}
	}
}

func FuzzCollisions(f *testing.F) {
	racetest.Sequential(f)
	r := rand.New(rand.NewPCG(1, 1))
	for range 16 {
		f.Add(randomTape(r))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		checkCollisions(t, data)
		checkAnyCollisions(t, data)
	})
}

func randomTape(r *rand.Rand) []byte {
	data := make([]byte, 1000)
	for i := range data {
		data[i] = byte(r.Uint32())
	}
	return data
}

// TestSeriesThatCollide: whatever metrics become the same series, there is no panic, and each instant is sent once.
func TestSeriesThatCollide(t *testing.T) {
	racetest.Sequential(t)
	for seed := range uint64(60) {
		data := randomTape(rand.New(rand.NewPCG(seed, 7)))
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			checkCollisions(t, data)
			checkAnyCollisions(t, data)
		})
	}
}

// TestNumberOfOneResourceAndHistogramOfAnother: a series with the same labels except for those of the resource, a
// number first, so that its message is considered for repetition.
func TestNumberOfOneResourceAndHistogramOfAnother(t *testing.T) {
	for _, f := range formats {
		md := pmetric.NewMetrics()
		for i, id := range []string{"a", "b"} {
			rm := md.ResourceMetrics().AppendEmpty()
			rm.Resource().Attributes().PutStr("service.instance.id", id)
			m := rm.ScopeMetrics().AppendEmpty().Metrics().AppendEmpty()
			m.SetName("latency")
			if i == 0 {
				addPoint(m.SetEmptyGauge().DataPoints(), 1, epoch)
				continue
			}
			m.SetEmptyExponentialHistogram().SetAggregationTemporality(pmetric.AggregationTemporalityCumulative)
			dp := m.ExponentialHistogram().DataPoints().AppendEmpty()
			dp.SetTimestamp(pcommon.NewTimestampFromTime(epoch))
			dp.SetCount(1)
			dp.SetSum(1)
			dp.Positive().BucketCounts().Append(1)
		}
		series, d := sent(t, f, nil, md)
		slices.SortFunc(series, func(a, b promwrite.Series) int { return cmp.Compare(labelsOf(a), labelsOf(b)) })
		require.Len(t, series, 2)
		assert.Len(t, series[0].Samples, 1)
		assert.Len(t, series[1].Histograms, 1)
		assert.Zero(t, d.total())
	}
}
