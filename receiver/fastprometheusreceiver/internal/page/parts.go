// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package page

import (
	"cmp"
	"slices"

	"go.opentelemetry.io/collector/pdata/pmetric"
)

// partPoints is how many points a part of a large page's metrics has.
const partPoints = 1 << 13

// isLarge tells whether metrics of so many points come in parts.
func (j *Job) isLarge(points int) bool { return points > 2*j.part }

// parts builds the metrics of a large page one part after the other, so that they are never there as a whole: a point
// takes many times the memory of its value. Of the page only the values are held meanwhile.
type parts struct {
	cursor

	pending int    // points that no part had yet
	last    bool   // only the metrics of the report are left
	metric  int    // that comes next
	rest    choice // of its points
}

func newParts(l *layout, v *view) *parts {
	v.hanging = len(v.exemplars) > 0
	return &parts{cursor: cursor{view: v, layout: l}, metric: -1, pending: l.size(v)}
}

// size returns how many points a view of the layout has.
func (l *layout) size(v *view) int {
	n := len(l.points)
	if v.variation != nil {
		for _, ch := range v.changes {
			n += int(ch.count - ch.absent)
		}
	}
	return n
}

// next builds a part. A metric that fits into one is not cut.
func (p *parts) next() pmetric.Metrics {
	md := pmetric.NewMetrics()
	f := p.frame(md, p.target)
	p.left = false
	most := p.target.cohort.job.part
	for room := most; room > 0 && p.advance() && (room == most || p.rest.count <= room); {
		var k choice
		k, p.rest = p.rest.cut(room)
		m := &p.metrics[p.metric]
		p.cursor.metric(m, f.scope(m.scope).AppendEmpty(), k, false)
		room -= k.count
		p.pending -= k.count
	}
	if p.left {
		removeEmpty(md)
	}
	return md
}

// advance turns to the next metric when nothing is left of one. Those of the report come after all others.
func (p *parts) advance() bool {
	report := p.target.cohort.job.report
	for p.rest.count == 0 {
		if p.metric++; p.metric >= len(p.metrics) {
			if p.last {
				return false
			}
			p.last, p.metric = true, 0
		}
		m := &p.metrics[p.metric]
		if slices.Contains(report, m.family.base.name) != p.last {
			continue
		}
		p.rest = m.all(false)
		if p.variation == nil {
			continue
		}
		i, found := slices.BinarySearchFunc(p.changes, int32(p.metric), func(c change, m int32) int { return cmp.Compare(c.metric, m) })
		if found {
			p.rest = p.choose(m, p.changes[i], nil, false)
		}
	}
	return true
}

// cut divides a choice in two, none of which has been there.
func (k choice) cut(most int) (front, rest choice) {
	n := min(k.count, most)
	front, rest = choice{first: k.first, count: n}, choice{first: k.first + int32(n), count: k.count - n}
	if k.list != nil {
		front.list, rest.list = k.list[:n], k.list[n:]
	}
	return front, rest
}

// render makes metrics of the scrape, or the first part of them.
func (s *Scrape) render(l *layout, t *tree, v *view, res *Result) {
	res.layout = l
	if v.target.cohort.job.isLarge(l.size(v)) {
		s.lent = true
		res.parts = newParts(l, v)
		res.Metrics = res.parts.next()
		return
	}
	res.Metrics, res.tree = l.render(t, v)
}

// Pending returns how many points the parts to come have, at most.
func (r Result) Pending() int {
	if r.parts == nil {
		return 0
	}
	return r.parts.pending
}

// Next returns the result with the next part of a large page's metrics, in place of the one before, which must have been
// consumed.
func (r Result) Next() Result {
	if job := r.parts.target.cohort.job; job.cfg.Reuse && !r.Metrics.IsReadOnly() {
		r.parts.recycled.put(r.Metrics, 2*job.part)
	}
	r.Metrics = pmetric.Metrics{} // may go while the next is built
	r.Metrics = r.parts.next()
	return r
}
