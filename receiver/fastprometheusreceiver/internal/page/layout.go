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
	points    []placedPoint  // metric by metric
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

// A placedPoint takes its value from a sample; of a histogram or a summary, at is a group.
type placedPoint struct {
	point       *point
	at, created int32
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
func (p *placedPoint) isGrouped() bool {
	return grouped(p.point.family.base.kind) && !p.point.family.base.custom
}

// A builder makes layouts. Its memory is used again, under the cohort's lock.
type builder struct {
	epoch     uint32
	resources []placedResource
	scopes    []placedScope
	metrics   []builtMetric
	splits    map[split]int32
	stale     int32 // samples from here on are stale markers
	anchored  int
	grouped   int
}

type builtMetric struct {
	family *family
	scope  int32
	points []builtPoint
}

type builtPoint struct {
	point       *point
	time        int64
	at, created int32
	group       group
}

// A split is a point that is there more than once, at different times.
type split struct {
	point *point
	time  int64
}

func (b *builder) reset(epoch uint32, stale int) {
	b.epoch, b.stale = epoch, int32(stale)
	b.resources, b.scopes, b.metrics = b.resources[:0], b.scopes[:0], b.metrics[:0]
	b.anchored, b.grouped = 0, 0
	clear(b.splits)
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
	order := b.find(m, l.point, time)
	if at >= b.stale && order < 0 && l.role == createdRole {
		return // a marker of no value
	}
	if order < 0 {
		order = b.open(m, l.point, time)
	}
	p := &m.points[order]
	if at >= b.stale && (p.at >= 0 && p.at < b.stale || p.group.count >= 0 && p.group.count < b.stale || l.role == createdRole) {
		return // the point lives: what it lost is no reason to declare it stale
	}
	switch l.role {
	case valueRole, nativeRole:
		p.at = at
	case createdRole:
		p.created = at
	case sumRole:
		p.group.sum = at
	case countRole:
		p.group.count = at
	case bucketRole:
		p.group.parts = append(p.group.parts, part{l.bound, at})
	default:
	}
}

func (b *builder) resource(r *resource) int32 {
	if r.epoch != b.epoch {
		r.epoch, r.slot = b.epoch, int32(len(b.resources))
		b.resources = append(b.resources, placedResource{resource: r})
	}
	return r.slot
}

func (b *builder) metric(f *family) {
	r := b.resource(f.resource)
	s := slices.IndexFunc(b.scopes, func(p placedScope) bool { return p.resource == r && p.scope == f.scope })
	if s < 0 {
		s = len(b.scopes)
		b.scopes = append(b.scopes, placedScope{r, f.scope})
	}
	f.epoch, f.slot = b.epoch, int32(len(b.metrics))
	if n := len(b.metrics); n < cap(b.metrics) {
		b.metrics = b.metrics[:n+1]
	} else {
		b.metrics = append(b.metrics, builtMetric{})
	}
	m := &b.metrics[f.slot]
	m.family, m.scope, m.points = f, int32(s), m.points[:0]
}

// find returns which of a metric's points is the one at a time, or -1.
func (b *builder) find(m *builtMetric, p *point, time int64) int32 {
	if p.epoch != b.epoch {
		return -1
	}
	if order := p.order(); m.points[order].time == time {
		return order
	}
	if order, ok := b.splits[split{p, time}]; ok {
		return order
	}
	return -1
}

func (b *builder) open(m *builtMetric, p *point, time int64) int32 {
	order := int32(len(m.points))
	if p.epoch != b.epoch {
		p.epoch = b.epoch
		p.setOrder(order)
	} else {
		if b.splits == nil {
			b.splits = map[split]int32{}
		}
		b.splits[split{p, time}] = order
	}
	var parts []part
	if order < int32(cap(m.points)) {
		parts = m.points[:order+1][order].group.parts[:0]
	}
	m.points = append(m.points, builtPoint{
		point: p, time: time, at: -1, created: -1, group: group{count: -1, sum: -1, rest: -1, parts: parts},
	})
	return order
}

func grouped(k pmetric.MetricType) bool {
	return k == pmetric.MetricTypeHistogram || k == pmetric.MetricTypeSummary
}

// finish copies what was built into a layout of its own. A point without a value, or without the count that a histogram
// or a summary must have, is left out.
func (b *builder) finish() *layout {
	for i := range b.metrics {
		for j := range b.metrics[i].points {
			p := &b.metrics[i].points[j]
			if p.at >= 0 {
				b.anchored++
			} else if p.group.count >= 0 {
				b.anchored++
				b.grouped++
			}
		}
	}
	l := &layout{
		resources: slices.Clone(b.resources),
		scopes:    slices.Clone(b.scopes),
		metrics:   make([]placedMetric, 0, len(b.metrics)),
		points:    make([]placedPoint, 0, b.anchored),
		groups:    make([]group, 0, b.grouped),
	}
	clear(b.resources)
	var last []float64
	for i := range b.metrics {
		m := &b.metrics[i]
		first := len(l.points)
		for j := range m.points {
			p := &m.points[j]
			at := p.at
			if at < 0 {
				if p.group.count < 0 {
					continue
				}
				at = int32(len(l.groups))
				g := p.group.finish(m.family.base.kind, last)
				last = g.bounds
				l.groups = append(l.groups, g)
			}
			l.points = append(l.points, placedPoint{p.point, at, p.created})
			l.marked = l.marked || p.point.form.keys.marked
		}
		if n := len(l.points) - first; n > 0 {
			l.metrics = append(l.metrics, placedMetric{m.family, m.scope, int32(first), int32(n)})
		}
	}
	return l
}

// finish sorts the parts and takes the bounds out of them, sharing last when they are the same.
func (g *group) finish(k pmetric.MetricType, last []float64) group {
	slices.SortStableFunc(g.parts, func(a, b part) int { return cmp.Compare(a.bound, b.bound) })
	parts := slices.Clone(g.parts)
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
