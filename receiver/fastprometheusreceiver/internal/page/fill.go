// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package page

import (
	"math"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"

	translator "github.com/open-telemetry/opentelemetry-collector-contrib/pkg/translator/prometheus"
)

// A cursor fills the points of a layout, new ones or some that held something before.
type cursor struct {
	*view
	*layout

	left     bool // a point was left out
	exemplar int  // the next
}

const cumulative = pmetric.AggregationTemporalityCumulative

// metric fills a metric. old are the points it has, of which the first that m has too come in m's order.
func (c *cursor) metric(m *placedMetric, out pmetric.Metric, old []placedPoint) {
	b := m.family.base
	if old == nil {
		out.SetName(b.out)
		out.SetDescription(b.help)
		out.SetUnit(b.outUnit)
		out.Metadata().PutStr(translator.MetricMetadataTypeKey, string(b.promType))
	}
	points := c.points[m.first : m.first+m.points]
	switch b.kind {
	case pmetric.MetricTypeHistogram:
		if old == nil {
			out.SetEmptyHistogram().SetAggregationTemporality(cumulative)
		}
		dps := out.Histogram().DataPoints()
		kept := len(points)
		if !isSame(old, points) {
			kept = prune(old, points, dps)
		}
		dps.EnsureCapacity(len(points))
		for i := range points {
			if kept == 0 && !c.sound(&points[i], b.custom) {
				c.left = true
				continue
			}
			dp := at(dps, i, kept)
			c.attributes(&points[i], i >= kept, dp.Attributes())
			c.left = !c.histogram(int(m.first)+i, b.custom, dp) || c.left
		}
	case pmetric.MetricTypeSummary:
		if old == nil {
			out.SetEmptySummary()
		}
		dps := out.Summary().DataPoints()
		kept := len(points)
		if !isSame(old, points) {
			kept = prune(old, points, dps)
		}
		dps.EnsureCapacity(len(points))
		for i := range points {
			dp := at(dps, i, kept)
			c.attributes(&points[i], i >= kept, dp.Attributes())
			c.summary(&points[i], dp)
		}
	case pmetric.MetricTypeExponentialHistogram:
		if old == nil {
			out.SetEmptyExponentialHistogram().SetAggregationTemporality(cumulative)
		}
		dps := out.ExponentialHistogram().DataPoints()
		kept := len(points)
		if !isSame(old, points) {
			kept = prune(old, points, dps)
		}
		for i := range points {
			fresh := pmetric.NewExponentialHistogramDataPoint()
			c.attributes(&points[i], true, fresh.Attributes())
			c.exponential(int32(int(m.first)+i), fresh)
			fresh.MoveTo(at(dps, i, kept))
		}
	case pmetric.MetricTypeSum:
		if old == nil {
			s := out.SetEmptySum()
			s.SetAggregationTemporality(cumulative)
			s.SetIsMonotonic(b.monotonic)
		}
		c.numbers(m, points, out.Sum().DataPoints(), old)
	default:
		if old == nil {
			out.SetEmptyGauge()
		}
		c.numbers(m, points, out.Gauge().DataPoints(), old)
	}
}

// isSame tells whether the points are those of one layout.
func isSame(old, wanted []placedPoint) bool {
	return len(old) == len(wanted) && &old[0] == &wanted[0]
}

// prune removes the points that are not wanted any more and returns how many are left: the first of those wanted.
func prune[P any, S slice[P]](old, wanted []placedPoint, dps S) (kept int) {
	if len(old) == 0 {
		return 0
	}
	for kept < len(old) && kept < len(wanted) && old[kept].point == wanted[kept].point {
		kept++
	}
	if kept == len(old) {
		return kept
	}
	i := -1
	kept = 0
	dps.RemoveIf(func(P) bool {
		i++
		if kept < len(wanted) && old[i].point == wanted[kept].point {
			kept++
			return false
		}
		return true
	})
	return kept
}

type slice[P any] interface {
	At(i int) P
	AppendEmpty() P
	RemoveIf(f func(P) bool)
}

// at returns point i of a metric that has kept some, a new one behind them.
func at[P any, S slice[P]](dps S, i, kept int) P {
	if i < kept {
		return dps.At(i)
	}
	return dps.AppendEmpty()
}

func (c *cursor) attributes(p *placedPoint, isNew bool, m pcommon.Map) {
	if isNew {
		p.point.fill(m, c.target)
	}
}

var (
	noFlags = pmetric.DefaultDataPointFlags
	noValue = pmetric.DefaultDataPointFlags.WithNoRecordedValue(true)
)

