// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package page

import (
	"cmp"
	"math"
	"slices"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"
)

// A variation is what a difference makes of a plan's layout: some points are absent, and there are extra ones.
type variation struct {
	difference

	missing lineSet // lines of the plan that are not on the page
	absent  lineSet // and of those the ones that have ended before: they have no point
	extra   *layout // of extras and of those that end; its samples are numbered from the plan's last on
	ended   int     // how many of its samples end
	carried int     // extras the last page had too
	changes []change
}

// A change is what is to be done to a metric of the plan: points are absent, and extra ones follow.
type change struct{ metric, absent, first, count int32 }

// vary emits a page that differs from a plan by series which come and go within families that stay. Everything else
// that a page may change about the meaning of others is left to settle.
func (s *Scrape) vary(r Report, res Result) (Result, bool) {
	t, p := s.target, s.plan
	c := t.cohort
	if p == nil || t.turned || s.mixed || s.isFresh(s.seen()) || t.plan != p && p.contested || t.failed != nil || p.layout == nil || p.repeats > 0 || s.times != nil || s.natives != nil || t.timed != nil || !t.follows(p) {
		return res, false
	}
	d := t.diff
	if t.plan != p || s.strayed || s.next != len(s.expected) {
		var ok bool
		if d, ok = compare(p, len(c.report), s.seen(), len(d.extras)); !ok {
			return res, false
		}
	}
	s.aligned = d.align(s.aligned[:0], s.values, len(p.lines)-len(c.report))
	c.mu.Lock()
	x := c.vary(s, d, &res)
	if x == nil || over(c.job, res.PostRelabel) {
		c.mu.Unlock()
		return res, false
	}
	if t.plan != p {
		c.adopt(t, p)
		t.said, t.settled = p.said, p.steady
	}
	t.carried += x.carried
	t.succeed()
	if t.forget() {
		t.settled = false
	}
	c.differ(t, d)
	delete(c.reading, s) // not before: until here nothing else has the extras
	c.sweep()
	c.slim()
	c.mu.Unlock()

	s.values, s.aligned = s.aligned, s.values
	s.report(r, &res)
	s.values = d.beyond(s.values, s.aligned)
	for range x.ended {
		s.values = append(s.values, staleMarker)
	}
	v := view{target: t, at: pcommon.Timestamp(s.at * 1e6), values: s.values, variation: x}
	if len(s.exemplars) > 0 {
		d.renumber(s.exemplars, len(p.lines))
		owner := append(slices.Clone(p.owners()), x.extra.owners(len(p.lines), len(d.extras))...)
		for i := len(p.lines); i < len(owner); i++ {
			if owner[i] >= 0 {
				owner[i] += int32(len(p.layout.points))
			}
		}
		s.exemplars = deal(s.exemplars, owner)
		v.exemplars = s.exemplars
	}
	x.extra.behind(p.layout)
	var tr *tree
	if c.job.cfg.Reuse {
		tr = p.take()
	}
	res.plan = p
	s.render(p.layout, tr, &v, &res)
	return res, true
}

// follows tells whether what the target knows makes of a plan's lines what the plan does.
func (t *Target) follows(p *plan) bool {
	if t.plan != nil {
		return t.plan == p && t.settled
	}
	return p.pure && t.said == nil && len(t.lingering) == 0
}

// mark lets the lines of a plan know where they stand in it, and names where they stand first.
func (c *cohort) mark(p *plan) {
	if c.marked == p {
		return
	}
	c.epoch++
	c.marked, c.markEpoch = p, c.epoch
	for i, l := range p.lines {
		l.epoch, l.number = c.epoch, int32(i)
		if (l.kind == seriesLine || l.kind == reportLine) && l.name.epoch != c.epoch {
			l.name.epoch, l.name.first = c.epoch, int32(i)
		}
	}
}

