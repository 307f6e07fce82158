// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package cardinalityprocessor

import (
	"math"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/godwit-otel/godwit/processor/cardinalityprocessor/internal/ident"
	"github.com/godwit-otel/godwit/processor/cardinalityprocessor/internal/policy"
)

// everything is a configuration in which everything that reads data is active.
func everything(c *Config) {
	c.Tenant.From = []string{"resource:tenant"}
	c.Memory.OverflowStateMiB = 4
	c.Memory.MaxGroups = 1000
	c.Exempt = []MatchConfig{{Metric: "exempt.*", Attributes: map[string]string{"k": "*x*y*z"}}}
	all := ExceedConfig{OnExceed: []string{"collapse_worst", "overflow", "sample"}, KeepLabels: []string{"k", "keep"}, SampleRate: 0.1, Gauge: policy.NameMax}
	c.Defaults = DefaultsConfig{MaxSeriesPerMetric: 50, Exceed: all}
	c.Rules = []RuleConfig{
		{
			Name: "each", GroupBy: []string{"tenant", "k", "resource:r", "metric"}, MaxSeries: 20, Exceed: all,
			LabelLimits: map[string]int{"label": 2, "0": 1}, MaxNewSeriesPerMinute: 1_000_000, MaxPointsPerSecond: 1_000_000,
		},
		{Name: "shared", Match: MatchConfig{Resource: map[string]string{"hostile": "*"}}, MaxSeries: 30, Exceed: all, Adaptive: AdaptiveConfig{
			ShareBy: []string{"k"}, Priority: PriorityConfig{By: "label", Order: []string{"a", "b"}},
		}},
	}
}

// hostile are requests of the given size, by someone who knows how they are processed.
var hostile = map[string]struct {
	size int
	make func(md pmetric.Metrics, n int)
}{
	"many attributes": {30_000, func(md pmetric.Metrics, n int) {
		hostileMetric(md, func(dp pmetric.NumberDataPoint) { manyAttributes(dp.Attributes(), n) })
	}},
	"many attributes of a resource": {30_000, func(md pmetric.Metrics, n int) {
		hostileMetric(md, func(pmetric.NumberDataPoint) {})
		manyAttributes(md.ResourceMetrics().At(0).Resource().Attributes(), n)
		manyAttributes(md.ResourceMetrics().At(0).ScopeMetrics().At(0).Scope().Attributes(), n)
	}},
	"long values": {1 << 20, func(md pmetric.Metrics, n int) {
		hostileMetric(md, func(dp pmetric.NumberDataPoint) {
			long := strings.Repeat("x", n)
			dp.Attributes().PutStr("k", long)
			dp.Attributes().PutStr("label", long+"y")
			dp.Attributes().PutStr(long, "")
			dp.Attributes().PutEmptyBytes("bytes").FromRaw([]byte(long))
		})
		sm := md.ResourceMetrics().At(0).ScopeMetrics().At(0)
		sm.Metrics().At(0).SetName(strings.Repeat("n", n))
		sm.Metrics().At(0).SetUnit(strings.Repeat("u", n))
		sm.Scope().SetName(strings.Repeat("s", n))
		md.ResourceMetrics().At(0).Resource().Attributes().PutStr("tenant", strings.Repeat("t", n))
	}},
	"deep values": {50_000, func(md pmetric.Metrics, n int) {
		hostileMetric(md, func(dp pmetric.NumberDataPoint) {
			nest(dp.Attributes().PutEmpty("deep"), n).SetInt(1)
			v := dp.Attributes().PutEmpty("maps")
			for range n {
				v = v.SetEmptyMap().PutEmpty("m")
			}
		})
	}},
	"wide values": {30_000, func(md pmetric.Metrics, n int) {
		hostileMetric(md, func(dp pmetric.NumberDataPoint) {
			s := dp.Attributes().PutEmptySlice("wide")
			for range n {
				s.AppendEmpty().SetEmptySlice().AppendEmpty().SetInt(1)
			}
		})
	}},
	"metrics without points": {50_000, func(md pmetric.Metrics, n int) {
		hostileMetric(md, func(pmetric.NumberDataPoint) {})
		metrics := md.ResourceMetrics().At(0).ScopeMetrics().At(0).Metrics()
		for i := range n {
			m := metrics.AppendEmpty()
			m.SetName("m" + strconv.Itoa(i))
			switch i % 6 {
			case 0:
				m.SetEmptyGauge()
			case 1:
				m.SetEmptySum()
			case 2:
				m.SetEmptyHistogram()
			case 3:
				m.SetEmptyExponentialHistogram()
			case 4:
				m.SetEmptySummary()
			default: // none at all
			}
		}
	}},
	"resources without anything": {50_000, func(md pmetric.Metrics, n int) {
		hostileMetric(md, func(pmetric.NumberDataPoint) {})
		for range n {
			md.ResourceMetrics().AppendEmpty().ScopeMetrics().AppendEmpty()
		}
	}},
	"metrics of one point": {5_000, func(md pmetric.Metrics, n int) {
		for i := range n {
			hostileMetric(md, func(dp pmetric.NumberDataPoint) { dp.Attributes().PutInt("k", int64(i)) })
			md.ResourceMetrics().At(i).ScopeMetrics().At(0).Metrics().At(0).SetName("m" + strconv.Itoa(i))
		}
	}},
	"histograms of many buckets": {20_000, func(md pmetric.Metrics, n int) {
		hostileMetric(md, func(pmetric.NumberDataPoint) {})
		for i := range 3 {
			m := md.ResourceMetrics().At(0).ScopeMetrics().At(0).Metrics().AppendEmpty()
			m.SetName("e")
			dp := m.SetEmptyExponentialHistogram().DataPoints().AppendEmpty()
			dp.SetScale([]int32{math.MaxInt32, math.MinInt32, 0}[i])
			for _, side := range []pmetric.ExponentialHistogramDataPointBuckets{dp.Positive(), dp.Negative()} {
				side.SetOffset([]int32{math.MaxInt32, math.MinInt32, 0}[i])
				side.BucketCounts().FromRaw(make([]uint64, n))
				side.BucketCounts().SetAt(0, math.MaxUint64)
				side.BucketCounts().SetAt(n-1, math.MaxUint64)
			}
			m = md.ResourceMetrics().At(0).ScopeMetrics().At(0).Metrics().AppendEmpty()
			m.SetName("h")
			h := m.SetEmptyHistogram().DataPoints().AppendEmpty()
			bounds := make([]float64, n)
			for j := range bounds {
				bounds[j] = float64(j * (i + 1))
			}
			h.ExplicitBounds().FromRaw(bounds)
			h.BucketCounts().FromRaw(make([]uint64, n+1-i%2))
		}
	}},
	"nothing right": {300, func(md pmetric.Metrics, n int) {
		for i := range n {
			wrong(md, i)
		}
	}},
}

