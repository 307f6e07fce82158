// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package tree

import (
	"slices"

	translator "github.com/open-telemetry/opentelemetry-collector-contrib/pkg/translator/prometheus"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/godwit-otel/godwit/internal/slab"
	"github.com/godwit-otel/godwit/receiver/fastprometheusreceiver/internal/page/plan"
)

// A cursor fills the points of a layout, and those that a variation adds.
type cursor struct {
	*View
	*plan.Layout

	broken  broken // histograms that were left out
	seen    []bool
	fresh   []int32
	slabs   *slab.Slabs // of metrics that are made anew
	rebuilt bool        // a point has other attributes than the one that was there
	anew    bool        // a point that was there has the same attributes in other memory
	hung    int         // exemplars, until the last point
	stowed  *int        // counts points that are kept for pages with more; nil where all are new
}

// point returns a point by its number: those of the variation follow the layout's.
func (c *cursor) point(i int32) plan.PlacedPoint {
	if int(i) < len(c.Points) {
		return c.Placed(int(i))
	}
	return c.Extra.Placed(int(i) - len(c.Points))
}

func (c *cursor) group(i int32) *plan.Group {
	if int(i) < len(c.Groups) {
		return &c.Groups[i]
	}
	return &c.Extra.Groups[int(i)-len(c.Groups)]
}

// A choice is the points that a metric is to have: first those it has already, once some are dropped and others renewed.
type choice struct {
	list  []int32 // numbers of points; nil for count of them from first on
	first int32
	count int
	kept  int
	drop  []bool
	renew []bool // of those kept: they are to become others
	isNew bool   // all are
	again int    // the last of those kept: they were stowed, and are to become others
}

// renews tells whether a point that is kept is to become another.
func (k choice) renews(i int) bool {
	return k.isNew || i >= k.kept-k.again || i < len(k.renew) && k.renew[i]
}

func (k choice) at(i int) int32 {
	if k.list != nil {
		return k.list[i]
	}
	return k.first + int32(i)
}

// allOf chooses every point of a metric, of which it has all or none.
func allOf(m *plan.PlacedMetric, there bool) choice {
	k := choice{first: m.First, count: int(m.Points)}
	if there {
		k.kept = k.count
	}
	return k
}

// choose finds the points of a metric that changes, or that has others than its layout says. It has had, if there.
func (c *cursor) choose(m *plan.PlacedMetric, ch plan.Change, had []int32, there bool) choice {
	n := int(m.Points)
	if !there || had == nil {
		k := choice{list: make([]int32, 0, n+int(ch.Count))}
		if there && ch.Absent > 0 {
			k.drop = make([]bool, n)
		}
		for i := range n {
			if at := m.First + int32(i); ch.Absent == 0 || !c.isAbsent(at) {
				k.list = append(k.list, at)
			} else if k.drop != nil {
				k.drop[i] = true
			}
		}
		if there {
			k.kept = len(k.list)
		}
		return k.and(c, ch)
	}
	c.seen = append(c.seen[:0], make([]bool, n)...)
	stays := func(at int32) bool {
		return at >= 0 && int(at) < len(c.Points) && (ch.Absent == 0 || !c.isAbsent(at))
	}
	for _, at := range had {
		if stays(at) {
			c.seen[at-m.First] = true
		}
	}
	fresh := choice{list: c.fresh[:0]}
	for i, seen := range c.seen {
		if at := m.First + int32(i); !seen && stays(at) {
			fresh.list = append(fresh.list, at)
		}
	}
	fresh = fresh.and(c, ch)
	c.fresh = fresh.list
	k := choice{list: make([]int32, 0, n+int(ch.Count)), drop: make([]bool, len(had)), renew: make([]bool, len(had))}
	for i, at := range had {
		switch {
		case stays(at):
			k.list = append(k.list, at)
		case len(fresh.list) > 0:
			k.renew[len(k.list)] = true
			k.list = append(k.list, fresh.list[0])
			fresh.list = fresh.list[1:]
		default:
			k.drop[i] = true
		}
	}
	k.kept = len(k.list)
	k.list = append(k.list, fresh.list...)
	k.count = len(k.list)
	return k
}

// and adds the extra points.
func (k choice) and(c *cursor, ch plan.Change) choice {
	for i := range ch.Count {
		k.list = append(k.list, int32(len(c.Points))+ch.First+i)
	}
	k.count = len(k.list)
	return k
}

func (c *cursor) isAbsent(point int32) bool {
	return c.Absent.Has(c.Anchor(point))
}

const cumulative = pmetric.AggregationTemporalityCumulative

// append adds an empty metric, one that is of its kind and has room for so many points unless these are native histograms.
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

