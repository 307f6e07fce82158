// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package page

import (
	"math"
	"slices"
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"
)

// A Result is what came of a scrape.
type Result struct {
	// Metrics has the samples, the stale markers of what is gone and the report; of a large page a part of that, until
	// Next. It may be empty, and is the caller's until Release.
	Metrics pmetric.Metrics
	// Err says why up is 0.
	Err error
	// Samples were on the page, PostRelabel of them were left by relabeling, Added were of series not on the page before.
	Samples, PostRelabel, Added int
	// Hits were lines as expected, Misses were not.
	Hits, Misses int
	// Limited samples were dropped for the series limit, Late ones for a timestamp too far in the future.
	Limited, Late int

	plan   *plan
	tree   *tree
	layout *layout
	parts  *parts // nil unless the page is large
}

// A Family is what was said of a metric.
type Family struct{ Name, Type, Help, Unit string }

// Families visits what was said of the target's metrics, those of the report aside. One may come more than once.
func (t *Target) Families(r Result, yield func(Family)) {
	for i := range r.layout.metrics {
		if b := r.layout.metrics[i].family.base; !slices.Contains(t.cohort.job.report, b.name) {
			yield(Family{b.out, string(b.promType), b.help, b.outUnit})
		}
	}
}

// maxAhead is how far in the future a sample's timestamp may be.
const maxAhead = 10 * time.Minute

// End finishes the scrape. When r.Err is set or the page is at fault, what was fed is dropped: stale markers for what
// the target had and up = 0 come out.
func (s *Scrape) End(r Report) Result {
	defer s.release()
	t := s.target
	c := t.cohort
	t.iteration++
	err := r.Err
	if err == nil {
		err = s.finish()
	}
	lines := s.seen()
	if r.Err != nil && s.err == nil {
		lines = nil // the page did not come whole: what came counts for nothing
	}
	res := Result{Err: err, Hits: s.next, Misses: len(s.lines)}
	if s.strayed {
		res.Hits = 0
	}
	if err == nil && s.size > 0 && s.exact() {
		s.plan.count(&res)
		if over(c.job, res.PostRelabel-s.plan.repeats) { // exact pages with timestamps have none
			res.Err = errSampleLimit
		} else {
			t.succeed()
			if t.forget() {
				t.settled = false
			}
			return s.repeat(r, res)
		}
	} else if err == nil && s.size > 0 {
		if varied, ok := s.vary(r, res); ok {
			return varied
		}
	}
	return s.settle(lines, r, res)
}

func over(j *Job, samples int) bool {
	return j.cfg.Scrape.SampleLimit > 0 && samples > int(j.cfg.Scrape.SampleLimit)
}

func (p *plan) count(r *Result) {
	r.Samples, r.PostRelabel, r.Limited = p.samples, p.samples-p.dropped, p.limited
}

// exact tells whether the page is the target's plan, so that nothing needs to be decided anew.
func (s *Scrape) exact() bool {
	t := s.target
	if s.strayed || s.next != len(s.expected) || s.plan == nil || s.plan != t.plan || !t.diff.isEmpty() || !t.settled || s.plan.layout == nil {
		return false
	}
	if s.times == nil {
		return t.timed == nil
	}
	if s.plan.repeats > 0 || !slices.Equal(s.timed(), t.timed) || slices.Max(s.times) > latest(time.Now()) {
		return false
	}
	return s.together(s.plan)
}

// together tells whether the samples of each point have one time. It is not said of points that have more samples than they take.
func (s *Scrape) together(p *plan) bool {
	if p.owners(); p.loose {
		return false
	}
	l := p.layout
	for i := range l.groups {
		g := &l.groups[i]
		at := s.times[g.count]
		if g.sum >= 0 && s.times[g.sum] != at {
			return false
		}
		for _, p := range g.parts {
			if s.times[p.at] != at {
				return false
			}
		}
	}
	for i, created := range l.created {
		if created < 0 {
			continue
		}
		at := l.at[i]
		if grouped(l.points[i].family.base.kind) {
			at = l.groups[at].count
		}
		if s.times[created] != s.times[at] {
			return false
		}
	}
	return true
}

