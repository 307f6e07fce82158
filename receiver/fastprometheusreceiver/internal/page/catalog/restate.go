// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package catalog

import "slices"

// When a target's own values change, so do its lines. The functions below return the lines for the new values.

// restate returns the line for the target's new own values; was are the old ones.
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
	own, err := c.ownLine(t, e, l.Setting, l.Setting, false)
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

// RestateAll returns the lines for the target's new own values.
func (o *OwnValues) RestateAll(t *Identity, lines []*Line, was []string) []*Line {
	out := make([]*Line, len(lines))
	for i, l := range lines {
		if out[i] = o.catalog.restate(t, l, was); out[i] != l && !l.IsSlotted() {
			o.catalog.Lose(1)
		}
	}
	return out
}

// RestateRenamed returns the lines of the last page and of this one for the target's new own values, when these
// replaced some old ones. Most lines are not about them. came are the lines of this page that were not expected.
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

// replaced lists the slots whose values changed. Its memory is used again, under the cohort's lock.
type replaced struct {
	slots   []bool
	values  []labelPair // values that are in these slots now
	ofLabel []uint64    // by slot, a bitmap of the values that are of its label
}

// mostReplaced limits the values that have a bit.
const mostReplaced = 64

// compare finds the slots whose values changed.
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

// mayBeIn reports whether a line may have one of the values for a label without a slot.
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
