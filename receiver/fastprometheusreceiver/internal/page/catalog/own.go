// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package catalog

import (
	"cmp"
	"encoding/binary"
	"hash/maphash"
	"slices"
	"strings"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"

	"github.com/godwit-otel/godwit/receiver/fastprometheusreceiver/internal/page/expo"
)

// Programs tell on every line who they are: a pod, an instance of an application. Such a value is the target's own, as are its
// labels, though the page has it: lines have a slot in its place and are the same for all targets. Which slot a value has goes
// by the name of its label, so a target has one value of its own for each name, and a line that has it always has the slot.

const (
	// ownBase is from where on the values that a target has for itself are its pages', not discovery's and not the rules'.
	ownBase = MostVariables
	// MostOwn bounds the labels that have slots.
	MostOwn = 16
	// LongestOwn bounds a value: targets keep theirs beside their lines, where nothing counts them.
	LongestOwn = 256
	// OwnPart is the part of a page's series, one in so many, that have a value if it is the target's own.
	OwnPart = 4
	// FewFresh is how many new lines of a page are not worth a look.
	FewFresh = 16
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

func (t *text) IsSlotted() bool { return t.tail == slotted }

// Parts visits what is before each slot of a text, and the slot; after the last piece there is none.
func (t *text) Parts(yield func(before string, slot int) bool) {
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

// slotMarks are what stands for the values in slots.
var slotMarks = func() (marks []string) {
	for slot := range MostOwn {
		marks = append(marks, OfTarget.Of(ownBase+slot))
	}
	return marks
}()

// template returns the text of an entry with slots for the target's own values, for a moment; nil if it has none of them.
func (c *Catalog) template(t *Identity, e *expo.Entry) []byte {
	b, at := c.templating[:0], 0
	for i := range e.Labels() {
		name, value := e.Label(i)
		slot, ok := c.slots[string(name)]
		if !ok || slot >= len(t.Own) || t.Own[slot] == "" || t.Own[slot] != string(value) {
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
func (c *Catalog) slotted(t *Identity, template []byte, in Setting) *Line {
	return c.Lines.find(maphash.Bytes(seed, template)^slottedSalt, func(l *Line) bool {
		return l.Setting == in && l.IsSlotted() && string(*l.body) == string(template) && t.meets(l.Name.Cond)
	})
}

// ownLine returns the line of an entry that has values of the target's own, nil if it has none.
func (c *Catalog) ownLine(t *Identity, e *expo.Entry, in, kept Setting) (*Line, error) {
	if t.Pin != nil || len(t.Own) == 0 {
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
		if slot, ok := c.slots[string(name)]; ok && slot < len(t.Own) && t.Own[slot] != "" && t.Own[slot] == string(value) {
			set.Set(string(name), OfTarget.Of(ownBase+slot))
		}
	}
	final, cond, err := c.final(set.Labels(), t)
	if err != nil {
		return nil, err
	}
	body := piece(b)
	return c.addSeries(text{Name: c.nameOf(exposed, final, cond), body: &body, tail: slotted}, kept, final, true), nil
}

// restate returns what a line is once the target's own values are others than they were.
func (c *Catalog) restate(t *Identity, l *Line, was []string) *Line {
	if l.Kind != SeriesLine && l.Kind != DroppedLine || l.Setting == RefusedSetting {
		return l
	}
	if _, unspelled := c.unspelled[l]; unspelled {
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
func (c *Catalog) RestateAll(t *Identity, lines []*Line, was []string) []*Line {
	out := make([]*Line, len(lines))
	for i, l := range lines {
		if out[i] = c.restate(t, l, was); out[i] != l && !l.IsSlotted() {
			c.Lose(1)
		}
	}
	return out
}

// OwnValues returns which values are the target's own once a page has many new lines: of each label the one that many lines have.
func (c *Catalog) OwnValues(t *Identity, lines []*Line) []string {
	counts := map[labelPair]*int{}
	series := 0
	for _, l := range lines {
		if l.Kind != SeriesLine {
			continue
		}
		series++
		if e, ok := c.reread.line(l, t.Own); ok && e.Labels() <= mostShapedLabels {
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
		if OwnPart**n > series && c.canBeOwn(pair) {
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
			if slot = len(c.slots); slot == MostOwn {
				continue
			}
			c.slots[pair.name] = slot
		}
		if own == nil {
			own = append(make([]string, 0, MostOwn), t.Own...)
		}
		for len(own) <= slot {
			own = append(own, "")
		}
		own[slot] = pair.value
	}
	if own == nil {
		return t.Own
	}
	return own
}

// Shares tells whether most lines of a page that have the target's own values were there before the page, or whether the target
// may be among the first of its kind. Lines with higher numbers than `since` came with the page.
func (c *Catalog) Shares(t *Identity, lines []*Line, own []string, since uint32) bool {
	was := t.Own
	t.Own = own
	have, found := 0, 0
	kind := uint64(0)
	var last *Name
	for _, l := range lines {
		if l.Kind != SeriesLine {
			continue
		}
		if l.Name != last {
			last = l.Name
			kind = (kind ^ maphash.String(seed, last.exposed)) * 0x9e3779b97f4a7c15
		}
		e, ok := c.reread.line(l, was)
		if !ok {
			continue
		}
		if template := c.template(t, e); template != nil {
			have++
			if l := c.slotted(t, template, l.Setting); l != nil && l.ID <= since {
				found++
			}
		}
	}
	t.Own = was
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
func (c *Catalog) canBeOwn(l labelPair) bool {
	return l.value != "" && len(l.value) <= LongestOwn && strings.IndexByte(l.value, '\\') < 0 && strings.IndexByte(l.name, '\\') < 0 && !c.Rules.IsTooLong(l.value) &&
		!isApart(l.name) && !c.Rules.fixes(l.name) && !strings.HasPrefix(l.name, model.ExportedLabelPrefix) &&
		!slices.ContainsFunc(c.labels, func(own labels.Label) bool { return own.Name == l.name })
}
