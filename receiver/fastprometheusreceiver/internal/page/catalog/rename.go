// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package catalog

import (
	"slices"
	"strings"
)

// Of the things that a target has for itself, some go and others come: a pod is replaced. Whatever comes where another was, in the order
// of the page, takes its slots, so that the page has the lines that it had. Only what the slots were about is put in other words.

// A renaming is what the target's own values come to on a page. Its memory is used again, under the cohort's lock.
type renaming struct {
	counts map[labelPair]int // of lines that were not expected
	taken  map[string]int    // slots of each label, in the order of the page
	used   []bool            // slots; or those that have another value
	news   []labelPair
	labels []uint64 // of each slot which news are of its label
}

func (r *renaming) reset(slots int) {
	if r.counts == nil {
		r.counts, r.taken = map[labelPair]int{}, map[string]int{}
	}
	clear(r.counts)
	clear(r.taken)
	r.used = slices.Grow(r.used[:0], slots)[:slots]
	clear(r.used)
	r.news = r.news[:0]
}

// Renamed returns the target's own values once some lines of its page came that were not expected and tell of new things. It returns
// nil if these do not take the slots of others: then nothing is new that has slots, or the page has it in another order.
func (c *Catalog) Renamed(t *Identity, lines, came []*Line) []string {
	r := &c.renaming
	r.reset(len(c.slotNames))
	mark := c.MarkLines()
	for _, l := range came {
		if l.Epoch != mark {
			l.Epoch = mark
			c.countNew(t, l)
		}
	}
	own := slices.Clone(t.Own)
	for _, l := range lines {
		switch {
		case l.Kind != SeriesLine:
		case l.Epoch == mark:
			if !c.rename(t, l, &own) {
				return nil
			}
		case l.IsSlotted() && !c.keepSlots(&l.text):
			return nil
		default:
		}
	}
	if len(r.news) == 0 {
		return nil
	}
	for name, n := range r.taken {
		for _, slot := range c.slots[name][n:] {
			if slot < len(own) {
				own[slot] = "" // there are fewer than there were
			}
		}
	}
	return own
}

// countNew counts values that might be the target's own.
func (c *Catalog) countNew(t *Identity, l *Line) {
	if l.Kind != SeriesLine {
		return
	}
	e, ok := c.reread.line(l, t.Own)
	if !ok || e.Labels() > mostShapedLabels {
		return
	}
	for i := range e.Labels() {
		name, value := e.Label(i)
		if _, isSlotted := c.slots[string(name)]; isSlotted && c.slotOf(t, name, value) < 0 {
			pair := labelPair{string(name), string(value)}
			if c.canBeOwn(pair) {
				c.renaming.counts[pair]++
			}
		}
	}
}

// keepSlots takes those of a text.
func (c *Catalog) keepSlots(t *text) bool {
	s := string(*t.body)
	for i := 0; ; {
		n, at := number(s, i)
		if i = at + n; i == len(s) {
			return true
		}
		var slot int
		if slot, i = number(s, i); !c.renaming.used[slot] && !c.keepSlot(slot) {
			return false
		}
	}
}

// keepSlot takes the next slot of a label, unless it has been. It is false if that is another one.
func (c *Catalog) keepSlot(slot int) bool {
	r := &c.renaming
	if r.used[slot] {
		return true
	}
	name := c.slotNames[slot]
	n := r.taken[name]
	if all := c.slots[name]; n == len(all) || all[n] != slot {
		return false
	}
	r.used[slot], r.taken[name] = true, n+1
	return true
}