func latest(now time.Time) int64 { return now.Add(maxAhead).UnixMilli() }

// timed returns a bit for each line whose end will not be marked, because its sample had a timestamp.
func (s *Scrape) timed() []uint64 {
	if s.times == nil || s.target.cohort.job.cfg.Scrape.TrackTimestampsStaleness {
		return nil
	}
	bits := make([]uint64, (len(s.times)+63)/64)
	found := false
	for i, t := range s.times {
		if t != noTime {
			bits[i/64] |= 1 << (i % 64)
			found = true
		}
	}
	if !found {
		return nil
	}
	return bits
}

// repeat emits a page that is as planned.
func (s *Scrape) repeat(r Report, res Result) Result {
	t, p := s.target, s.plan
	s.report(r, &res)
	v := view{target: t, at: pcommon.Timestamp(s.at * 1e6), values: s.values, times: s.times, natives: s.natives}
	if len(s.exemplars) > 0 {
		s.exemplars = deal(s.exemplars, p.owners())
		v.exemplars = s.exemplars
	}
	var tr *tree
	if t.cohort.job.cfg.Reuse {
		tr = p.take()
	}
	res.plan = p
	s.render(p.layout, tr, &v, &res)
	return res
}

// settle decides what a page means that is not as planned, or that failed.
func (s *Scrape) settle(lines []*line, r Report, res Result) Result {
	t := s.target
	c := t.cohort
	c.mu.Lock()
	delete(c.reading, s)
	p := &c.scratch
	ahead := latest(time.Now())
	var n counts
	page := lines
	if res.Err == nil && !s.fits(lines) {
		s.left = -1
		res.Err = s.afford()
	}
	if t.turned {
		lines = s.exchange(lines)
		page = lines
	}
	own, version := t.own, t.version
	if res.Err == nil && s.size > 0 {
		lines = s.settleOwn(lines)
		page = lines
	}
	p.begin(t)
	if res.Err == nil {
		p.most = c.held() + s.left
		n = p.page(lines, s.times, ahead, s.natives)
		if p.clashes(lines) {
			c.pin(t)
			lines = s.exchange(lines)
			page = lines
			p.begin(t)
			p.most = c.held() + s.left
			n = p.page(lines, s.times, ahead, s.natives)
		}
		res.Samples, res.PostRelabel, res.Added, res.Late = n.samples, n.samples-n.dropped, n.added, n.late
		res.Limited = n.limited
		if s.left = p.most - c.held(); s.left < 0 {
			res.Err = s.afford()
		} else if over(c.job, res.PostRelabel-n.ignored) {
			res.Err = errSampleLimit
		} else if s.isReordered(p, n) {
			t.succeed()
			c.mu.Unlock()
			s.values, s.aligned = s.aligned, s.values
			return s.repeat(r, res)
		}
	}
	if res.Err != nil {
		s.countFailed(p.was, lines, ahead, &res)
		res.Samples += s.refused
		t.own, t.version, t.restated = own, version, nil
		p.begin(t)
		page, s.times, s.natives, s.exemplars = nil, nil, nil, nil
		s.values = s.values[:0]
	}
	if !s.strayed || res.Err != nil {
		s.lines = append(s.lines[:0], page...)
	}
	page = s.lines
	s.lines = append(s.lines, c.report...)
	all := s.lines
	p.page(c.report, nil, 0, nil)
	for i, l := range c.report {
		l.number = int32(len(page) + i)
	}
	s.gone = p.gone(s.gone[:0])
	s.report(r, &res)
	at := s.values
	for range s.gone {
		at = append(at, staleMarker)
	}
	s.values = at
	if s.times != nil {
		for len(s.times) < len(s.values) {
			s.times = append(s.times, noTime)
		}
	}
	v := view{target: t, at: pcommon.Timestamp(s.at * 1e6), values: s.values, times: s.times, natives: s.natives}
	var (
		l  *layout
		tr *tree
	)
	if res.Err == nil && s.size > 0 {
		if c.job.cfg.Reuse && t.plan != nil {
			if tr = t.plan.take(); tr != nil && tr.layout != t.plan.layout {
				t.plan.pool.give(tr)
				tr = nil
			}
		}
		l, v.variation = s.adopt(p, all, n, &res, ahead)
		res.plan = t.plan
		switch {
		case l != t.plan.layout:
			tr = nil
		case tr != nil && c.move(tr, l):
		case c.job.cfg.Reuse:
			tr = t.plan.take()
		default:
		}
	} else {
		l = p.lay(0, all, s.times, s.gone, ahead)
		t.alive, t.past = false, true
		c.sweep()
		c.slim()
	}
	c.mu.Unlock()
	if len(s.exemplars) > 0 {
		v.exemplars = deal(s.exemplars, l.owners(0, len(s.values)))
	}
	if v.variation != nil {
		v.extra.behind(l)
	}
	s.render(l, tr, &v, &res)
	if res.plan == nil || l != res.plan.layout {
		res.tree = nil
	}
	return res
}

