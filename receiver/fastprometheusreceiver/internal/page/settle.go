// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package page

import (
	"math"
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"

	"github.com/godwit-otel/godwit/receiver/fastprometheusreceiver/internal/page/catalog"
	"github.com/godwit-otel/godwit/receiver/fastprometheusreceiver/internal/page/plan"
	"github.com/godwit-otel/godwit/receiver/fastprometheusreceiver/internal/page/tree"
)

// settle decides the meaning of a page that is not as planned, or that failed.
func (e *ending) settle(lines []*catalog.Line) {
	t := e.target
	c := t.cohort
	c.mu.Lock()
	if e.isGood() {
		c.looked.Store(e.at)
		c.BringTables() // with the lines of this page, which nothing else holds until it has a plan
	}
	delete(c.reading, e.Scrape)
	p := &c.Scratch
	ahead := latest(time.Now())
	own, version := t.Own, t.Version
	lines, n := e.pass(p, lines, ahead)
	if e.res.Err == nil && e.isReordered(p, n) {
		t.Succeed()
		c.mu.Unlock()
		e.values, e.aligned = e.aligned, e.values
		e.emitRepeated()
		return
	}
	if e.res.Err != nil {
		e.countFailed(p.LastPage, lines, ahead)
		e.res.Samples += e.refused
		t.Own, t.Version, t.Restated = own, version, nil
		c.Own.Count(&t.Identity)
		p.Begin(&t.Identity, &t.History)
		lines, e.times, e.natives, e.exemplars = nil, nil, nil, nil
		e.values = e.values[:0]
	}
	if !e.strayed || e.res.Err != nil {
		e.lines = append(e.lines[:0], lines...)
	}
	e.addReportAndGone(p)
	v := tree.View{Owner: &t.owner, At: pcommon.Timestamp(e.at * 1e6), Values: e.values, Times: e.times, Natives: e.natives}
	l, tr := e.findLayout(p, n, ahead, &v)
	isPlanned := e.isGood() && l == t.Plan.Layout // so another target's page may fill the metrics
	c.mu.Unlock()
	if len(e.exemplars) > 0 {
		v.Exemplars = plan.AssignExemplars(e.exemplars, l.Owners(0, len(e.values)))
	}
	if v.Variation != nil {
		v.Extra.RenumberAfter(l)
	}
	e.render(l, tr, &v)
	if !isPlanned {
		e.res.tree = nil
	}
}

// isGood reports whether there is a page without an error.
func (e *ending) isGood() bool { return e.res.Err == nil && e.size > 0 }

// pass goes through the lines of a page, counts them and checks the limits. It may rewrite lines to use the target's
// own.
func (e *ending) pass(p *plan.Pass, lines []*catalog.Line, ahead int64) ([]*catalog.Line, plan.Counts) {
	t, res := e.target, &e.res
	c := t.cohort
	if res.Err == nil && !e.fits(lines) {
		e.left = -1
		res.Err = e.afford()
	}
	if t.Turned {
		lines = e.useOwnLines(lines)
	}
	if e.isGood() {
		lines = e.settleOwn(lines)
	}
	if res.Err != nil {
		p.Begin(&t.Identity, &t.History)
		return lines, plan.Counts{}
	}
	n := e.count(p, lines, ahead)
	if t.Pin == nil && p.Contested && c.Clashes(&t.Identity, lines, p.LastPage) {
		c.Pin(&t.Identity)
		lines = e.useOwnLines(lines)
		n = e.count(p, lines, ahead)
	}
	res.Samples, res.PostRelabel, res.Added, res.Late, res.Limited = n.Samples, n.Samples-n.Dropped, n.Added, n.Late, n.Limited
	if e.left = p.Most - c.Held(); e.left < 0 {
		res.Err = e.afford()
	} else if over(c.job, res.PostRelabel-n.Ignored) {
		res.Err = catalog.ErrSampleLimit
	}
	return lines, n
}

func (e *ending) count(p *plan.Pass, lines []*catalog.Line, ahead int64) plan.Counts {
	p.Begin(&e.target.Identity, &e.target.History)
	p.Most = e.target.cohort.Held() + e.left
	return p.Page(lines, e.times, ahead, e.natives)
}

// addReportAndGone adds the report to the lines of a page, and then the series that have ended.
func (e *ending) addReportAndGone(p *plan.Pass) {
	report := e.target.cohort.ReportLines
	p.Page(report, nil, 0, nil)
	for i, l := range report {
		l.Number = int32(len(e.lines) + i)
	}
	e.lines = append(e.lines, report...)
	e.Gone = p.Gone(e.Gone[:0])
	e.report()
	for range e.Gone {
		e.values = append(e.values, plan.StaleMarker)
	}
	e.fillNoTimes()
}

