// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"cmp"
	"math"
	"slices"

	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/godwit-otel/godwit/receiver/fastprometheusreceiver/internal/page/catalog"
)

// A Layout is the structure of the metrics that the samples of a page make, without their values. Samples are named by
// their number on the page, -1 if there is none.
type Layout struct {
	Resources []PlacedResource
	Scopes    []placedScope
	Metrics   []PlacedMetric   // in the order of their first samples
	Points    []*catalog.Point // metric by metric
	At        []int32          // the sample that has each point's value; for a histogram or a summary, its group
	Created   []int32          // the sample that has each point's start time; nil if no point has one
	Groups    []Group          // the parts of histograms and summaries
	Marked    int              // how many points have an attribute that the target fills in
	Runs      []Run            // the order in which a large page's points are handed on

	Attributes int // of all points together
}

// A PlacedResource is a resource in a layout.
type PlacedResource struct {
	Resource *catalog.Resource
	Info     []*catalog.Point // target_info
}

type placedScope struct {
	Resource int32
	Scope    *catalog.Scope
}

// A PlacedMetric is a metric in a layout.
type PlacedMetric struct {
	Family *catalog.Family
	Scope  int32
	First  int32 // index of its first point
	Points int32
}

// A PlacedPoint is a point in a layout.
type PlacedPoint struct {
	Point       *catalog.Point
	At, Created int32
}

// Placed returns a point by its number.
func (l *Layout) Placed(i int) PlacedPoint {
	p := PlacedPoint{l.Points[i], l.At[i], -1}
	if l.Created != nil {
		p.Created = l.Created[i]
	}
	return p
}

// A Group has the numbers of the samples of a histogram or a summary.
type Group struct {
	Count, Sum int32
	rest       int32   // the bucket without a bound: its value is the count's, but it has its own exemplars
	Parts      []int32 // by bound
	Bounds     []float64
}

// isGrouped reports whether the point has a group.
func (p PlacedPoint) isGrouped() bool {
	return Grouped(p.Point.Family.Base.Kind) && !p.Point.Family.Base.Custom
}

// A builder builds layouts. Its memory is used again, under the cohort's lock.
type builder struct {
	epoch     uint32
	resources []PlacedResource
	scopes    []placedScope
	nearest   int32                 // the scope found last: nearly always that of the next metric, too
	places    map[placedScope]int32 // of scopes
	metrics   []builtMetric
	points    []builtPoint
	groups    []builtGroup
	parts     int // how many parts the layout's groups have, at most
	splits    map[split]int32
	stale     int32 // samples from this number on are stale markers
	bounds    *catalog.Bounds
	anchored  int
	grouped   int
	created   bool // a point has a start time
}

type builtMetric struct {
	family      *catalog.Family
	scope       int32
	first, last int32 // indexes of its points
}

// A builtPoint is a point in a list linked by next: most metrics have one point only, so they have no slices of their
// own.
type builtPoint struct {
	point       *catalog.Point
	time        int64
	at, created int32
	group       int32 // -1: none
	next        int32 // next point of the metric, or -1
}

// A builtGroup is a group whose parts are not sorted yet.
type builtGroup struct {
	count, sum int32
	parts      []part
}

type part struct {
	bound float64
	at    int32
}

// A split is a point that occurs more than once, at different times.
type split struct {
	point *catalog.Point
	time  int64
}

func (b *builder) reset(epoch uint32, stale int, bounds *catalog.Bounds) {
	b.epoch, b.stale, b.bounds = epoch, int32(stale), bounds
	b.resources, b.scopes, b.metrics = b.resources[:0], b.scopes[:0], b.metrics[:0]
	b.points, b.groups, b.nearest = b.points[:0], b.groups[:0], 0
	b.anchored, b.grouped, b.parts, b.created = 0, 0, 0, false
	b.splits, b.places = catalog.Cleared(b.splits), catalog.Cleared(b.places)
}

