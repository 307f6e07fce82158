// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package catalog

import "slices"

// When one of the things that only this target has replaces another, as a new pod does, it takes the other one's slots,
// by the order of the page, so that the page has the same lines as before. Only lines about the slots change.

// A renaming works out the target's own values on a page where some were replaced. Its memory is used again, under the
// cohort's lock.
type renaming struct {
	counts map[labelPair]int // labels of lines that were not expected
	taken  map[string]int    // number of slots by label, in the order of the page
	used   []bool            // by slot, whether the page has it
	fresh  []labelPair       // new values that took a slot
}

func (r *renaming) reset(slots int) {
	if r.counts == nil {
		r.counts, r.taken = map[labelPair]int{}, map[string]int{}
	}
	clear(r.counts)
	clear(r.taken)
	r.used = slices.Grow(r.used[:0], slots)[:slots]
	clear(r.used)
	r.fresh = r.fresh[:0]
}

// Renamed returns the target's own values after some lines of its page came that were not expected and are about new
// things. It returns nil if these do not take the slots of others: nothing new has slots, or the page's order has
// changed.
func (o *OwnValues) Renamed(t *Identity, lines, came []*Line) []string {
	r := &o.renaming
	r.reset(len(o.labels))
	mark := o.catalog.MarkLines()
	for _, l := range came {
		if l.Epoch != mark {
			l.Epoch = mark
			o.countNew(t, l)
		}
	}
	own := slices.Clone(t.Own)
	for _, l := range lines {
		switch {
		case l.Kind != SeriesLine:
		case l.Epoch == mark:
			if !o.rename(t, l, &own) {
				return nil
			}
		case l.IsSlotted() && !r.keepAll(&o.slots, &l.text):
			return nil
		default:
		}
	}
	if len(r.fresh) == 0 {
		return nil
	}
	for name, n := range r.taken {
		for _, slot := range o.byLabel[name][n:] {
			if slot < len(own) {
				own[slot] = "" // there are fewer things than before
			}
		}
	}
	return own
}

// countNew counts values that might be the target's own.
func (o *OwnValues) countNew(t *Identity, l *Line) {
	if l.Kind != SeriesLine {
		return
	}
	e, ok := o.catalog.reread.line(l, t.Own)
	if !ok || e.Labels() > mostShapedLabels {
		return
	}
	for i := range e.Labels() {
		name, value := e.Label(i)
		if _, isSlotted := o.byLabel[string(name)]; isSlotted && o.of(t, name, value) < 0 {
			pair := labelPair{string(name), string(value)}
			if o.canBe(pair) {
				o.renaming.counts[pair]++
			}
		}
	}
}

// keepAll keeps the slots of a text. It returns false if these are not the next ones.
func (r *renaming) keepAll(s *slots, t *text) bool {
	for _, slot := range t.Parts {
		if slot >= 0 && !r.used[slot] && !r.keep(s, slot) {
			return false
		}
	}
	return true
}

// keep keeps a slot, unless the page has it already. It returns false if another slot of its label is next.
func (r *renaming) keep(s *slots, slot int) bool {
	if r.used[slot] {
		return true
	}
	name := s.labels[slot]
	n := r.taken[name]
	if all := s.byLabel[name]; n == len(all) || all[n] != slot {
		return false
	}
	r.used[slot], r.taken[name] = true, n+1
	return true
}

// rename assigns slots to a line that was not expected: the old ones to things that were there, the next ones to new
// things.
func (o *OwnValues) rename(t *Identity, l *Line, own *[]string) bool {
	r := &o.renaming
	e, ok := o.catalog.reread.line(l, t.Own)
	if !ok || e.Labels() > mostShapedLabels {
		return true
	}
	for i := range e.Labels() {
		name, value := e.Label(i)
		if slot := o.of(t, name, value); slot >= 0 {
			if (*own)[slot] != string(value) || !r.keep(&o.slots, slot) {
				return false
			}
			continue
		}
		if r.counts[labelPair{string(name), string(value)}] < manyAbout {
			continue
		}
		pair := labelPair{string(name), string(value)}
		if slices.Contains(r.fresh, pair) {
			continue
		}
		n := r.taken[pair.name]
		slot := o.nth(pair.name, n)
		if slot < 0 {
			return false
		}
		for len(r.used) <= slot {
			r.used = append(r.used, false)
		}
		if r.used[slot] {
			return false
		}
		for len(*own) <= slot {
			*own = append(*own, "")
		}
		(*own)[slot], r.taken[pair.name] = pair.value, n+1
		r.fresh = append(r.fresh, pair)
	}
	return true
}