// hostileMetric adds a gauge with one point and a resource of its own.
func hostileMetric(md pmetric.Metrics, change func(pmetric.NumberDataPoint)) {
	rm := md.ResourceMetrics().AppendEmpty()
	rm.Resource().Attributes().PutStr("hostile", "yes")
	m := rm.ScopeMetrics().AppendEmpty().Metrics().AppendEmpty()
	m.SetName("m")
	change(m.SetEmptyGauge().DataPoints().AppendEmpty())
}

// manyAttributes sets attributes without searching for existing ones.
func manyAttributes(m pcommon.Map, n int) {
	raw := make(map[string]any, n)
	for i := range n {
		raw[strconv.Itoa(i)] = strconv.Itoa(i * 7)
	}
	must(m.FromRaw(raw))
}

// wrong adds one of several invalid points.
func wrong(md pmetric.Metrics, i int) {
	floats := []float64{math.NaN(), math.Inf(1), math.Inf(-1), -math.MaxFloat64, math.MaxFloat64, math.Copysign(0, -1), 5e-324}
	times := []pcommon.Timestamp{0, 1, math.MaxUint64, math.MaxInt64, 1 << 63}
	names := []string{"", "m", "\xff\xfe", "\x00", strings.Repeat("é", 40)[:63], "exempt.x"}
	f, at, start, name := floats[i%len(floats)], times[i%len(times)], times[i/2%len(times)], names[i%len(names)]
	rm := md.ResourceMetrics().AppendEmpty()
	rm.Resource().Attributes().PutStr("hostile", name)
	rm.Resource().Attributes().PutStr("tenant", name)
	m := rm.ScopeMetrics().AppendEmpty().Metrics().AppendEmpty()
	m.SetName(name)
	temporality := []pmetric.AggregationTemporality{0, 1, 2, 3, 256, math.MaxInt32, math.MinInt32}[i/3%7]
	label := func(a pcommon.Map) {
		a.PutStr(name, name)
		a.PutStr("label", name+strconv.Itoa(i%5))
		a.PutDouble("k", f)
		a.PutBool(ident.OverflowKey, i%3 == 0)
	}
	flags := pmetric.DataPointFlags(uint32(i % 3))
	switch i % 5 {
	case 0, 1:
		var dp pmetric.NumberDataPoint
		if i%2 == 0 {
			dp = m.SetEmptyGauge().DataPoints().AppendEmpty()
		} else {
			m.SetEmptySum().SetIsMonotonic(i%4 == 1)
			m.Sum().SetAggregationTemporality(temporality)
			dp = m.Sum().DataPoints().AppendEmpty()
		}
		if i%7 != 0 { // otherwise it has no value at all
			dp.SetDoubleValue(f)
		}
		dp.SetTimestamp(at)
		dp.SetStartTimestamp(start)
		dp.SetFlags(flags)
		label(dp.Attributes())
	case 2:
		m.SetEmptyHistogram().SetAggregationTemporality(temporality)
		dp := m.Histogram().DataPoints().AppendEmpty()
		dp.SetCount(math.MaxUint64 - uint64(i))
		dp.SetSum(f)
		dp.SetMin(f)
		dp.ExplicitBounds().FromRaw([]float64{f, 1, 1, math.NaN(), -1}[:i%6])
		dp.BucketCounts().FromRaw(make([]uint64, i/2%8))
		dp.SetTimestamp(at)
		dp.SetStartTimestamp(start)
		dp.SetFlags(flags)
		label(dp.Attributes())
	case 3:
		m.SetEmptyExponentialHistogram().SetAggregationTemporality(temporality)
		dp := m.ExponentialHistogram().DataPoints().AppendEmpty()
		dp.SetScale([]int32{math.MinInt32, math.MaxInt32, 0, -11, 21}[i/5%5])
		dp.SetZeroThreshold(f)
		dp.SetZeroCount(math.MaxUint64)
		dp.SetSum(f)
		dp.Positive().SetOffset([]int32{math.MinInt32, math.MaxInt32, 0}[i/5%3])
		dp.Positive().BucketCounts().FromRaw([]uint64{math.MaxUint64, 0, 1}[:i%4])
		dp.SetTimestamp(at)
		dp.SetStartTimestamp(start)
		dp.SetFlags(flags)
		label(dp.Attributes())
	default:
		dp := m.SetEmptySummary().DataPoints().AppendEmpty()
		dp.SetCount(math.MaxUint64)
		dp.SetSum(f)
		dp.QuantileValues().AppendEmpty().SetQuantile(f)
		dp.SetTimestamp(at)
		dp.SetStartTimestamp(start)
		dp.SetFlags(flags)
		label(dp.Attributes())
	}
}