// add places sample i.
func (b *builder) add(l *catalog.Line, i int, time int64) {
	switch l.Role {
	case catalog.NoRole:
		return
	case catalog.TargetInfoRole:
		r := &b.resources[b.resource(l.Point.Family.Resource)]
		r.Info = append(r.Info, l.Point)
		return
	}
	at := int32(i)
	f := l.Point.Family
	if f.Epoch != b.epoch {
		b.metric(f)
	}
	m := &b.metrics[f.Slot]
	order := b.find(l.Point, time)
	if at >= b.stale && order < 0 && l.Role == catalog.CreatedRole {
		return // a stale marker of no value
	}
	if order < 0 {
		order = b.open(m, l.Point, time)
	}
	p := &b.points[order]
	count := b.count(p)
	if at >= b.stale && (p.at >= 0 && p.at < b.stale || count >= 0 && count < b.stale || l.Role == catalog.CreatedRole) {
		isLastSum := l.Role == catalog.SumRole && f.Base.Kind == pmetric.MetricTypeSummary && b.group(p).sum < 0
		if !isLastSum {
			return // the point goes on: losing a part does not make it stale
		}
		// But a summary cannot say that it has no sum, and 0 would be a value: so it ends, and is a new point from the
		// next page on.
	}
	switch l.Role {
	case catalog.ValueRole, catalog.NativeRole:
		p.at = at
	case catalog.CreatedRole:
		p.created = at
	case catalog.SumRole:
		b.group(p).sum = at
	case catalog.CountRole:
		b.group(p).count = at
	case catalog.BucketRole:
		g := b.group(p)
		g.parts = append(g.parts, part{b.bounds.Of(l), at})
		b.parts++
	default:
	}
}

// count returns the sample with the count of a histogram or a summary, or -1.
func (b *builder) count(p *builtPoint) int32 {
	if p.group < 0 {
		return -1
	}
	return b.groups[p.group].count
}

// group returns the group of a point, valid until the next call.
func (b *builder) group(p *builtPoint) *builtGroup {
	if p.group < 0 {
		n := len(b.groups)
		var parts []part
		if n < cap(b.groups) {
			parts = b.groups[:n+1][n].parts[:0]
		}
		p.group = int32(n)
		b.groups = append(b.groups, builtGroup{-1, -1, parts})
	}
	return &b.groups[p.group]
}

func (b *builder) resource(r *catalog.Resource) int32 {
	if r.Epoch != b.epoch {
		r.Epoch, r.Slot = b.epoch, int32(len(b.resources))
		b.resources = append(b.resources, PlacedResource{Resource: r})
	}
	return r.Slot
}

func (b *builder) metric(f *catalog.Family) {
	f.Epoch, f.Slot = b.epoch, int32(len(b.metrics))
	b.metrics = append(b.metrics, builtMetric{f, b.scope(placedScope{b.resource(f.Resource), f.Scope}), -1, -1})
}

func (b *builder) scope(s placedScope) int32 {
	if n := int(b.nearest); n < len(b.scopes) && b.scopes[n] == s {
		return b.nearest
	}
	at, ok := b.places[s]
	if !ok {
		if b.places == nil {
			b.places = map[placedScope]int32{}
		}
		at = int32(len(b.scopes))
		b.places[s] = at
		b.scopes = append(b.scopes, s)
	}
	b.nearest = at
	return at
}

// find returns the index of the point at this time, or -1.
func (b *builder) find(p *catalog.Point, time int64) int32 {
	if p.Epoch != b.epoch {
		return -1
	}
	if order := p.Order(); b.points[order].time == time {
		return order
	}
	if order, ok := b.splits[split{p, time}]; ok {
		return order
	}
	return -1
}

func (b *builder) open(m *builtMetric, p *catalog.Point, time int64) int32 {
	order := int32(len(b.points))
	if p.Epoch != b.epoch {
		p.Epoch = b.epoch
		p.SetOrder(order)
	} else {
		if b.splits == nil {
			b.splits = map[split]int32{}
		}
		b.splits[split{p, time}] = order
	}
	b.points = append(b.points, builtPoint{point: p, time: time, at: -1, created: -1, group: -1, next: -1})
	if m.last < 0 {
		m.first = order
	} else {
		b.points[m.last].next = order
	}
	m.last = order
	return order
}

// Grouped reports whether points of this type are histograms or summaries.
func Grouped(k pmetric.MetricType) bool {
	return k == pmetric.MetricTypeHistogram || k == pmetric.MetricTypeSummary
}

