// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package catalog

import "slices"

// Of the things that a target has for itself, some go and others come: a pod is replaced. Whatever comes where another was, in the order
// of the page, takes its slots, so that the page has the lines that it had. Only what the slots were about is put in other words.

// A renaming is what the target's own values come to on a page. Its memory is used again, under the cohort's lock.
type renaming struct {
	counts map[labelPair]int // of lines that were not expected
	taken  map[string]int    // slots of each label, in the order of the page
	used   []bool            // slots that the page has taken
	fresh  []labelPair       // values that have taken a slot of others
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

// Renamed returns the target's own values once some lines of its page came that were not expected and tell of new things. It returns
// nil if these do not take the slots of others: then nothing is new that has slots, or the page has it in another order.
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
				own[slot] = "" // there are fewer than there were
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

// keepAll takes the slots of a text. It is false where these are not the next ones.
func (r *renaming) keepAll(s *slots, t *text) bool {
	b := string(*t.body)
	for i := 0; ; {
		n, at := number(b, i)
		if i = at + n; i == len(b) {
			return true
		}
		var slot int
		if slot, i = number(b, i); !r.used[slot] && !r.keep(s, slot) {
			return false
		}
	}
}

// keep takes a slot, if the page has not taken it yet. It is false if another one of its label is next.
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

// rename takes the slots of a line that was not expected: those of what it tells of that was there, and the next ones for what is new.
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
