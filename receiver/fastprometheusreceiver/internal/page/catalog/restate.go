// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package catalog

import "slices"

// Once values of a target are others than they were, its lines are others, too: here they are stated anew.

// restate returns what a line is once the target's own values are others than they were.
func (c *Catalog) restate(t *Identity, l *Line, was []string) *Line {
	if l.Kind != SeriesLine && l.Kind != DroppedLine || l.Setting == RefusedSetting {
		return l
	}
	if c.unplaced.isUnspelled(l) {
		return l
	}
	e, ok := c.reread.line(l, was)
	if !ok {
		return l
	}
	own, err := c.ownLine(t, e, l.Setting, l.Setting)
	switch {
	case own != nil:
		return own
	case err != nil || !l.IsSlotted():
		return l
	}
	if had := c.Find(t, e.Text, l.Setting); had != nil {
		return had
	}
	exposed := c.expose(e, l.Setting)
	final, cond, err := c.final(exposed, t)
	if err != nil {
		return l
	}
	return c.addSeries(Whole(c.nameOf(exposed, final, cond), e.Text), l.Setting, final, true)
}

// RestateAll returns what lines are once the target's own values are others than they were.
func (o *OwnValues) RestateAll(t *Identity, lines []*Line, was []string) []*Line {
	out := make([]*Line, len(lines))
	for i, l := range lines {
		if out[i] = o.catalog.restate(t, l, was); out[i] != l && !l.IsSlotted() {
			o.catalog.Lose(1)
		}
	}
	return out
}

// RestateRenamed returns what the lines of the last page and of this one are once some of the target's own values are others than they
// were. Most lines are not about these. Those of this page that the last had not came unexpected.
func (o *OwnValues) RestateRenamed(t *Identity, last, lines, came []*Line, was []string) (restatedLast, restated []*Line) {
	r := &o.replaced
	if r.compare(o.labels, t.Own, was); len(r.values) > mostReplaced || slices.ContainsFunc(last, r.mayBeIn) {
		return o.RestateAll(t, last, was), o.RestateAll(t, lines, was)
	}
	about := func(l *Line) bool { return l.IsSlotted() && l.hasOneOf(r.slots) }
	restatedLast = o.restateSome(t, last, was, about)
	mark := o.catalog.MarkLines()
	for _, l := range came {
		l.Epoch = mark
	}
	return restatedLast, o.restateSome(t, lines, was, func(l *Line) bool { return l.Epoch == mark })
}

func (o *OwnValues) restateSome(t *Identity, lines []*Line, was []string, some func(*Line) bool) []*Line {
	out := make([]*Line, len(lines))
	for i, l := range lines {
		if out[i] = l; some(l) {
			if out[i] = o.catalog.restate(t, l, was); out[i] != l {
				o.catalog.Lose(1)
			}
		}
	}
	return out
}

// replaced is in which slots a target has other values than it had. Its memory is used again, under the cohort's lock.
type replaced struct {
	slots   []bool
	values  []labelPair // that are in these now
	ofLabel []uint64    // of each slot, whether the values are of its label: a bit for each
}

// mostReplaced bounds the values that have a bit.
const mostReplaced = 64

// compare finds out what was replaced.
func (r *replaced) compare(names, own, was []string) {
	r.slots, r.ofLabel = slices.Grow(r.slots[:0], len(names))[:len(names)], slices.Grow(r.ofLabel[:0], len(names))[:len(names)]
	r.values = r.values[:0]
	for slot := range names {
		is, had := "", ""
		if slot < len(own) {
			is = own[slot]
		}
		if slot < len(was) {
			had = was[slot]
		}
		if r.slots[slot] = is != had; r.slots[slot] && is != "" {
			r.values = append(r.values, labelPair{names[slot], is})
		}
	}
	if len(r.values) > mostReplaced {
		return
	}
	for slot, name := range names {
		r.ofLabel[slot] = 0
		for i, pair := range r.values {
			if pair.name == name {
				r.ofLabel[slot] |= 1 << i
			}
		}
	}
}

// mayBeIn tells whether a line may have one of the values, under a label that has no slot in it.
func (r *replaced) mayBeIn(l *Line) bool {
	if l.Kind != SeriesLine && l.Kind != DroppedLine {
		return false
	}
	inSlots := uint64(0)
	if l.IsSlotted() {
		for _, slot := range l.Parts {
			if slot >= 0 {
				inSlots |= r.ofLabel[slot]
			}
		}
	}
	for i, pair := range r.values {
		if inSlots&(1<<i) == 0 && l.contains(pair.value) {
			return true
		}
	}
	return false
}
