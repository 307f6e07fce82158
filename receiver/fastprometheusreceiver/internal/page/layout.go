// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package page

import (
	"cmp"
	"math"
	"slices"

	"go.opentelemetry.io/collector/pdata/pmetric"
)

// A layout is the tree that the samples of a page make, without their values. Samples are named by their number in the
// page, none is -1.
type layout struct {
	resources []placedResource
	scopes    []placedScope
	metrics   []placedMetric // in the order of their first samples
	points    []*point       // metric by metric
	at        []int32        // the sample that each takes its value from; of a histogram or a summary, a group
	created   []int32        // and the one that says since when it is; nil if there is none for any
	groups    []group        // the parts of histograms and summaries
	marked    bool           // some attribute is the target's to fill in
	runs      []run          // in which order a large page's points are handed on
	about     []int32        // and what each is about
}

type placedResource struct {
	resource *resource
	info     []*point // target_info
}

type placedScope struct {
	resource int32
	scope    *scope
}

type placedMetric struct {
	family *family
	scope  int32
	first  int32 // of its points
	points int32
}

// A placedPoint is what a layout has of a point.
type placedPoint struct {
	point       *point
	at, created int32
}

func (l *layout) placed(i int) placedPoint {
	p := placedPoint{l.points[i], l.at[i], -1}
	if l.created != nil {
		p.created = l.created[i]
	}
	return p
}

type group struct {
	count, sum int32
	rest       int32  // the bucket without a bound: its value is the count's, its exemplars are its own
	parts      []part // by bound
	bounds     []float64
}

type part struct {
	bound float64
	at    int32
}

// isGrouped tells whether the point has a group.
func (p placedPoint) isGrouped() bool {
	return grouped(p.point.family.base.kind) && !p.point.family.base.custom
}

// A builder makes layouts. Its memory is used again, under the cohort's lock.
type builder struct {
	epoch     uint32
	resources []placedResource
	scopes    []placedScope
	nearest   int32                 // of the scopes: nearly always that of the next metric, too
	places    map[placedScope]int32 // of scopes
	metrics   []builtMetric
	points    []builtPoint
	groups    []group
	splits    map[split]int32
	stale     int32 // samples from here on are stale markers
	bounds    *bounds
	anchored  int
	grouped   int
	created   bool // a point has it
}

type builtMetric struct {
	family      *family
	scope       int32
	first, last int32 // of its points
}

// A builtPoint may be the only one of its metric, so metrics have no lists of theirs.
type builtPoint struct {
	point       *point
	time        int64
	at, created int32
	group       int32 // -1: none
	next        int32 // point of the metric, or -1
}

// A split is a point that is there more than once, at different times.
type split struct {
	point *point
	time  int64
}

func (b *builder) reset(epoch uint32, stale int, bounds *bounds) {
	b.epoch, b.stale, b.bounds = epoch, int32(stale), bounds
	b.resources, b.scopes, b.metrics = b.resources[:0], b.scopes[:0], b.metrics[:0]
	b.points, b.groups, b.nearest = b.points[:0], b.groups[:0], 0
	b.anchored, b.grouped, b.created = 0, 0, false
	b.splits, b.places = cleared(b.splits), cleared(b.places)
}

// add places sample number i.
func (b *builder) add(l *line, i int, time int64) {
	switch l.role {
	case noRole:
		return
	case targetInfoRole:
		r := &b.resources[b.resource(l.point.family.resource)]
		r.info = append(r.info, l.point)
		return
	}
	at := int32(i)
	f := l.point.family
	if f.epoch != b.epoch {
		b.metric(f)
	}
	m := &b.metrics[f.slot]
	order := b.find(l.point, time)
	if at >= b.stale && order < 0 && l.role == createdRole {
		return // a marker of no value
	}
	if order < 0 {
		order = b.open(m, l.point, time)
	}
	p := &b.points[order]
	count := b.count(p)
	if at >= b.stale && (p.at >= 0 && p.at < b.stale || count >= 0 && count < b.stale || l.role == createdRole) {
		isLastSum := l.role == sumRole && f.base.kind == pmetric.MetricTypeSummary && b.group(p).sum < 0
		if !isLastSum {
			return // the point lives: what it lost is no reason to declare it stale
		}
		// But a summary cannot say that it has no sum, and 0 would be one: so it ends, and is another from the next page on.
	}
	switch l.role {
	case valueRole, nativeRole:
		p.at = at
	case createdRole:
		p.created = at
	case sumRole:
		b.group(p).sum = at
	case countRole:
		b.group(p).count = at
	case bucketRole:
		g := b.group(p)
		g.parts = append(g.parts, part{b.bounds.of(l), at})
	default:
	}
}