// finish copies what was built into a layout of its own. Points without a value are left out, and histograms and
// summaries without a count.
func (b *builder) finish() *Layout {
	for i := range b.points {
		p := &b.points[i]
		if p.at >= 0 {
			b.anchored++
		} else if b.count(p) >= 0 {
			b.anchored++
			b.grouped++
		}
		b.created = b.created || p.created >= 0
	}
	l := &Layout{
		Resources: slices.Clone(b.resources),
		Scopes:    slices.Clone(b.scopes),
		Metrics:   make([]PlacedMetric, 0, len(b.metrics)),
		Points:    make([]*catalog.Point, 0, b.anchored),
		At:        make([]int32, 0, b.anchored),
		Groups:    make([]Group, 0, b.grouped),
	}
	if b.created {
		l.Created = make([]int32, 0, b.anchored)
	}
	clear(b.resources)
	var last []float64
	parts := make([]int32, 0, b.parts)
	for i := range b.metrics {
		m := &b.metrics[i]
		first := len(l.Points)
		for j := m.first; j >= 0; j = b.points[j].next {
			p := &b.points[j]
			at := p.at
			if at < 0 {
				if b.count(p) < 0 {
					continue
				}
				at = int32(len(l.Groups))
				g := b.groups[p.group].finish(m.family.Base.Kind, last, parts)
				last, parts = g.Bounds, parts[len(g.Parts):len(g.Parts)]
				l.Groups = append(l.Groups, g)
			}
			l.Points, l.At = append(l.Points, p.point), append(l.At, at)
			l.Attributes += len(p.point.Form.Keys.Names)
			if b.created {
				l.Created = append(l.Created, p.created)
			}
			if p.point.Form.Keys.Marked {
				l.Marked++
			}
		}
		if n := len(l.Points) - first; n > 0 {
			l.Metrics = append(l.Metrics, PlacedMetric{m.family, m.scope, int32(first), int32(n)})
		}
	}
	return l
}

// finish sorts the parts and separates them from their bounds, sharing last if those are the same. The parts are put into
// room. If several have the same bound, as relabeling can cause, the last one on the page counts.
func (g *builtGroup) finish(k pmetric.MetricType, last []float64, room []int32) Group {
	slices.SortStableFunc(g.parts, func(a, b part) int { return cmp.Compare(a.bound, b.bound) })
	out := Group{Count: g.count, Sum: g.sum, rest: -1}
	kept := g.parts[:0]
	for i, p := range g.parts {
		if i+1 == len(g.parts) || p.bound != g.parts[i+1].bound {
			kept = append(kept, p)
		}
	}
	if n := len(kept); k == pmetric.MetricTypeHistogram && n > 0 && math.IsInf(kept[n-1].bound, 1) {
		out.rest = kept[n-1].at
		kept = kept[:n-1]
	}
	if !slices.EqualFunc(kept, last, func(p part, f float64) bool { return p.bound == f }) {
		last = make([]float64, len(kept))
		for i, p := range kept {
			last[i] = p.bound
		}
	}
	for _, p := range kept {
		room = append(room, p.at)
	}
	out.Parts, out.Bounds = room, last
	return out
}

// IsTogether reports whether the samples of each point have the same time.
func (l *Layout) IsTogether(times []int64) bool {
	for i := range l.Groups {
		g := &l.Groups[i]
		at := times[g.Count]
		if g.Sum >= 0 && times[g.Sum] != at || g.rest >= 0 && times[g.rest] != at {
			return false
		}
		for _, part := range g.Parts {
			if times[part] != at {
				return false
			}
		}
	}
	for i, created := range l.Created {
		if created < 0 {
			continue
		}
		if times[created] != times[l.Anchor(int32(i))] {
			return false
		}
	}
	return true
}

func (l *Layout) bytes() int64 {
	n := 24*int64(len(l.Metrics)) + 12*int64(len(l.Points)) + 4*int64(len(l.Created)) + 12*int64(len(l.Runs)) +
		40*int64(len(l.Resources)+len(l.Scopes))
	for i := range l.Groups {
		n += 64 + 4*int64(len(l.Groups[i].Parts))
	}
	return n
}
