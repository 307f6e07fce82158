// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package page

import (
	"slices"

	"go.opentelemetry.io/collector/pdata/pcommon"

	"github.com/godwit-otel/godwit/receiver/fastprometheusreceiver/internal/page/catalog"
	"github.com/godwit-otel/godwit/receiver/fastprometheusreceiver/internal/page/expo"
	"github.com/godwit-otel/godwit/receiver/fastprometheusreceiver/internal/page/plan"
	"github.com/godwit-otel/godwit/receiver/fastprometheusreceiver/internal/page/tree"
)

// When a pod replaces another one, the page is the last page, line by line, except for the values that the target has
// in slots. These are exchanged while the page is read: on the first line that has a slot, before another line has
// shown its value. If the page then continues as the last one did, to its end, it has the same plan and the same lines;
// nothing is looked up. Otherwise the exchange is undone, and those lines are looked up as they are.

// A replacement is the set of new values for the target's slots on a page.
type replacement struct {
	own    []string         // the values by which the page is read
	use    *catalog.SlotUse // of the slots by the plan's lines, set once a line has another value
	slots  []int            // slots whose values changed
	barred bool             // no further slot may be replaced
}

// replace matches a line except for slots that no earlier line has, and takes the line's values for these.
func (s *Scrape) replace(b []byte, l *catalog.Line) int {
	use := s.slotUse()
	if use == nil {
		return 0
	}
	before := len(s.slots)
	own, end := s.others(b, l, use)
	if end == 0 {
		s.slots = s.slots[:before]
		return 0
	}
	s.own = own
	return end
}

// others matches a line except for the target's own values, and returns what they are then, and the length of its text,
// or 0.
func (s *Scrape) others(b []byte, l *catalog.Line, use *catalog.SlotUse) (own []string, end int) {
	own = s.own
	before := len(s.slots)
	for piece, slot := range l.Parts {
		if len(b)-end < len(piece) || string(b[end:end+len(piece)]) != piece {
			return nil, 0
		}
		if end += len(piece); slot < 0 {
			continue
		}
		if slot >= len(own) || own[slot] == "" {
			return nil, 0
		}
		n := ownLength(b[end:])
		if n == 0 {
			return nil, 0
		}
		if value := b[end : end+n]; own[slot] != string(value) {
			if use.First(slot) != s.next || slices.Contains(s.slots, slot) || use.IsTaken(slot, value, own) || use.IsTaken(slot, value, s.target.Own) ||
				s.target.cohort.Rules.IsTooLong(string(value)) {
				return nil, 0
			}
			if len(s.slots) == before {
				own = slices.Clone(own)
			}
			own[slot] = string(value)
			s.slots = append(s.slots, slot)
		}
		end += n
	}
	return own, end
}

// slotUse returns how the lines of the target's plan use slots, nil where no value may be exchanged because the page
// would then have another meaning.
func (s *Scrape) slotUse() *catalog.SlotUse {
	if s.use != nil || s.barred {
		return s.use
	}
	s.barred = true
	t, p := s.target, s.plan
	c := t.cohort
	if s.strayed || p == nil || p != t.Plan || !t.Diff.IsEmpty() || !t.Settled || !t.Alive || t.Failed != nil || t.Timed != nil || t.Pin != nil || t.Turned ||
		p.Layout == nil || p.Contested || p.Repeats > 0 || c.job.cfg.SeriesLimit > 0 || c.IsLarge(len(p.Lines)) {
		return nil
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	s.use = c.SlotUse(p)
	return s.use
}

// putBack undoes the exchange, so that what was read of the page has the target's old values again: it is not the last
// page with other values.
func (s *Scrape) putBack() error {
	own, slots := s.own, s.slots
	s.replacement = replacement{own: s.target.Own, slots: slots[:0], barred: true}
	s.beginOwnLines()
	in := s.in
	defer func() { s.in = in }()
	var (
		text []byte
		e    expo.Entry
	)
	for i, l := range s.lines {
		if !l.HasOneOf(slots) {
			continue
		}
		text = append(l.AppendSpelled(text[:0], own), " 0\n"...)
		_, err := s.parser.Next(text, &e)
		if err == nil {
			s.in = l.Setting
			s.lines[i], err = s.series(&e)
		}
		if err != nil {
			s.lines, s.values = s.lines[:i], s.values[:i]
			s.refused++
			return err
		}
	}
	return nil
}

// emitReplaced makes metrics of a page that is as planned except for replaced values, and ends the series with the old ones.
func (e *ending) emitReplaced() bool {
	t, p := e.target, e.plan
	c := t.cohort
	if !e.exact() || e.times != nil || e.natives != nil {
		return false
	}
	res := e.res.with(p.Tally)
	if over(c.job, res.PostRelabel) {
		return false
	}
	c.mu.Lock()
	x, added := c.Replace(p, e.use, e.slots, &e.VaryingRoom)
	if x == nil {
		c.mu.Unlock()
		return false
	}
	before := t.owner.WithValues(t.Own)
	t.Own = e.own
	c.Own.Count(&t.Identity)
	t.Version++
	t.Succeed()
	if t.Forget() {
		t.Settled = false
	}
	c.mu.Unlock()

	e.res = res
	e.res.Added = added
	e.report()
	for range x.Ended {
		e.values = append(e.values, plan.StaleMarker)
	}
	v := tree.View{Owner: &t.owner, Before: before, At: pcommon.Timestamp(e.at * 1e6), Values: e.values, Variation: x}
	if len(e.exemplars) > 0 {
		e.exemplars = plan.AssignExemplars(e.exemplars, p.Owners())
		v.Exemplars = e.exemplars
	}
	x.Extra.RenumberAfter(p.Layout)
	e.render(p.Layout, e.freeTree(p), &v)
	return true
}