// exchange puts the target's own lines in the place of those that it shares.
func (s *Scrape) exchange(lines []*line) []*line {
	s.lines = s.target.cohort.turn(s.target, lines)
	s.strayed = true
	return s.lines
}

// isReordered tells whether a page that was just passed has the lines of the plan in another order, and brings their
// values into the plan's.
func (s *Scrape) isReordered(p *pass, n counts) bool {
	t, q := s.target, s.target.plan
	if s.size == 0 || q == nil || q.layout == nil || q.repeats > 0 || t.turned || !t.settled || !t.diff.isEmpty() ||
		s.times != nil || t.timed != nil || s.natives != nil || len(s.exemplars) > 0 ||
		n != (counts{samples: q.samples, dropped: q.dropped, limited: q.limited}) || len(t.lingering) > 0 || !same(p.said, t.said) {
		return false
	}
	owner := q.owners()
	if q.loose { // one of several samples of a point counts, and which one the order decides
		return false
	}
	s.aligned = s.aligned[:0]
	for i, l := range q.body(len(p.report)) {
		v := 0.0
		if l.kind == seriesLine {
			v = s.values[l.number]
			if at := owner[i]; at >= 0 && q.layout.points[at] != l.point {
				return false
			}
		}
		s.aligned = append(s.aligned, v)
	}
	return true
}

// adopt makes the page the target's plan and returns the layout of this scrape: the plan's, perhaps varied, where it can.
func (s *Scrape) adopt(p *pass, all []*line, n counts, res *Result, ahead int64) (l *layout, x *variation) {
	t, c := s.target, s.target.cohort
	q := p.plan(all, n)
	if q.layout == nil {
		q.layout = p.lay(0, all, nil, nil, ahead)
		q.pool = c.pool(q.layout)
	}
	l = q.layout
	isPlain := res.Late == 0 && (s.times == nil || q.repeats == 0 && s.together(q))
	if isPlain && len(s.gone) > 0 {
		x = p.without(l, all, s.gone)
		isPlain = x != nil
	}
	if !isPlain {
		l = p.lay(0, all, s.times, s.gone, ahead)
	}
	timed := s.timed()
	isNew := q.said == nil
	knew := len(t.said)+len(t.lingering) > 0
	changed := t.learn(p.said, q.said)
	if isNew {
		q.said = t.said
	}
	c.adopt(t, q)
	t.settled = !changed || p.same(t, all, s.natives)
	if isNew && len(t.lingering) == 0 {
		blank := &Target{cohort: c}
		q.pure = (!knew || p.same(blank, all, s.natives)) && same(p.said, q.said)
		q.steady = t.settled
	}
	t.timed = timed
	t.succeed()
	return l, x
}

// same tells whether lines that a pass has placed would be placed alike with what a target knows.
func (p *pass) same(t *Target, lines []*line, natives map[int32]nativeValue) bool {
	p.begin(t)
	return p.page(lines, nil, 0, natives).placed == 0
}

