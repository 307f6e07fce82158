// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package page

import (
	"slices"

	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/godwit-otel/godwit/internal/handback"
	"github.com/godwit-otel/godwit/internal/slab"
)

const (
	// partPoints is how many points a part of a large page's metrics has.
	partPoints = 1 << 11
	// roundPoints is how many the parts have that are about the same things: several, for what an attribute needs to have a
	// value is handed from point to point, and few, for they are all there.
	roundPoints = 4 * partPoints
)

// isLarge tells whether metrics of so many points come in parts.
func (j *Job) isLarge(points int) bool { return points > 2*j.round }

// parts builds the metrics of a large page one part after the other, so that they are never there as a whole: a point
// takes many times the memory of its value. Of the page only the values are held meanwhile.
type parts struct {
	cursor

	pending int   // points that no part had yet
	runs    []run // to come
	run     run
	rest    choice                 // of the run
	done    []int32                // points of each metric, of the runs until now
	changed map[int32]choice       // what is left of metrics that are not as the layout says
	given   []given                // metrics of the last part
	held    []pmetric.ScopeMetrics // scopes of the last part
}

type given struct {
	pmetric.Metric

	number int32
	scope  int32
	place  int // in the scope
	points int
	about  []int32 // what its points are about; nil if nobody knows
}

func newParts(l *layout, v *view) *parts {
	v.hanging = len(v.exemplars) > 0
	p := &parts{cursor: cursor{view: v, layout: l, slabs: new(slab.Slabs)}, pending: l.size(v), runs: l.runs, done: make([]int32, len(l.metrics))}
	if p.runs == nil {
		p.runs = v.target.cohort.inTurn(l)
	}
	if v.variation != nil {
		p.changed = map[int32]choice{}
		for _, ch := range v.changes {
			p.changed[ch.metric] = p.choose(&l.metrics[ch.metric], ch, nil, false)
		}
	}
	return p
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

// next builds a part. A run that fits into one is not cut.
func (p *parts) next() pmetric.Metrics {
	md := pmetric.NewMetrics()
	f := p.frame(md, p.target)
	p.broken = broken{}
	p.given, p.held = p.given[:0], nil
	most := p.target.cohort.job.part
	for room := most; room > 0 && p.advance() && (p.rest.count <= room || p.rest.count > most); {
		var k choice
		k, p.rest = p.rest.cut(room)
		m := &p.metrics[p.run.metric]
		scope := f.scope(m.scope)
		out := scope.AppendEmpty()
		p.recycled.metric = p.run.metric
		p.metric(m, out, k, false)
		p.given = append(p.given, given{out, p.run.metric, m.scope, scope.Len() - 1, k.count, p.abouts(k)})
		room -= k.count
		p.pending -= k.count
		if p.run.ends && p.rest.count == 0 {
			break
		}
	}
	p.held = f.scopes
	if p.broken.count > 0 {
		removeEmpty(md)
		p.given = p.given[:0] // nothing is where it was
	}
	isLast := !p.advance()
	if isLast {
		p.pending = 0 // whatever the count says: there is no next part
	} else {
		p.pending = max(p.pending, 1)
	}
	p.broken.report(p.target, isLast)
	return md
}

// advance turns to the next run when nothing is left of one.
func (p *parts) advance() bool {
	for p.rest.count == 0 {
		if len(p.runs) == 0 {
			return false
		}
		p.run, p.runs = p.runs[0], p.runs[1:]
		m, done := &p.metrics[p.run.metric], &p.done[p.run.metric]
		p.rest = choice{first: m.first + *done, count: int(p.run.points)}
		*done += p.run.points
		if k, ok := p.changed[p.run.metric]; ok {
			n := k.count
			if *done < m.points {
				n, _ = slices.BinarySearch(k.list, m.first+*done)
			}
			p.rest, p.changed[p.run.metric] = k.cut(n)
		}
	}
	return true
}

// abouts lists what points are about, for those who may have their attributes next.
func (p *parts) abouts(k choice) []int32 {
	if p.about == nil || !p.target.cohort.job.cfg.Reuse {
		return nil
	}
	list := make([]int32, k.count)
	for i := range list {
		list[i] = p.aboutOf(k.at(i))
	}
	return list
}

// aboutOf returns what a point is about.
func (c *cursor) aboutOf(point int32) int32 {
	if int(point) < len(c.about) {
		return c.about[point]
	}
	return aboutNothing
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
		came := r.parts.intact(r.Metrics)
		if handback.Poisons() {
			handback.Overwrite(r.Metrics)
		}
		r.parts.recycled.put(came, job.round-job.part/2, job.round+job.part)
	}
	r.Metrics = pmetric.Metrics{} // may go while the next is built
	r.Metrics = r.parts.next()
	return r
}