// metric fills a metric, which is there or empty.
func (c *cursor) metric(m *plan.PlacedMetric, out pmetric.Metric, k choice, there bool) {
	b := m.Family.Base
	if !there {
		out.SetName(b.Out)
		out.SetDescription(b.Help)
		out.SetUnit(b.OutUnit)
		about := fillOnce(out.Metadata(), 1, c.slabs)
		about.put(translator.MetricMetadataTypeKey, string(b.PromType))
	}
	switch b.Kind {
	case pmetric.MetricTypeHistogram:
		if !there {
			h := out.Histogram()
			if out.Type() != pmetric.MetricTypeHistogram {
				h = out.SetEmptyHistogram()
			}
			h.SetAggregationTemporality(cumulative)
		}
		dps := out.Histogram().DataPoints()
		k = prepare(c, dps, k, forgetHistogram)
		for i := range k.count {
			at := k.at(i)
			p := c.point(at)
			if !c.sound(p, b.Custom) {
				c.broken.add(b.Out)
				continue // where the point is there already, the tree is of no use
			}
			dp := c.buckets(dps, p, i, k.kept, b.Custom)
			c.attributes(at, k, i, dp.Attributes())
			c.histogram(at, b.Custom, dp, c.hangs(k))
		}
	case pmetric.MetricTypeSummary:
		if !there && out.Type() != pmetric.MetricTypeSummary {
			out.SetEmptySummary()
		}
		dps := out.Summary().DataPoints()
		k = prepare(c, dps, k, forgetSummary)
		for i := range k.count {
			at := k.at(i)
			p := c.point(at)
			dp := c.quantiles(dps, p, i, k.kept)
			c.attributes(at, k, i, dp.Attributes())
			c.summary(p, dp)
		}
	case pmetric.MetricTypeExponentialHistogram:
		if !there {
			out.SetEmptyExponentialHistogram().SetAggregationTemporality(cumulative)
		}
		dps := out.ExponentialHistogram().DataPoints()
		k = prepare(c, dps, k, forgetExponential)
		for i := range k.count {
			at := k.at(i)
			fresh := pmetric.NewExponentialHistogramDataPoint()
			fillPoint(fresh.Attributes(), c.point(at).Point, c.ownerOf(at), c.slabs)
			c.exponential(at, fresh)
			fresh.MoveTo(next(dps, i, k.kept))
			c.anew = c.anew || i < k.kept
		}
	case pmetric.MetricTypeSum:
		if !there {
			s := out.Sum()
			if out.Type() != pmetric.MetricTypeSum {
				s = out.SetEmptySum()
			}
			s.SetAggregationTemporality(cumulative)
			s.SetIsMonotonic(b.Monotonic)
		}
		c.numbers(k, out.Sum().DataPoints())
	default:
		if !there && out.Type() != pmetric.MetricTypeGauge {
			out.SetEmptyGauge()
		}
		c.numbers(k, out.Gauge().DataPoints())
	}
}

type slice[P any] interface {
	At(i int) P
	AppendEmpty() P
	EnsureCapacity(n int)
	RemoveIf(f func(P) bool)
}

// prepare takes out the points that are not wanted any more, and makes room for new ones. Those taken out are kept for a page that has
// more again: to make them is most of what it costs to fill a tree.
func prepare[P slab.Point, S slice[P]](c *cursor, dps S, k choice, forget func(P)) choice {
	if slices.Contains(k.drop, true) {
		for i, drops := range k.drop {
			if drops {
				forget(dps.At(i))
			}
		}
		kept := slab.Stow[S, P](dps, k.drop)
		if c.stowed != nil {
			*c.stowed += kept
		}
	}
	if k.kept < k.count {
		if c.stowed != nil && *c.stowed > 0 {
			k.again = slab.Unstow[S, P](dps, k.count)
			k.kept += k.again
			*c.stowed -= k.again
		}
		dps.EnsureCapacity(k.count)
	}
	return k
}

// What is stowed has no texts of a target, which may be gone before it is used again.
func forgetNumber(dp pmetric.NumberDataPoint) {
	forgetTexts(dp.Attributes())
	forgetExemplars(dp.Exemplars())
}

func forgetHistogram(dp pmetric.HistogramDataPoint) {
	forgetTexts(dp.Attributes())
	forgetExemplars(dp.Exemplars())
}

func forgetExponential(dp pmetric.ExponentialHistogramDataPoint) {
	forgetTexts(dp.Attributes())
	forgetExemplars(dp.Exemplars())
}

func forgetSummary(dp pmetric.SummaryDataPoint) { forgetTexts(dp.Attributes()) }

func forgetTexts(m pcommon.Map) {
	for _, v := range m.All() {
		slab.ChangeStr(v, "")
	}
}

func forgetExemplars(s pmetric.ExemplarSlice) {
	for i := range s.Len() {
		if attrs := s.At(i).FilteredAttributes(); attrs.Len() > 0 {
			attrs.Clear()
		}
	}
}

// hangs tells whether points may have exemplars, or have had.
func (c *cursor) hangs(k choice) bool { return c.hanging || k.again > 0 }