// findLayout finds the layout of the metrics and a tree for it, if one is free. The view may get a variation of the layout.
func (e *ending) findLayout(p *plan.Pass, n plan.Counts, ahead int64, v *tree.View) (*plan.Layout, *tree.Tree) {
	t := e.target
	c := t.cohort
	if !e.isGood() {
		l := p.Lay(0, e.lines, e.times, e.Gone, ahead)
		t.Alive, t.Past = false, true
		c.sweep()
		return l, nil
	}
	var (
		l  *plan.Layout
		tr *tree.Tree
	)
	if t.Plan != nil {
		if tr = e.freeTree(t.Plan); tr != nil && tr.Layout != t.Plan.Layout {
			c.pools.Give(tr)
			tr = nil
		}
	}
	l, v.Variation = e.adopt(p, e.lines, n, ahead)
	switch {
	case l != t.Plan.Layout:
		return l, nil
	case tr != nil && tr.Move(&c.Catalog, l):
		return l, tr
	default:
		return l, e.freeTree(t.Plan)
	}
}

// useOwnLines replaces shared lines by the target's own.
func (e *ending) useOwnLines(lines []*catalog.Line) []*catalog.Line {
	return e.replaceLines(e.target.cohort.Turn(&e.target.Identity, lines))
}

// isReordered reports whether a page that was just passed has the plan's lines in another order, and then brings their
// values into the plan's order.
func (e *ending) isReordered(p *plan.Pass, n plan.Counts) bool {
	t, q := e.target, e.target.Plan
	if e.size == 0 || e.joins || q == nil || q.Layout == nil || q.Repeats > 0 || t.Turned || !t.Settled || !t.Diff.IsEmpty() ||
		e.times != nil || t.Timed != nil || e.natives != nil || len(e.exemplars) > 0 ||
		n != (plan.Counts{Tally: q.Tally}) || len(t.Lingering) > 0 || !plan.Same(p.Said, t.Said) {
		return false
	}
	owner := q.Owners()
	if q.HasUnplaced { // of several samples of a point one counts, and the order decides which
		return false
	}
	e.aligned = e.aligned[:0]
	for i, l := range q.Body {
		v := 0.0
		if l.Kind == catalog.SeriesLine {
			v = e.values[l.Number]
			if at := owner[i]; at >= 0 && q.Layout.Points[at] != l.Point {
				return false
			}
		}
		e.aligned = append(e.aligned, v)
	}
	return true
}

// adopt makes the page the target's plan and returns the layout of this scrape: the plan's own, or a variation of it,
// where possible.
func (e *ending) adopt(p *plan.Pass, all []*catalog.Line, n plan.Counts, ahead int64) (l *plan.Layout, x *plan.Variation) {
	t, c := e.target, e.target.cohort
	q := p.Plan(all, n)
	if q.Layout == nil {
		q.Layout = p.Lay(0, all, nil, nil, ahead)
		c.pools.Join(q.Layout)
	}
	l = q.Layout
	isPlain := e.res.Late == 0 && (e.times == nil || q.Repeats == 0 && e.haveOneTime(q))
	if isPlain && len(e.Gone) > 0 {
		x = p.Without(l, all, e.Gone)
		isPlain = x != nil
	}
	if !isPlain {
		l = p.Lay(0, all, e.times, e.Gone, ahead)
	}
	timed := e.timestamped(len(q.Body))
	isNew := q.Said == nil
	knew := len(t.Said)+len(t.Lingering) > 0
	shared := q.Said
	if isNew {
		shared = c.SharedMetadata(p.Said)
	}
	changed := t.Learn(p.Said, shared)
	if isNew {
		q.Said, q.SaidBefore = t.Said, shared != nil
		if shared == nil {
			c.RememberMetadata(t.Said)
		}
	}
	c.adopt(t, q)
	t.Settled = !changed || p.Same(&t.Identity, &t.History, all, e.natives)
	if isNew && len(t.Lingering) == 0 {
		q.Pure = (!knew || p.Same(&catalog.Identity{Catalog: &c.Catalog}, &plan.History{}, all, e.natives)) && plan.Same(p.Said, q.Said)
		q.Steady = t.Settled
	}
	t.Timed = timed
	t.Succeed()
	return l, x
}

// countFailed counts what was read of a page that failed: up to the failure, or, when it exceeded a limit, all of it.
// Series count as new if neither the last good page nor a failed one since had them.
func (e *ending) countFailed(was, lines []*catalog.Line, ahead int64) {
	t, res := e.target, &e.res
	c := t.cohort
	before, now := c.MarkLines(), c.MarkLines()
	for _, l := range was {
		l.Epoch = before
	}
	res.Samples, res.PostRelabel, res.Added = 0, 0, 0
	left := math.MaxInt // up to the sample limit
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
		hasTime := e.times != nil && e.times[i] != plan.NoTime
		isRepeat := l.Epoch == now
		if isRepeat && !hasTime {
			continue
		}
		if left--; left < 0 || isRepeat || hasTime && e.times[i] > ahead {
			continue
		}
		if l.Epoch != before {
			hash := t.SeriesHash(l)
			if seen = append(seen, hash); !t.Failed.HasHash(hash) && (e.tooLarge == 0 || i < e.tooLarge) {
				res.Added++
			}
		}
		l.Epoch = now
	}
	t.Failed = t.Failed.With(seen, len(was))
}
