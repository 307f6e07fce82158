// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package tree

import (
	translator "github.com/open-telemetry/opentelemetry-collector-contrib/pkg/translator/prometheus"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/godwit-otel/godwit/internal/slab"
	"github.com/godwit-otel/godwit/receiver/fastprometheusreceiver/internal/page/catalog"
	"github.com/godwit-otel/godwit/receiver/fastprometheusreceiver/internal/page/plan"
)

const cumulative = pmetric.AggregationTemporalityCumulative

// append adds an empty metric of the given kind, with room for n points unless these are native histograms.
func (c *cursor) append(to pmetric.MetricSlice, kind pmetric.MetricType, n int) (m pmetric.Metric) {
	switch kind {
	case pmetric.MetricTypeSum:
		m, _ = c.slabs.AppendSum(to, n)
	case pmetric.MetricTypeGauge:
		m, _ = c.slabs.AppendGauge(to, n)
	case pmetric.MetricTypeHistogram:
		m, _ = c.slabs.AppendHistogram(to, n)
	case pmetric.MetricTypeSummary:
		m, _ = c.slabs.AppendSummary(to, n)
	default:
		m = to.AppendEmpty()
	}
	return m
}

// metric fills a metric, which exists already or is empty.
func (c *cursor) metric(m *plan.PlacedMetric, out pmetric.Metric, k choice, there bool) {
	if !there {
		c.describe(m.Family, out)
	}
	switch m.Family.Base.Kind {
	case pmetric.MetricTypeHistogram:
		c.histograms(m.Family, k, out.Histogram().DataPoints())
	case pmetric.MetricTypeSummary:
		c.summaries(k, out.Summary().DataPoints())
	case pmetric.MetricTypeExponentialHistogram:
		c.exponentials(m.Family, k, out.ExponentialHistogram().DataPoints())
	case pmetric.MetricTypeSum:
		c.numbers(k, out.Sum().DataPoints())
	default:
		c.numbers(k, out.Gauge().DataPoints())
	}
}

// describe sets all of an empty metric except its points. Its type may be set already.
func (c *cursor) describe(f *catalog.Family, out pmetric.Metric) {
	b := f.Base
	out.SetName(b.Out)
	out.SetDescription(b.Help)
	out.SetUnit(b.OutUnit)
	about := fillOnce(out.Metadata(), 1, c.slabs)
	about.put(translator.MetricMetadataTypeKey, string(b.PromType))
	switch b.Kind {
	case pmetric.MetricTypeHistogram:
		h := out.Histogram()
		if out.Type() != pmetric.MetricTypeHistogram {
			h = out.SetEmptyHistogram()
		}
		h.SetAggregationTemporality(cumulative)
	case pmetric.MetricTypeSummary:
		if out.Type() != pmetric.MetricTypeSummary {
			out.SetEmptySummary()
		}
	case pmetric.MetricTypeExponentialHistogram:
		out.SetEmptyExponentialHistogram().SetAggregationTemporality(cumulative)
	case pmetric.MetricTypeSum:
		sum := out.Sum()
		if out.Type() != pmetric.MetricTypeSum {
			sum = out.SetEmptySum()
		}
		sum.SetAggregationTemporality(cumulative)
		sum.SetIsMonotonic(b.Monotonic)
	default:
		if out.Type() != pmetric.MetricTypeGauge {
			out.SetEmptyGauge()
		}
	}
}

func (c *cursor) histograms(f *catalog.Family, k choice, dps pmetric.HistogramDataPointSlice) {
	k = prepare(c, dps, k, forgetHistogram)
	for i := range k.count {
		at := k.at(i)
		p := c.point(at)
		if !c.isConsistent(p, f.Base.Custom) {
			c.broken.add(f.Base.Out)
			continue // if the point exists already, the tree cannot be used any more
		}
		dp := c.buckets(dps, p, i, k.kept, f.Base.Custom)
		c.attributes(at, k, i, dp.Attributes())
		c.histogram(at, f.Base.Custom, dp, c.mayHaveExemplars(k))
	}
}