// vary finds out what a difference means, or returns nil when it means more than some points.
func (c *cohort) vary(s *Scrape, d difference, res *Result) *variation {
	t, p := s.target, s.plan
	if p.owners(); p.loose { // from here on, owner is read without its lock: it stays as it is
		return nil
	}
	c.mark(p)
	c.epoch += 2
	was, now := c.epoch-1, c.epoch
	for _, l := range t.diff.extras {
		l.epoch = was
	}
	s.missing, s.absent = s.missing.none(len(p.lines)), s.absent.none(len(p.lines))
	x := &variation{difference: d, missing: s.missing, absent: s.absent}
	d.missing(x.missing)
	p.count(res)
	dropped := res.Samples - res.PostRelabel
	extras := d.extras
	for _, e := range d.edits {
		gone, came := p.lines[e.at:e.at+e.gone], extras[:e.extra]
		extras = extras[e.extra:]
		if !c.inOrder(p, &e, came) {
			return nil
		}
		for i, l := range gone {
			res.Samples--
			if l.kind == droppedLine {
				dropped--
				if l.setting == refusedSetting {
					res.Limited--
				}
			} else if !p.layout.isMissing(p.owner[int(e.at)+i], x.missing) {
				return nil
			}
		}
		for _, l := range came {
			if l.epoch == c.markEpoch || l.epoch == now {
				return nil // it is there elsewhere, too
			}
			res.Samples++
			switch {
			case l.epoch == was:
				x.carried++
			case l.kind == seriesLine:
				res.Added++
			default:
			}
			l.epoch = now
			if l.kind == droppedLine {
				dropped++
				if l.setting == refusedSetting {
					res.Limited++
				}
			} else if !c.fits(p, l) || t.pin == nil && l.point.form.keys.contested {
				return nil
			}
		}
	}
	if len(d.extras) > len(p.lines)/16 && t.carried+x.carried > len(p.lines) {
		return nil // by now a plan of its own would have paid
	}
	res.PostRelabel = res.Samples - dropped
	s.gone = s.gone[:0]
	isEnding := t.alive && !c.job.cfg.NoStaleMarkers
	for _, l := range t.diff.extras {
		if !isEnding || l.kind != seriesLine || l.epoch != was {
			continue
		}
		if !c.fits(p, l) {
			return nil // it did, but others have had lines of the same series since
		}
		s.gone = append(s.gone, l)
	}
	x.ended = len(s.gone)
	c.bury(t, p, x, isEnding, res)
	if t.plan != p {
		res.Added = res.PostRelabel
	}
	x.extra = c.scratch.lay(len(p.lines), d.extras, nil, s.gone, math.MaxInt64)
	placed := 0
	for _, at := range x.extra.owners(len(p.lines), len(d.extras)) {
		if at >= 0 {
			placed++
		}
	}
	for _, l := range d.extras {
		if l.kind == seriesLine {
			placed--
		}
	}
	if placed != 0 || !x.find(p.layout) {
		return nil
	}
	return x
}

// inOrder tells whether names still come in the order they have in the plan: the first sample of a name decides what
// its family is, given what the page said before.
func (c *cohort) inOrder(p *plan, e *edit, came []*line) bool {
	var room [2][8]*name
	had, has := room[0][:0], room[1][:0]
	end := e.at + e.gone
	for i, l := range p.lines[e.at:end] {
		if l.kind.isMetadata() {
			return false
		}
		if l.kind == seriesLine && l.name.first == e.at+int32(i) {
			had = append(had, l.name)
		}
	}
	see := func(l *line) {
		if l.kind != droppedLine && l.name.first >= e.at && !slices.Contains(has, l.name) {
			has = append(has, l.name)
		}
	}
	for _, l := range came {
		if l.kind.isMetadata() || l.kind == seriesLine && l.name.epoch != c.markEpoch || len(has) > 32 {
			return false
		}
		see(l)
	}
	if next := p.lines[end]; !next.kind.isMetadata() && next.kind != droppedLine {
		if next.name.first == end {
			had = append(had, next.name)
		}
		see(next)
	}
	return slices.Equal(had, has)
}

// fits places a line that the plan has not among its families, if it makes a point of its own, or a part of one.
func (c *cohort) fits(p *plan, l *line) bool {
	at := p.owner[l.name.first]
	if at < 0 {
		return false
	}
	b := p.layout.points[at].family.base
	if b.custom || b.kind == pmetric.MetricTypeExponentialHistogram {
		return false
	}
	if l.point == nil || l.point.family.base != b {
		c.place(l, b, classic)
	}
	switch l.role {
	case valueRole, countRole:
		return !l.point.isSeveral()
	case bucketRole, sumRole, createdRole:
		return true
	default:
		return false
	}
}