// neighbour returns a request of an innocent tenant.
func neighbour() pmetric.Metrics {
	var points []point
	for i := range 10 {
		points = append(points, point{name: "good", kind: cumulative, resource: attrs{"tenant": "good"}, attrs: attrs{"i": int64(i)}})
	}
	return metricsOf(points...)
}

// TestHostileInput sends hostile input repeatedly, with others of its kind, and runs everything that processes it
// later.
func TestHostileInput(t *testing.T) {
	for name, h := range hostile {
		t.Run(name, func(t *testing.T) {
			host := newMemory()
			config := func(c *Config) {
				withStorage(everything)(c)
			}
			r := newRig(t, config)
			require.NoError(t, r.begin(host))
			require.Equal(t, 10, r.consume(neighbour()).DataPointCount())
			before := heapAfter()
			for round := range 6 {
				for variant := range 5 {
					md := pmetric.NewMetrics()
					h.make(md, h.size/10+variant)
					r.consume(md)
				}
				require.Equal(t, 10, r.consume(neighbour()).DataPointCount(), "the neighbour's series pass")
				r.epochs(1)
				r.clock = r.clock.Add(time.Minute)
				r.flush(t.Context())
				if round == 3 { // and it is displayed
					view := r.source().Cardinality
					view.Overview()
					_, _ = view.Metric("m")
				}
			}
			r.sink.Reset()
			require.Less(t, heapAfter()-before, int64(16<<20), "of what is to be within 4 MiB for overflow and 3 for statistics")
			require.NoError(t, r.shutdown(t.Context()))
			again := newRig(t, config)
			require.NoError(t, again.begin(host))
			require.Equal(t, 10, again.consume(neighbour()).DataPointCount())
		})
	}
}