func (c *cursor) summaries(k choice, dps pmetric.SummaryDataPointSlice) {
	k = prepare(c, dps, k, forgetSummary)
	for i := range k.count {
		at := k.at(i)
		p := c.point(at)
		dp := c.quantiles(dps, p, i, k.kept)
		c.attributes(at, k, i, dp.Attributes())
		c.summary(p, dp)
	}
}

func (c *cursor) exponentials(f *catalog.Family, k choice, dps pmetric.ExponentialHistogramDataPointSlice) {
	k = prepare(c, dps, k, forgetExponential)
	for i := range k.count {
		at := k.at(i)
		p := c.point(at)
		if n, ok := c.Natives[p.At]; ok && !n.Stale() && !n.Counts() {
			c.broken.add(f.Base.Out)
			continue
		}
		fresh := pmetric.NewExponentialHistogramDataPoint()
		fillPoint(fresh.Attributes(), p.Point, c.ownerOf(at), c.slabs)
		c.exponential(at, fresh)
		fresh.MoveTo(next(dps, i, k.kept))
		c.moved = c.moved || i < k.kept
	}
}

// next returns point i of a choice; it adds a point if all existing ones are used.
func next[P any, S slice[P]](dps S, i, kept int) P {
	if i < kept {
		return dps.At(i)
	}
	return dps.AppendEmpty()
}

// mayHaveExemplars reports whether points may have exemplars, now or from before.
func (c *cursor) mayHaveExemplars(k choice) bool { return c.hasExemplars || k.unstowed > 0 }

// attributes sets the attributes of a point.
func (c *cursor) attributes(at int32, k choice, i int, m pcommon.Map) {
	switch {
	case i >= k.kept:
		fillPoint(m, c.point(at).Point, c.ownerOf(at), c.slabs)
	case k.renews(i):
		c.rebuilt = !refillPoint(m, c.point(at).Point, c.ownerOf(at)) || c.rebuilt
	}
}

var (
	noFlags = pmetric.DefaultDataPointFlags
	noValue = pmetric.DefaultDataPointFlags.WithNoRecordedValue(true)
)

func (c *cursor) numbers(k choice, dps pmetric.NumberDataPointSlice) {
	k = prepare(c, dps, k, forgetNumber)
	for i := range k.count {
		at := k.at(i)
		p := c.point(at)
		v := c.Values[p.At]
		if i < k.kept && plan.IsStale(v) && dps.At(i).ValueType() != pmetric.NumberDataPointValueTypeEmpty {
			pmetric.NewNumberDataPoint().MoveTo(dps.At(i)) // a value cannot be removed from a point
			fillPoint(dps.At(i).Attributes(), p.Point, c.ownerOf(at), nil)
			c.moved = true
		}
		dp := c.number(dps, i, k.kept)
		switch {
		case plan.IsStale(v):
			dp.SetFlags(noValue)
		case i >= k.kept && c.slabs != nil:
			c.slabs.SetDouble(dp, v)
		case i >= k.kept:
			dp.SetDoubleValue(v)
		case dp.ValueType() != pmetric.NumberDataPointValueTypeDouble:
			dp.SetFlags(noFlags)
			dp.SetDoubleValue(v)
		default:
			slab.ChangeDouble(dp, v)
		}
		dp.SetTimestamp(c.time(p.At))
		if p.Created >= 0 || i < k.kept {
			dp.SetStartTimestamp(c.started(p.Created))
		}
		c.attributes(at, k, i, dp.Attributes())
		if c.mayHaveExemplars(k) {
			c.setExemplars(at, dp.Exemplars())
		}
	}
}

// number is next for numbers.
func (c *cursor) number(dps pmetric.NumberDataPointSlice, i, kept int) pmetric.NumberDataPoint {
	if i >= kept && c.slabs != nil {
		return c.slabs.AppendNumber(dps)
	}
	return next(dps, i, kept)
}
