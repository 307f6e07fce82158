// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package page

import (
	"slices"
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"

	"github.com/godwit-otel/godwit/receiver/fastprometheusreceiver/internal/page/plan"
	"github.com/godwit-otel/godwit/receiver/fastprometheusreceiver/internal/page/tree"
)

// emitVaried makes metrics of a page that differs from a plan by series which come and go within families that stay. Any
// change that affects the meaning of other lines is left to settle.
func (e *ending) emitVaried() bool {
	t, p := e.target, e.plan
	c := t.cohort
	if p == nil || t.Turned || e.mixed || t.Plan != p && p.Contested || t.Failed != nil || p.Layout == nil || p.Repeats > 0 || e.natives != nil || !t.Follows(p) {
		return false
	}
	if e.times != nil && slices.Max(e.times) > latest(time.Now()) {
		return false
	}
	if e.findsOwn(e.readSoFar()) {
		return false
	}
	d := t.Diff
	if t.Plan != p || !e.isComplete() {
		var ok bool
		if d, ok = plan.Compare(p, e.readSoFar(), len(d.Extras)); !ok {
			return false
		}
	}
	e.aligned = d.Align(e.aligned[:0], e.values, len(p.Body))
	c.mu.Lock()
	x, n := c.Vary(p, d, &t.Identity, &t.History, &e.VaryingRoom)
	res := e.res.with(n)
	if x == nil || over(c.job, res.PostRelabel) || !e.alignTimes(p, x) {
		c.mu.Unlock()
		return false
	}
	if t.Plan != p {
		c.adopt(t, p)
		t.Said, t.Settled = p.Said, p.Steady
	}
	t.Carried += x.Carried
	t.Succeed()
	if t.Forget() {
		t.Settled = false
	}
	c.Differ(&t.History, d)
	t.Timed = e.timestamped(len(e.times))
	c.Discard(e.Lost)
	delete(c.reading, e.Scrape) // not earlier: until here nothing else holds the extra lines
	c.sweep()
	c.mu.Unlock()

	e.values, e.aligned = e.aligned, e.values
	if e.times != nil {
		e.times, e.stamps = e.stamps, e.times
	}
	e.res = res
	e.report()
	e.values = d.ExtraValues(e.values, e.aligned)
	for range x.Ended {
		e.values = append(e.values, plan.StaleMarker)
	}
	v := tree.View{Owner: &t.owner, At: pcommon.Timestamp(e.at * 1e6), Values: e.values, Times: e.times, Variation: x}
	if len(e.exemplars) > 0 {
		d.Renumber(e.exemplars, len(p.Lines))
		owner := append(slices.Clone(p.Owners()), x.Extra.Owners(len(p.Lines), len(d.Extras))...)
		for i := len(p.Lines); i < len(owner); i++ {
			if owner[i] >= 0 {
				owner[i] += int32(len(p.Layout.Points))
			}
		}
		e.exemplars = plan.AssignExemplars(e.exemplars, owner)
		v.Exemplars = e.exemplars
	}
	x.Extra.RenumberAfter(p.Layout)
	e.render(p.Layout, e.freeTree(p), &v)
	return true
}

// alignTimes brings the timestamps of samples, if there are any, into the order of the plan's lines followed by the
// variation's. It returns false if samples of one point have several timestamps.
func (e *ending) alignTimes(p *plan.Plan, x *plan.Variation) bool {
	if e.times == nil {
		return true
	}
	at := x.AlignTimes(e.stamps[:0], e.times, len(p.Body))
	for len(at) < len(p.Lines) { // the lines of the report
		at = append(at, plan.NoTime)
	}
	at = x.ExtraTimes(at, e.times)
	for range x.Ended {
		at = append(at, plan.NoTime)
	}
	e.stamps = at
	return p.Layout.IsTogether(at) && x.Extra.IsTogether(at)
}

// freeTree returns a free tree for a plan, if there is one.
func (e *ending) freeTree(p *plan.Plan) *tree.Tree {
	c := e.target.cohort
	if !c.job.tree.Reuse {
		return nil
	}
	return c.pools.Take(p.Layout)
}