// rename takes the slots of a line that was not expected: those of what it tells of that was there, and the next ones for what is new.
func (c *Catalog) rename(t *Identity, l *Line, own *[]string) bool {
	r := &c.renaming
	e, ok := c.reread.line(l, t.Own)
	if !ok || e.Labels() > mostShapedLabels {
		return true
	}
	for i := range e.Labels() {
		name, value := e.Label(i)
		if slot := c.slotOf(t, name, value); slot >= 0 {
			if (*own)[slot] != string(value) || !c.keepSlot(slot) {
				return false
			}
			continue
		}
		if r.counts[labelPair{string(name), string(value)}] < manyAbout {
			continue
		}
		pair := labelPair{string(name), string(value)}
		if slices.Contains(r.news, pair) {
			continue
		}
		n := r.taken[pair.name]
		slot := c.slot(pair.name, n)
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
		r.news = append(r.news, pair)
	}
	return true
}

// RestateRenamed returns what the lines of the last page and of this one are once some of the target's own values are others than they
// were. Most lines are not about these. Those of this page that the last had not came unexpected.
func (c *Catalog) RestateRenamed(t *Identity, last, lines, came []*Line, was []string) (restatedLast, restated []*Line) {
	r := &c.renaming
	if r.compare(c.slotNames, t.Own, was); len(r.news) > 64 || slices.ContainsFunc(last, r.saysNews) {
		return c.RestateAll(t, last, was), c.RestateAll(t, lines, was)
	}
	about := func(l *Line) bool { return l.IsSlotted() && l.hasOneOf(r.used) }
	restatedLast = c.restateSome(t, last, was, about)
	mark := c.MarkLines()
	for _, l := range came {
		l.Epoch = mark
	}
	return restatedLast, c.restateSome(t, lines, was, func(l *Line) bool { return l.Epoch == mark })
}

func (c *Catalog) restateSome(t *Identity, lines []*Line, was []string, some func(*Line) bool) []*Line {
	out := make([]*Line, len(lines))
	for i, l := range lines {
		if out[i] = l; some(l) {
			if out[i] = c.restate(t, l, was); out[i] != l {
				c.Lose(1)
			}
		}
	}
	return out
}

// compare finds out which slots have other values than they had, and which values are new.
func (r *renaming) compare(names, own, was []string) {
	r.used, r.labels = slices.Grow(r.used[:0], len(names))[:len(names)], slices.Grow(r.labels[:0], len(names))[:len(names)]
	r.news = r.news[:0]
	for slot := range names {
		is, had := "", ""
		if slot < len(own) {
			is = own[slot]
		}
		if slot < len(was) {
			had = was[slot]
		}
		if r.used[slot] = is != had; r.used[slot] && is != "" {
			r.news = append(r.news, labelPair{names[slot], is})
		}
	}
	for slot, name := range names {
		r.labels[slot] = 0
		for i, pair := range r.news {
			if pair.name == name {
				r.labels[slot] |= 1 << (i & 63)
			}
		}
	}
}

// saysNews tells whether a line may have a value that is new: under a label that has no slot in it.
func (r *renaming) saysNews(l *Line) bool {
	if l.Kind != SeriesLine && l.Kind != DroppedLine {
		return false
	}
	slotted := uint64(0)
	if l.IsSlotted() {
		for _, slot := range l.Parts {
			if slot >= 0 {
				slotted |= r.labels[slot]
			}
		}
	}
	for i, pair := range r.news {
		if slotted&(1<<i) == 0 && l.contains(pair.value) {
			return true
		}
	}
	return false
}

// contains tells whether a piece of a text has another text in it, as it may have where that is in it by chance.
func (t *text) contains(s string) bool {
	if t.isWhole() || t.IsSlotted() {
		return strings.Contains(string(*t.body), s)
	}
	return strings.Contains(string(*t.body), s) || strings.Contains(string(*t.tail), s)
}

// hasOneOf tells whether a text with slots has one of some.
func (t *text) hasOneOf(slots []bool) bool {
	s := string(*t.body)
	for i := 0; ; {
		n, at := number(s, i)
		if i = at + n; i == len(s) {
			return false
		}
		var slot int
		if slot, i = number(s, i); slots[slot] {
			return true
		}
	}
}
