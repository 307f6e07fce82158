// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package page

import (
	"cmp"
	"math"
	"slices"
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"

	"github.com/godwit-otel/godwit/receiver/fastprometheusreceiver/internal/page/catalog"
	"github.com/godwit-otel/godwit/receiver/fastprometheusreceiver/internal/page/plan"
	"github.com/godwit-otel/godwit/receiver/fastprometheusreceiver/internal/page/tree"
)

// maxAhead is how far in the future a sample's timestamp may be.
const maxAhead = 10 * time.Minute

// End finishes the scrape. When r.Err is set or the page is at fault, what was fed is dropped: stale markers for what
// the target had and up = 0 come out.
func (s *Scrape) End(r Report) Result {
	defer s.release()
	t := s.target
	c := t.cohort
	t.Iteration++
	err := r.Err
	if err == nil {
		err = s.finish()
	}
	s.mix()
	if len(s.slots) > 0 {
		if err == nil {
			if res, ok := s.inherit(r, Result{Hits: s.next}); ok {
				return res
			}
		}
		err = cmp.Or(err, s.putBack())
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
		res = res.with(s.plan.Tally)
		if over(c.job, res.PostRelabel-s.plan.Repeats) { // exact pages with timestamps have none
			res.Err = catalog.ErrSampleLimit
		} else {
			t.Succeed()
			if t.Forget() {
				t.Settled = false
			}
			return s.repeat(r, res)
		}
	} else if err == nil && s.size > 0 && !s.renames() {
		if varied, ok := s.vary(r, res); ok {
			return varied
		}
	}
	return s.settle(lines, r, res)
}

func over(j *Job, samples int) bool {
	return j.cfg.Scrape.SampleLimit > 0 && samples > int(j.cfg.Scrape.SampleLimit)
}

// exact tells whether the page is the target's plan, so that nothing needs to be decided anew.
func (s *Scrape) exact() bool {
	t := s.target
	if s.strayed || s.next != len(s.expected) || s.plan == nil || s.plan != t.Plan || !t.Diff.IsEmpty() || !t.Settled || s.plan.Layout == nil {
		return false
	}
	if s.times == nil {
		return t.Timed == nil
	}
	if s.plan.Repeats > 0 || !slices.Equal(s.timed(), t.Timed) || slices.Max(s.times) > latest(time.Now()) {
		return false
	}
	return s.together(s.plan)
}