// count returns the sample that is the count of a histogram or a summary, or -1.
func (b *builder) count(p *builtPoint) int32 {
	if p.group < 0 {
		return -1
	}
	return b.groups[p.group].count
}

// group returns the group of a point, for a moment.
func (b *builder) group(p *builtPoint) *group {
	if p.group < 0 {
		n := len(b.groups)
		var parts []part
		if n < cap(b.groups) {
			parts = b.groups[:n+1][n].parts[:0]
		}
		p.group = int32(n)
		b.groups = append(b.groups, group{count: -1, sum: -1, rest: -1, parts: parts})
	}
	return &b.groups[p.group]
}

func (b *builder) resource(r *resource) int32 {
	if r.epoch != b.epoch {
		r.epoch, r.slot = b.epoch, int32(len(b.resources))
		b.resources = append(b.resources, placedResource{resource: r})
	}
	return r.slot
}

func (b *builder) metric(f *family) {
	f.epoch, f.slot = b.epoch, int32(len(b.metrics))
	b.metrics = append(b.metrics, builtMetric{f, b.scope(placedScope{b.resource(f.resource), f.scope}), -1, -1})
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

// find returns which point is the one at a time, or -1.
func (b *builder) find(p *point, time int64) int32 {
	if p.epoch != b.epoch {
		return -1
	}
	if order := p.order(); b.points[order].time == time {
		return order
	}
	if order, ok := b.splits[split{p, time}]; ok {
		return order
	}
	return -1
}

func (b *builder) open(m *builtMetric, p *point, time int64) int32 {
	order := int32(len(b.points))
	if p.epoch != b.epoch {
		p.epoch = b.epoch
		p.setOrder(order)
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

func grouped(k pmetric.MetricType) bool {
	return k == pmetric.MetricTypeHistogram || k == pmetric.MetricTypeSummary
}

// finish copies what was built into a layout of its own. A point without a value, or without the count that a histogram
// or a summary must have, is left out.
func (b *builder) finish() *layout {
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
	l := &layout{
		resources: slices.Clone(b.resources),
		scopes:    slices.Clone(b.scopes),
		metrics:   make([]placedMetric, 0, len(b.metrics)),
		points:    make([]*point, 0, b.anchored),
		at:        make([]int32, 0, b.anchored),
		groups:    make([]group, 0, b.grouped),
	}
	if b.created {
		l.created = make([]int32, 0, b.anchored)
	}
	clear(b.resources)
	var last []float64
	for i := range b.metrics {
		m := &b.metrics[i]
		first := len(l.points)
		for j := m.first; j >= 0; j = b.points[j].next {
			p := &b.points[j]
			at := p.at
			if at < 0 {
				if b.count(p) < 0 {
					continue
				}
				at = int32(len(l.groups))
				g := b.groups[p.group].finish(m.family.base.kind, last)
				last = g.bounds
				l.groups = append(l.groups, g)
			}
			l.points, l.at = append(l.points, p.point), append(l.at, at)
			if b.created {
				l.created = append(l.created, p.created)
			}
			l.marked = l.marked || p.point.form.keys.marked
		}
		if n := len(l.points) - first; n > 0 {
			l.metrics = append(l.metrics, placedMetric{m.family, m.scope, int32(first), int32(n)})
		}
	}
	return l
}

// finish sorts the parts and takes the bounds out of them, sharing last when they are the same. Of parts with one bound, as
// relabeling may make them, the last on the page counts.
func (g *group) finish(k pmetric.MetricType, last []float64) group {
	slices.SortStableFunc(g.parts, func(a, b part) int { return cmp.Compare(a.bound, b.bound) })
	parts := make([]part, 0, len(g.parts))
	for i, p := range g.parts {
		if i+1 == len(g.parts) || p.bound != g.parts[i+1].bound {
			parts = append(parts, p)
		}
	}
	if n := len(parts); k == pmetric.MetricTypeHistogram && n > 0 && math.IsInf(parts[n-1].bound, 1) {
		g.rest = parts[n-1].at
		parts = parts[:n-1]
	}
	if !slices.EqualFunc(parts, last, func(p part, f float64) bool { return p.bound == f }) {
		last = make([]float64, len(parts))
		for i, p := range parts {
			last[i] = p.bound
		}
	}
	return group{count: g.count, sum: g.sum, rest: g.rest, parts: parts, bounds: last}
}
