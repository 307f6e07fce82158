// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package page

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"hash/maphash"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"

	"github.com/godwit-otel/godwit/receiver/fastprometheusreceiver/internal/page/expo"
)

// Programs tell on every line who they are: a pod, an instance of an application. Such a value is the target's own, as are its
// labels, though the page has it: lines have a slot in its place and are the same for all targets. Which slot a value has goes
// by the name of its label, so a target has one value of its own for each name, and a line that has it always has the slot.

const (
	// ownBase is from where on the values that a target has for itself are its pages', not discovery's and not the rules'.
	ownBase = mostVariables
	// mostOwn bounds the labels that have slots.
	mostOwn = 16
	// longestOwn bounds a value: targets keep theirs beside their lines, where nothing counts them.
	longestOwn = 256
	// ownPart is the part of a page's series, one in so many, that have a value if it is the target's own.
	ownPart = 4
	// fewFresh is how many new lines of a page are not worth a look.
	fewFresh = 16
	// pioneers is how many targets of a kind have lines with slots though nobody else has them yet.
	pioneers = 3
	// mostCounted bounds the values of a page that are counted: what many lines have comes soon.
	mostCounted = 1 << 12
	// mostKinds bounds the kinds of pages for which pioneers are counted.
	mostKinds = 1 << 10
)

// ownSlots are those that the lines of a cohort have.
type ownSlots struct {
	slots      map[string]int   // by the name of the label
	kinds      map[uint64]uint8 // pioneers of pages, by what these are about
	templating []byte
}

func newOwnSlots() ownSlots { return ownSlots{slots: map[string]int{}, kinds: map[uint64]uint8{}} }

// slotted is the tail of texts with slots. Their body is what is between the values, each piece after its length, and the
// numbers of the slots.
var slotted = new(piece)

const slottedSalt = 0x5851f42d4c957f2d

func (t *text) isSlotted() bool { return t.tail == slotted }

// parts visits what is before each slot of a text, and the slot; after the last piece there is none.
func (t *text) parts(yield func(before string, slot int) bool) {
	s := string(*t.body)
	for i := 0; ; {
		n, at := number(s, i)
		before := s[at : at+n]
		if i = at + n; i == len(s) {
			yield(before, -1)
			return
		}
		slot, next := number(s, i)
		if !yield(before, slot) {
			return
		}
		i = next
	}
}

// matchOwn returns the length of a text with slots if b starts with it, or 0.
func (t *text) matchOwn(b []byte, own []string) int {
	s, end := string(*t.body), 0
	for i := 0; ; {
		n, at := number(s, i)
		i = at + n
		if len(b)-end < n || string(b[end:end+n]) != s[at:i] {
			return 0
		}
		if end += n; i == len(s) {
			return end
		}
		var slot int
		slot, i = number(s, i)
		if slot >= len(own) || own[slot] == "" || len(b)-end < len(own[slot]) || string(b[end:end+len(own[slot])]) != own[slot] {
			return 0
		}
		end += len(own[slot])
	}
}

// learn matches a line of another target's plan, and takes the values that stand where the target has none yet for its own.
func (s *Scrape) learn(b []byte, l *line) int {
	t := s.target
	own, end, learned := t.own, 0, false
	for before, slot := range l.parts {
		if len(b)-end < len(before) || string(b[end:end+len(before)]) != before {
			return 0
		}
		if end += len(before); slot < 0 {
			break
		}
		n := 0
		if slot < len(own) {
			n = len(own[slot])
		}
		if n == 0 {
			n = bytes.IndexByte(b[end:], '"')
			if n <= 0 || n > longestOwn || bytes.IndexByte(b[end:end+n], '\\') >= 0 || !utf8.Valid(b[end:end+n]) || t.cohort.job.isTooLong(string(b[end:end+n])) {
				return 0
			}
			if !learned {
				own, learned = append(make([]string, 0, mostOwn), own...), true
			}
			for len(own) <= slot {
				own = append(own, "")
			}
			own[slot] = string(b[end : end+n])
		}
		if len(b)-end < n || string(b[end:end+n]) != own[slot] {
			return 0
		}
		end += n
	}
	if learned {
		t.own = own
		s.mixed = s.mixed || s.strayed
	}
	return end
}