func (c *cursor) numbers(m *placedMetric, points []placedPoint, dps pmetric.NumberDataPointSlice, old []placedPoint) {
	kept := len(points)
	if !isSame(old, points) {
		kept = prune(old, points, dps)
		dps.EnsureCapacity(len(points))
	}
	for i := range points {
		p := &points[i]
		v := c.values[p.at]
		if i < kept && isStale(v) {
			pmetric.NewNumberDataPoint().MoveTo(dps.At(i)) // a value cannot be taken back
			p.point.fill(dps.At(i).Attributes(), c.target)
		}
		dp := at(dps, i, kept)
		switch {
		case isStale(v):
			dp.SetFlags(noValue)
		case i >= kept:
			dp.SetDoubleValue(v)
		case dp.ValueType() != pmetric.NumberDataPointValueTypeDouble:
			dp.SetFlags(noFlags)
			dp.SetDoubleValue(v)
		case math.Float64bits(v) != math.Float64bits(dp.DoubleValue()):
			dp.SetDoubleValue(v) // allocates: worth a look before
		default:
		}
		dp.SetTimestamp(c.time(p.at))
		if p.created >= 0 || i < kept {
			dp.SetStartTimestamp(c.started(p.created))
		}
		c.attributes(p, i >= kept, dp.Attributes())
		if c.hanging {
			c.hang(int(m.first)+i, dp.Exemplars())
		}
	}
}

// sound tells whether the buckets of a histogram can be told apart: numbers that do not fall, none above the count.
func (c *cursor) sound(p *placedPoint, isCustom bool) bool {
	if isCustom {
		n, ok := c.natives[p.at]
		if !ok || n.stale() {
			return true
		}
		count, sum := n.totals()
		return count != 0 || sum == 0 // a sum without a count says that there was none
	}
	g := &c.groups[p.at]
	if g.isStale(c.view) {
		return true
	}
	last := 0.0
	for i := range g.parts {
		b := c.values[g.parts[i].at]
		if !(b >= last) { // nor is NaN
			return false
		}
		last = b
	}
	return c.values[g.count] >= last
}

func (g *group) isStale(v *view) bool { return isStale(v.value(g.count)) || isStale(v.value(g.sum)) }

// histogram fills a histogram's point, and tells whether it could.
func (c *cursor) histogram(i int, isCustom bool, dp pmetric.HistogramDataPoint) bool {
	p := &c.points[i]
	if !c.sound(p, isCustom) {
		return false
	}
	if isCustom {
		c.custom(p, dp)
		c.hang(i, dp.Exemplars())
		return true
	}
	g := &c.groups[p.at]
	counts, n := dp.BucketCounts(), len(g.parts)
	if counts.Len() != n+1 || !sameBounds(dp.ExplicitBounds(), g.bounds) {
		dp.ExplicitBounds().FromRaw(g.bounds)
		counts.FromRaw(nil)
		counts.EnsureCapacity(n + 1)
		for range n + 1 {
			counts.Append(0)
		}
	}
	if g.isStale(c.view) {
		dp.SetFlags(noValue)
		dp.SetCount(0)
		dp.RemoveSum()
		for j := range n + 1 {
			counts.SetAt(j, 0)
		}
	} else {
		dp.SetFlags(noFlags)
		last := 0.0
		for j := range g.parts {
			v := c.values[g.parts[j].at]
			counts.SetAt(j, uint64(v-last))
			last = v
		}
		count := c.values[g.count]
		counts.SetAt(n, uint64(count-last))
		dp.SetCount(uint64(count))
		if g.sum >= 0 {
			dp.SetSum(c.values[g.sum])
		} else {
			dp.RemoveSum()
		}
	}
	dp.SetStartTimestamp(c.started(p.created))
	dp.SetTimestamp(c.time(g.count))
	if c.hanging {
		c.hang(i, dp.Exemplars())
	}
	return true
}

func sameBounds(s pcommon.Float64Slice, bounds []float64) bool {
	if s.Len() != len(bounds) {
		return false
	}
	for i, b := range bounds {
		if s.At(i) != b {
			return false
		}
	}
	return true
}

func (c *cursor) summary(p *placedPoint, dp pmetric.SummaryDataPoint) {
	g := &c.groups[p.at]
	stale := g.isStale(c.view)
	qs := dp.QuantileValues()
	if qs.Len() != len(g.parts) {
		qs.RemoveIf(func(pmetric.SummaryDataPointValueAtQuantile) bool { return true })
		qs.EnsureCapacity(len(g.parts))
		for range g.parts {
			qs.AppendEmpty()
		}
	}
	for j := range g.parts {
		v := 0.0
		if !stale {
			v = c.values[g.parts[j].at]
		}
		qs.At(j).SetQuantile(g.parts[j].bound)
		qs.At(j).SetValue(v)
	}
	if stale {
		dp.SetFlags(noValue)
		dp.SetSum(0)
		dp.SetCount(0)
	} else {
		dp.SetFlags(noFlags)
		dp.SetCount(uint64(c.values[g.count]))
		sum := 0.0
		if g.sum >= 0 {
			sum = c.values[g.sum]
		}
		dp.SetSum(sum)
	}
	dp.SetTimestamp(c.time(g.count))
	dp.SetStartTimestamp(c.started(p.created))
}
