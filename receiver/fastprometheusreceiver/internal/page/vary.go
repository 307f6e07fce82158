// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package page

import (
	"slices"

	"go.opentelemetry.io/collector/pdata/pcommon"

	"github.com/godwit-otel/godwit/receiver/fastprometheusreceiver/internal/page/plan"
	"github.com/godwit-otel/godwit/receiver/fastprometheusreceiver/internal/page/tree"
)

// vary emits a page that differs from a plan by series which come and go within families that stay. Everything else
// that a page may change about the meaning of others is left to settle.
func (s *Scrape) vary(r Report, res Result) (Result, bool) {
	t, p := s.target, s.plan
	c := t.cohort
	if p == nil || t.Turned || s.mixed || t.Plan != p && p.Contested || t.Failed != nil || p.Layout == nil || p.Repeats > 0 || s.times != nil || s.natives != nil || t.Timed != nil || !t.Follows(p) {
		return res, false
	}
	if s.findsOwn(s.seen()) {
		return res, false
	}
	d := t.Diff
	if t.Plan != p || s.strayed || s.next != len(s.expected) {
		var ok bool
		if d, ok = plan.Compare(p, s.seen(), len(d.Extras)); !ok {
			return res, false
		}
	}
	s.aligned = d.Align(s.aligned[:0], s.values, len(p.Body))
	c.mu.Lock()
	x, n := c.Vary(p, d, &t.Identity, &t.History, &s.VaryingRoom)
	res = res.with(n)
	if x == nil || over(c.job, res.PostRelabel) {
		c.mu.Unlock()
		return res, false
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
	c.Discard(s.Lost)
	delete(c.reading, s) // not before: until here nothing else has the extras
	c.sweep()
	c.mu.Unlock()

	s.values, s.aligned = s.aligned, s.values
	s.report(r, &res)
	s.values = d.Beyond(s.values, s.aligned)
	for range x.Ended {
		s.values = append(s.values, plan.StaleMarker)
	}
	v := tree.View{Owner: &t.owner, At: pcommon.Timestamp(s.at * 1e6), Values: s.values, Variation: x}
	if len(s.exemplars) > 0 {
		d.Renumber(s.exemplars, len(p.Lines))
		owner := append(slices.Clone(p.Owners()), x.Extra.Owners(len(p.Lines), len(d.Extras))...)
		for i := len(p.Lines); i < len(owner); i++ {
			if owner[i] >= 0 {
				owner[i] += int32(len(p.Layout.Points))
			}
		}
		s.exemplars = plan.Deal(s.exemplars, owner)
		v.Exemplars = s.exemplars
	}
	x.Extra.Behind(p.Layout)
	s.render(p.Layout, s.free(p), &v, &res)
	return res, true
}

// free returns a tree to fill for a plan, if there is one.
func (s *Scrape) free(p *plan.Plan) *tree.Tree {
	c := s.target.cohort
	if !c.job.tree.Reuse {
		return nil
	}
	return c.pools.Take(p.Layout)
}