// slotMarks are what stands for the values in slots.
var slotMarks = func() (marks []string) {
	for slot := range mostOwn {
		marks = append(marks, ofTarget.of(ownBase+slot))
	}
	return marks
}()

// seriesHash is one of the text as the target's page has it.
func (t *Target) seriesHash(l *line) uint64 {
	if !l.isSlotted() {
		return l.text.hash()
	}
	return maphash.Bytes(seed, l.appendSpelled(nil, t.own))
}

// template returns the text of an entry with slots for the target's own values, for a moment; nil if it has none of them.
func (c *cohort) template(t *Target, e *expo.Entry) []byte {
	b, at := c.templating[:0], 0
	for i := range e.Labels() {
		name, value := e.Label(i)
		slot, ok := c.slots[string(name)]
		if !ok || slot >= len(t.own) || t.own[slot] == "" || t.own[slot] != string(value) {
			continue
		}
		begin, end := e.Span(i)
		b = append(binary.AppendUvarint(b, uint64(begin-at)), e.Text[at:begin]...)
		b = binary.AppendUvarint(b, uint64(slot))
		at = end
	}
	if at == 0 {
		return nil
	}
	b = append(binary.AppendUvarint(b, uint64(len(e.Text)-at)), e.Text[at:]...)
	c.templating = b
	return b
}

// slotted returns the target's line of a template, if it is known.
func (c *cohort) slotted(t *Target, template []byte, in setting) *line {
	return c.lines.find(maphash.Bytes(seed, template)^slottedSalt, func(l *line) bool {
		return l.setting == in && l.isSlotted() && string(*l.body) == string(template) && t.meets(l.name.cond)
	})
}

// ownLine returns the line of an entry that has values of the target's own, nil if it has none.
func (c *cohort) ownLine(t *Target, e *expo.Entry, in, kept setting) (*line, error) {
	if t.pin != nil || len(t.own) == 0 {
		return nil, nil
	}
	b := c.template(t, e)
	if b == nil {
		return nil, nil
	}
	if l := c.slotted(t, b, kept); l != nil {
		return l, nil
	}
	exposed := c.expose(e, in)
	set := labels.NewBuilder(exposed)
	for i := range e.Labels() {
		name, value := e.Label(i)
		if slot, ok := c.slots[string(name)]; ok && slot < len(t.own) && t.own[slot] != "" && t.own[slot] == string(value) {
			set.Set(string(name), ofTarget.of(ownBase+slot))
		}
	}
	final, cond, err := c.final(set.Labels(), t)
	if err != nil {
		return nil, err
	}
	body := piece(b)
	return c.addSeries(text{name: c.nameOf(exposed, final, cond), body: &body, tail: slotted}, kept, final, true), nil
}

// restate returns what a line is once the target's own values are others than they were.
func (c *cohort) restate(t *Target, l *line, was []string) *line {
	if l.kind != seriesLine && l.kind != droppedLine || l.setting == refusedSetting {
		return l
	}
	if _, untold := c.untold[l]; untold {
		return l
	}
	e, ok := c.reread.line(l, was)
	if !ok {
		return l
	}
	own, err := c.ownLine(t, e, l.setting, l.setting)
	switch {
	case own != nil:
		return own
	case err != nil || !l.isSlotted():
		return l
	}
	if had := c.find(t, e.Text, l.setting); had != nil {
		return had
	}
	exposed := c.expose(e, l.setting)
	final, cond, err := c.final(exposed, t)
	if err != nil {
		return l
	}
	return c.addSeries(whole(c.nameOf(exposed, final, cond), e.Text), l.setting, final, true)
}

func (c *cohort) restateAll(t *Target, lines []*line, was []string) []*line {
	out := make([]*line, len(lines))
	for i, l := range lines {
		out[i] = c.restate(t, l, was)
	}
	return out
}

// isFresh tells whether so many of a page's lines are new that a value which is on them all could be the target's own.
func (s *Scrape) isFresh(lines []*line) bool {
	c := s.target.cohort
	if s.fresh < fewFresh || s.target.pin != nil || c.job.rules.isMapped || c.targets.Load() < 2 || c.job.isLarge(len(lines)) {
		return false
	}
	series := 0
	for _, l := range lines {
		if l.kind == seriesLine {
			series++
		}
	}
	return ownPart*s.fresh > series
}