// together tells whether the samples of each point have one time. It is not said of points that have more samples than they take.
func (s *Scrape) together(p *plan.Plan) bool {
	if p.Owners(); p.HasUnplaced {
		return false
	}
	l := p.Layout
	for i := range l.Groups {
		g := &l.Groups[i]
		at := s.times[g.Count]
		if g.Sum >= 0 && s.times[g.Sum] != at {
			return false
		}
		for _, p := range g.Parts {
			if s.times[p.At] != at {
				return false
			}
		}
	}
	for i, created := range l.Created {
		if created < 0 {
			continue
		}
		at := l.At[i]
		if plan.Grouped(l.Points[i].Family.Base.Kind) {
			at = l.Groups[at].Count
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
		if t != plan.NoTime {
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
	v := tree.View{Owner: &t.owner, At: pcommon.Timestamp(s.at * 1e6), Values: s.values, Times: s.times, Natives: s.natives}
	if len(s.exemplars) > 0 {
		s.exemplars = plan.Deal(s.exemplars, p.Owners())
		v.Exemplars = s.exemplars
	}
	s.render(p.Layout, s.free(p), &v, &res)
	return res
}

// settle decides what a page means that is not as planned, or that failed.
func (s *Scrape) settle(lines []*catalog.Line, r Report, res Result) Result {
	t := s.target
	c := t.cohort
	c.mu.Lock()
	delete(c.reading, s)
	p := &c.Scratch
	ahead := latest(time.Now())
	var n plan.Counts
	page := lines
	if res.Err == nil && !s.fits(lines) {
		s.left = -1
		res.Err = s.afford()
	}
	if t.Turned {
		lines = s.exchange(lines)
		page = lines
	}
	own, version := t.Own, t.Version
	if res.Err == nil && s.size > 0 {
		lines = s.settleOwn(lines)
		page = lines
	}
	p.Begin(&t.Identity, &t.History)
	if res.Err == nil {
		p.Most = c.Held() + s.left
		n = p.Page(lines, s.times, ahead, s.natives)
		if t.Pin == nil && p.Contested && c.Clashes(&t.Identity, lines, p.LastPage) {
			c.Pin(&t.Identity)
			lines = s.exchange(lines)
			page = lines
			p.Begin(&t.Identity, &t.History)
			p.Most = c.Held() + s.left
			n = p.Page(lines, s.times, ahead, s.natives)
		}
		res.Samples, res.PostRelabel, res.Added, res.Late = n.Samples, n.Samples-n.Dropped, n.Added, n.Late
		res.Limited = n.Limited
		if s.left = p.Most - c.Held(); s.left < 0 {
			res.Err = s.afford()
		} else if over(c.job, res.PostRelabel-n.Ignored) {
			res.Err = catalog.ErrSampleLimit
		} else if s.isReordered(p, n) {
			t.Succeed()
			c.mu.Unlock()
			s.values, s.aligned = s.aligned, s.values
			return s.repeat(r, res)
		}
	}
	if res.Err != nil {
		s.countFailed(p.LastPage, lines, ahead, &res)
		res.Samples += s.refused
		t.Own, t.Version, t.Restated = own, version, nil
		c.CountOwn(&t.Identity)
		p.Begin(&t.Identity, &t.History)
		page, s.times, s.natives, s.exemplars = nil, nil, nil, nil
		s.values = s.values[:0]
	}
	if !s.strayed || res.Err != nil {
		s.lines = append(s.lines[:0], page...)
	}
	page = s.lines
	s.lines = append(s.lines, c.ReportLines...)
	all := s.lines
	p.Page(c.ReportLines, nil, 0, nil)
	for i, l := range c.ReportLines {
		l.Number = int32(len(page) + i)
	}
	s.Gone = p.Gone(s.Gone[:0])
	s.report(r, &res)
	at := s.values
	for range s.Gone {
		at = append(at, plan.StaleMarker)
	}
	s.values = at
	if s.times != nil {
		for len(s.times) < len(s.values) {
			s.times = append(s.times, plan.NoTime)
		}
	}
	v := tree.View{Owner: &t.owner, At: pcommon.Timestamp(s.at * 1e6), Values: s.values, Times: s.times, Natives: s.natives}
	var (
		l  *plan.Layout
		tr *tree.Tree
	)
	isPlanned := false // the metrics are laid out as the plan says, so another page may fill them
	if res.Err == nil && s.size > 0 {
		if t.Plan != nil {
			if tr = s.free(t.Plan); tr != nil && tr.Layout != t.Plan.Layout {
				c.pools.Give(tr)
				tr = nil
			}
		}
		l, v.Variation = s.adopt(p, all, n, &res, ahead)
		isPlanned = l == t.Plan.Layout
		switch {
		case !isPlanned:
			tr = nil
		case tr != nil && tr.Move(&c.Catalog, l):
		default:
			tr = s.free(t.Plan)
		}
	} else {
		l = p.Lay(0, all, s.times, s.Gone, ahead)
		t.Alive, t.Past = false, true
		c.sweep()
	}
	c.mu.Unlock()
	if len(s.exemplars) > 0 {
		v.Exemplars = plan.Deal(s.exemplars, l.Owners(0, len(s.values)))
	}
	if v.Variation != nil {
		v.Extra.Behind(l)
	}
	s.render(l, tr, &v, &res)
	if !isPlanned {
		res.tree = nil
	}
	return res
}

// exchange puts the target's own lines in the place of those that it shares.
func (s *Scrape) exchange(lines []*catalog.Line) []*catalog.Line {
	s.lines = s.target.cohort.Turn(&s.target.Identity, lines)
	s.strayed = true
	return s.lines
}

// isReordered tells whether a page that was just passed has the lines of the plan in another order, and brings their
// values into the plan's.
func (s *Scrape) isReordered(p *plan.Pass, n plan.Counts) bool {
	t, q := s.target, s.target.Plan
	if s.size == 0 || q == nil || q.Layout == nil || q.Repeats > 0 || t.Turned || !t.Settled || !t.Diff.IsEmpty() ||
		s.times != nil || t.Timed != nil || s.natives != nil || len(s.exemplars) > 0 ||
		n != (plan.Counts{Tally: q.Tally}) || len(t.Lingering) > 0 || !plan.Same(p.Said, t.Said) {
		return false
	}
	owner := q.Owners()
	if q.HasUnplaced { // one of several samples of a point counts, and which one the order decides
		return false
	}
	s.aligned = s.aligned[:0]
	for i, l := range q.Body {
		v := 0.0
		if l.Kind == catalog.SeriesLine {
			v = s.values[l.Number]
			if at := owner[i]; at >= 0 && q.Layout.Points[at] != l.Point {
				return false
			}
		}
		s.aligned = append(s.aligned, v)
	}
	return true
}

// adopt makes the page the target's plan and returns the layout of this scrape: the plan's, perhaps varied, where it can.
func (s *Scrape) adopt(p *plan.Pass, all []*catalog.Line, n plan.Counts, res *Result, ahead int64) (l *plan.Layout, x *plan.Variation) {
	t, c := s.target, s.target.cohort
	q := p.Plan(all, n)
	if q.Layout == nil {
		q.Layout = p.Lay(0, all, nil, nil, ahead)
		c.pools.Join(q.Layout)
	}
	l = q.Layout
	isPlain := res.Late == 0 && (s.times == nil || q.Repeats == 0 && s.together(q))
	if isPlain && len(s.Gone) > 0 {
		x = p.Without(l, all, s.Gone)
		isPlain = x != nil
	}
	if !isPlain {
		l = p.Lay(0, all, s.times, s.Gone, ahead)
	}
	timed := s.timed()
	isNew := q.Said == nil
	knew := len(t.Said)+len(t.Lingering) > 0
	shared := q.Said
	if isNew {
		shared = c.Alike(p.Said)
	}
	changed := t.Learn(p.Said, shared)
	if isNew {
		q.Said, q.SaidBefore = t.Said, shared != nil
		if shared == nil {
			c.Recollect(t.Said)
		}
	}
	c.adopt(t, q)
	t.Settled = !changed || p.Same(&t.Identity, &t.History, all, s.natives)
	if isNew && len(t.Lingering) == 0 {
		q.Pure = (!knew || p.Same(&catalog.Identity{Catalog: &c.Catalog}, &plan.History{}, all, s.natives)) && plan.Same(p.Said, q.Said)
		q.Steady = t.Settled
	}
	t.Timed = timed
	t.Succeed()
	return l, x
}

// countFailed counts what was read of a page that failed: up to where it did, or, when it was beyond a limit, all of it. Series
// are new that neither the last good page had nor one that failed since.
func (s *Scrape) countFailed(was, lines []*catalog.Line, ahead int64, res *Result) {
	t := s.target
	c := t.cohort
	before, now := c.MarkLines(), c.MarkLines()
	for _, l := range was {
		l.Epoch = before
	}
	res.Samples, res.PostRelabel, res.Added = 0, 0, 0
	left := math.MaxInt // until the sample limit
	if most := int(c.job.cfg.Scrape.SampleLimit); most > 0 {
		left = most
	}
	var seen []uint64
	for i, l := range lines {
		if l.Kind == catalog.DroppedLine {
			res.Samples++
		}
		if l.Kind != catalog.SeriesLine {
			continue
		}
		res.Samples++
		res.PostRelabel++
		hasTime := s.times != nil && s.times[i] != plan.NoTime
		isRepeat := l.Epoch == now
		if isRepeat && !hasTime {
			continue
		}
		if left--; left < 0 || isRepeat || hasTime && s.times[i] > ahead {
			continue
		}
		if l.Epoch != before {
			hash := t.SeriesHash(l)
			if seen = append(seen, hash); !t.Failed.HasHash(hash) && (s.tooLarge == 0 || i < s.tooLarge) {
				res.Added++
			}
		}
		l.Epoch = now
	}
	t.Failed = t.Failed.With(seen, len(was))
}