// bury lays points to rest that ended earlier, and notes which metrics have some.
func (c *cohort) bury(t *Target, p *plan, x *variation, isEnding bool, res *Result) {
	body := int32(len(p.lines) - len(c.report))
	had := t.diff.edits
	for _, e := range had {
		for i := e.at; i < e.at+e.gone; i++ {
			if x.missing.has(i) {
				x.absent.add(i)
			} else if p.lines[i].kind == seriesLine {
				res.Added++
			}
		}
	}
	for _, e := range x.edits {
		for i := e.at; i < min(e.at+e.gone, body); i++ {
			l := p.lines[i]
			if !isEnding {
				x.absent.add(i)
			}
			if l.kind != seriesLine || !x.absent.has(i) {
				continue
			}
			if at := p.owner[i]; p.layout.anchor(at) == i {
				x.remove(p.layout, at)
			}
		}
	}
}

// remove notes that a point is absent.
func (x *variation) remove(l *layout, point int32) {
	if n := len(x.changes); n > 0 {
		if last := &x.changes[n-1]; l.metrics[last.metric].has(point) {
			last.absent++
			return
		}
	}
	x.changes = append(x.changes, change{metric: l.metricOf(point), absent: 1})
}

func (m *placedMetric) has(point int32) bool { return point >= m.first && point < m.first+m.points }

// find finds the metrics of a layout that change. It returns false when a metric has nothing left, or would be new.
func (x *variation) find(l *layout) bool {
	for k := range x.extra.metrics { // so that none is looked for: they come in any order
		x.extra.metrics[k].family.slot = int32(k)
	}
	left := len(x.extra.metrics)
	for i := 0; i < len(l.metrics) && left > 0; i++ {
		f := l.metrics[i].family
		if k := int(f.slot); k < len(x.extra.metrics) && x.extra.metrics[k].family == f {
			m := &x.extra.metrics[k]
			x.changes = append(x.changes, change{metric: int32(i), first: m.first, count: m.points})
			left--
		}
	}
	if left > 0 {
		return false
	}
	slices.SortFunc(x.changes, func(a, b change) int { return cmp.Compare(a.metric, b.metric) })
	merged := x.changes[:0]
	for _, c := range x.changes {
		if n := len(merged); n > 0 && merged[n-1].metric == c.metric {
			merged[n-1].absent += c.absent
			if c.count > 0 {
				merged[n-1].first, merged[n-1].count = c.first, c.count
			}
			continue
		}
		merged = append(merged, c)
	}
	x.changes = merged
	for _, c := range merged {
		if c.absent == l.metrics[c.metric].points && c.count == 0 {
			return false
		}
	}
	return true
}

// without varies the layout of lines by the points of others that end. It returns nil when a point goes on without them, or a
// metric ends.
func (p *pass) without(l *layout, lines, gone []*line) *variation {
	p.cohort.epoch++
	for _, l := range lines {
		if l.point != nil {
			l.point.epoch = p.cohort.epoch
		}
	}
	for _, l := range gone {
		if l.point.epoch == p.cohort.epoch {
			return nil
		}
	}
	x := &variation{extra: p.lay(len(lines), nil, nil, gone, math.MaxInt64)}
	if !x.find(l) {
		return nil
	}
	return x
}

// metricOf returns which metric a point belongs to.
func (l *layout) metricOf(point int32) int32 {
	i, _ := slices.BinarySearchFunc(l.metrics, point+1, func(m placedMetric, p int32) int { return cmp.Compare(m.first+m.points, p) })
	return int32(i)
}

// anchor returns the sample without which a point is none.
func (l *layout) anchor(point int32) int32 {
	p := l.placed(int(point))
	if p.isGrouped() {
		return l.groups[p.at].count
	}
	return p.at
}

// isMissing tells whether no sample of a point is left.
func (l *layout) isMissing(point int32, missing lineSet) bool {
	all := point >= 0
	if all {
		l.samples(int(point), func(i int32) { all = all && missing.has(i) })
	}
	return all
}

// behind makes a layout's groups follow those of another.
func (l *layout) behind(other *layout) {
	for i := range l.points {
		if l.placed(i).isGrouped() {
			l.at[i] += int32(len(other.groups))
		}
	}
}

// differ notes how a target's page differs from its plan.
func (c *cohort) differ(t *Target, d difference) {
	t.diff = d
	if d.isEmpty() {
		delete(c.differing, t)
	} else {
		c.differing[t] = struct{}{}
	}
}

// last returns the lines of the target's last page.
func (t *Target) last() []*line {
	if t.plan == nil {
		return nil
	}
	body := t.plan.body(len(t.cohort.report))
	if t.diff.isEmpty() {
		return body
	}
	return t.diff.apply(nil, body)
}