// ownValues returns which values are the target's own once a page has many new lines: of each label the one that many lines have.
func (c *cohort) ownValues(s *Scrape, lines []*line) []string {
	t := s.target
	counts := map[labelPair]*int{}
	series := 0
	for _, l := range lines {
		if l.kind != seriesLine {
			continue
		}
		series++
		if e, ok := c.reread.line(l, t.own); ok && e.Labels() <= mostShapedLabels {
			for i := range e.Labels() {
				name, value := e.Label(i)
				if n := counts[labelPair{string(name), string(value)}]; n != nil {
					*n++
				} else if len(counts) < mostCounted {
					once := 1
					counts[labelPair{string(name), string(value)}] = &once
				}
			}
		}
	}
	var own []string
	var often []labelPair
	for pair, n := range counts {
		if ownPart**n > series && c.canBeOwn(pair) {
			often = append(often, pair)
		}
	}
	slices.SortFunc(often, func(a, b labelPair) int {
		return cmp.Or(strings.Compare(a.name, b.name), *counts[b]-*counts[a], strings.Compare(a.value, b.value))
	})
	often = slices.CompactFunc(often, func(a, b labelPair) bool { return a.name == b.name })
	for _, pair := range often {
		slot, ok := c.slots[pair.name]
		if !ok {
			if slot = len(c.slots); slot == mostOwn {
				continue
			}
			c.slots[pair.name] = slot
		}
		if own == nil {
			own = append(make([]string, 0, mostOwn), t.own...)
		}
		for len(own) <= slot {
			own = append(own, "")
		}
		own[slot] = pair.value
	}
	if own == nil {
		return t.own
	}
	return own
}

// shares tells whether most lines of a page that have the target's own values were there before the page, or whether the target
// may be among the first of its kind.
func (c *cohort) shares(s *Scrape, lines []*line, own []string) bool {
	t := s.target
	was := t.own
	t.own = own
	have, found := 0, 0
	kind := uint64(0)
	var last *name
	for _, l := range lines {
		if l.kind != seriesLine {
			continue
		}
		if l.name != last {
			last = l.name
			kind = (kind ^ maphash.String(seed, last.exposed)) * 0x9e3779b97f4a7c15
		}
		e, ok := c.reread.line(l, was)
		if !ok {
			continue
		}
		if template := c.template(t, e); template != nil {
			have++
			if l := c.slotted(t, template, l.setting); l != nil && l.id <= s.since {
				found++
			}
		}
	}
	t.own = was
	if 4*found >= have {
		return true
	}
	n, ok := c.kinds[kind]
	if n >= pioneers || !ok && len(c.kinds) == mostKinds {
		return false
	}
	c.kinds[kind] = n + 1
	return true
}

type labelPair struct{ name, value string }

// canBeOwn tells whether a label is no more than an attribute, whatever its value is.
func (c *cohort) canBeOwn(l labelPair) bool {
	return l.value != "" && len(l.value) <= longestOwn && strings.IndexByte(l.value, '\\') < 0 && strings.IndexByte(l.name, '\\') < 0 && !c.job.isTooLong(l.value) &&
		!isApart(l.name) && !c.job.rules.fixes(l.name) && !strings.HasPrefix(l.name, model.ExportedLabelPrefix) &&
		!slices.ContainsFunc(c.labels, func(own labels.Label) bool { return own.Name == l.name })
}

// settleOwn finds out what is the target's own, and restates the lines of its page, and of its last, by that.
func (s *Scrape) settleOwn(lines []*line) []*line {
	t := s.target
	c := t.cohort
	own, was := t.own, t.own
	if !s.mixed && 3*s.size+mostWeight*int64(len(lines)) > s.left {
		return lines // what it has now, and would have, is there together for a while
	}
	defer c.charge(s, c.held())
	if s.isFresh(lines) {
		if own = c.ownValues(s, lines); own != nil && !c.shares(s, lines, own) {
			own = nil
		}
	}
	if !s.mixed && slices.Equal(own, was) {
		return lines
	}
	t.own = own
	t.version++
	t.restated = c.restateAll(t, t.last(), was)
	s.lines = c.restateAll(t, lines, was)
	s.strayed = true
	return s.lines
}