// countFailed counts what was read of a page that failed: up to where it did, or, when it was beyond a limit, all of it. Series
// are new that neither the last good page had nor one that failed since.
func (s *Scrape) countFailed(was, lines []*line, ahead int64, res *Result) {
	t := s.target
	c := t.cohort
	c.epoch += 2
	for _, l := range was {
		l.epoch = c.epoch - 1
	}
	res.Samples, res.PostRelabel, res.Added = 0, 0, 0
	left := math.MaxInt // until the sample limit
	if most := int(c.job.cfg.Scrape.SampleLimit); most > 0 {
		left = most
	}
	var seen []uint64
	for i, l := range lines {
		if l.kind == droppedLine {
			res.Samples++
		}
		if l.kind != seriesLine {
			continue
		}
		res.Samples++
		res.PostRelabel++
		hasTime := s.times != nil && s.times[i] != noTime
		isRepeat := l.epoch == c.epoch
		if isRepeat && !hasTime {
			continue
		}
		if left--; left < 0 || isRepeat || hasTime && s.times[i] > ahead {
			continue
		}
		if l.epoch != c.epoch-1 {
			hash := t.seriesHash(l)
			if seen = append(seen, hash); !t.failed.hasHash(hash) && (s.tooLarge == 0 || i < s.tooLarge) {
				res.Added++
			}
		}
		l.epoch = c.epoch
	}
	t.failed = t.failed.with(seen, len(was))
}

// failedSeries are texts, hashed, of series that only failed pages had, since the last good one.
type failedSeries map[uint64]struct{}

func (f failedSeries) hasHash(hash uint64) bool {
	_, ok := f[hash]
	return ok
}

func (f failedSeries) has(t *Target, l *line) bool { return len(f) > 0 && f.hasHash(t.seriesHash(l)) }

// with adds the series of another failed page. When there are many more than the last good page had, only those stay.
func (f failedSeries) with(hashes []uint64, good int) failedSeries {
	if len(hashes) == 0 {
		return f
	}
	if f == nil || len(f)+len(hashes) > 2*good+1000 {
		f = make(failedSeries, len(hashes))
	}
	for _, h := range hashes {
		f[h] = struct{}{}
	}
	return f
}

// gone appends the lines whose series the target had and the page of this pass has not.
func (p *pass) gone(dst []*line) []*line {
	t := p.target
	if !t.alive || t.plan == nil || p.job.cfg.NoStaleMarkers {
		return dst
	}
	var points []int32
	for i, l := range p.was {
		if l.kind != seriesLine || l.epoch == p.epoch || t.timed != nil && t.timed[i/64]&(1<<(i%64)) != 0 {
			continue
		}
		l.epoch = p.epoch // once
		if points == nil {
			points = t.points()
		}
		if points[i] < 0 {
			continue // nothing came of it
		}
		if p.end(l); l.role != noRole && l.role != targetInfoRole {
			dst = append(dst, l)
		}
	}
	return dst
}

// end places a line whose series ends, as the page now has it.
func (p *pass) end(l *line) {
	as := l.native()
	b := p.base(l.name, as)
	if l.point == nil || l.point.family.base != b {
		p.place(l, b, as)
	}
	if as == classic && l.role == noRole && b.kind == pmetric.MetricTypeHistogram && l.name.final == b.name {
		// What was another metric is now a histogram of that name, which has no such part: it ends as a native one.
		p.place(l, p.base(l.name, exponential), exponential)
	}
}

// points returns for each line of the target's last page the point that it was part of, or -1 for none. Points that the plan
// has not are 0.
func (t *Target) points() []int32 {
	owner := t.plan.owners()
	if t.diff.isEmpty() {
		return owner
	}
	var out []int32
	i := int32(0)
	for _, e := range t.diff.edits {
		out = append(append(out, owner[i:e.at]...), make([]int32, e.extra)...)
		i = e.at + e.gone
	}
	return append(out, owner[i:]...)
}