// next returns point i of a choice, a new one behind those that were there.
func next[P any, S slice[P]](dps S, i, kept int) P {
	if i < kept {
		return dps.At(i)
	}
	return dps.AppendEmpty()
}

// attributes gives a point its own.
func (c *cursor) attributes(at int32, k choice, i int, m pcommon.Map) {
	switch {
	case i >= k.kept:
		fillPoint(m, c.point(at).Point, c.ownerOf(at), c.slabs)
	case k.renews(i):
		c.rebuilt = !refillPoint(m, c.point(at).Point, c.ownerOf(at)) || c.rebuilt
	}
}

// ownerOf returns whose values a point has, by its number.
func (c *cursor) ownerOf(at int32) *Owner {
	if c.Before != nil && int(at) >= len(c.Points) {
		return c.Before
	}
	return c.Owner
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
			pmetric.NewNumberDataPoint().MoveTo(dps.At(i)) // a value cannot be taken back
			fillPoint(dps.At(i).Attributes(), p.Point, c.ownerOf(at), nil)
			c.anew = true
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
		if c.hangs(k) {
			c.hang(at, dp.Exemplars())
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

// buckets is next for histograms, and quantiles for summaries.
func (c *cursor) buckets(dps pmetric.HistogramDataPointSlice, p plan.PlacedPoint, i, kept int, isCustom bool) pmetric.HistogramDataPoint {
	if i >= kept && c.slabs != nil && !isCustom {
		return c.slabs.AppendBuckets(dps, c.group(p.At).Bounds)
	}
	return next(dps, i, kept)
}

func (c *cursor) quantiles(dps pmetric.SummaryDataPointSlice, p plan.PlacedPoint, i, kept int) pmetric.SummaryDataPoint {
	if i >= kept && c.slabs != nil {
		return c.slabs.AppendQuantiles(dps, len(c.group(p.At).Parts))
	}
	return next(dps, i, kept)
}

func (v *View) isStaleGroup(g *plan.Group) bool {
	return plan.IsStale(v.value(g.Count)) || plan.IsStale(v.value(g.Sum))
}

// histogram fills the point of a histogram that is sound.
func (c *cursor) histogram(i int32, isCustom bool, dp pmetric.HistogramDataPoint, hangs bool) {
	p := c.point(i)
	if isCustom {
		c.custom(p, dp)
		c.hang(i, dp.Exemplars())
		return
	}
	g := c.group(p.At)
	counts, n := dp.BucketCounts(), len(g.Parts)
	if counts.Len() != n+1 || !sameBounds(dp.ExplicitBounds(), g.Bounds) {
		dp.ExplicitBounds().FromRaw(g.Bounds)
		counts.FromRaw(nil)
		counts.EnsureCapacity(n + 1)
		for range n + 1 {
			counts.Append(0)
		}
	}
	if c.isStaleGroup(g) {
		dp.SetFlags(noValue)
		dp.SetCount(0)
		dp.RemoveSum()
		for j := range n + 1 {
			counts.SetAt(j, 0)
		}
	} else {
		dp.SetFlags(noFlags)
		last := 0.0
		for j := range g.Parts {
			v := c.Values[g.Parts[j].At]
			counts.SetAt(j, uint64(v-last))
			last = v
		}
		count := c.Values[g.Count]
		counts.SetAt(n, uint64(count-last))
		dp.SetCount(uint64(count))
		if g.Sum >= 0 {
			dp.SetSum(c.Values[g.Sum])
		} else {
			dp.RemoveSum()
		}
	}
	dp.SetStartTimestamp(c.started(p.Created))
	dp.SetTimestamp(c.time(g.Count))
	if hangs {
		c.hang(i, dp.Exemplars())
	}
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

func (c *cursor) summary(p plan.PlacedPoint, dp pmetric.SummaryDataPoint) {
	g := c.group(p.At)
	stale := c.isStaleGroup(g)
	qs := dp.QuantileValues()
	if qs.Len() != len(g.Parts) {
		qs.RemoveIf(func(pmetric.SummaryDataPointValueAtQuantile) bool { return true })
		qs.EnsureCapacity(len(g.Parts))
		for range g.Parts {
			qs.AppendEmpty()
		}
	}
	for j := range g.Parts {
		v := 0.0
		if !stale {
			v = c.Values[g.Parts[j].At]
		}
		qs.At(j).SetQuantile(g.Parts[j].Bound)
		qs.At(j).SetValue(v)
	}
	if stale {
		dp.SetFlags(noValue)
		dp.SetSum(0)
		dp.SetCount(0)
	} else {
		dp.SetFlags(noFlags)
		dp.SetCount(uint64(c.Values[g.Count]))
		sum := 0.0
		if g.Sum >= 0 {
			sum = c.Values[g.Sum]
		}
		dp.SetSum(sum)
	}
	dp.SetTimestamp(c.time(g.Count))
	dp.SetStartTimestamp(c.started(p.Created))
}
