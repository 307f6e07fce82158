// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package catalog

import (
	"encoding/binary"
	"hash/maphash"

	"github.com/prometheus/prometheus/model/labels"

	"github.com/godwit-otel/godwit/receiver/fastprometheusreceiver/internal/page/expo"
)

// Programs tell on every line who they are: a pod, an instance of an application. Such a value is the target's own, as are its
// labels, though the page has it: lines have a slot in its place and are the same for all targets. Others tell of a few things that
// no other target has, each on many lines: the pods of a node, and their containers. Then a label has several slots, one for each
// of its values, in the order of the page: so pages about other pods have the same lines. A target has no value in two slots of
// a label, and a line that has a value of the target's own always has its slot.

const (
	// ownBase is from where on the values that a target has for itself are its pages', not discovery's and not the rules'.
	ownBase = MostVariables
	// MostOwn bounds the slots.
	MostOwn = 512
	// LongestOwn bounds a value: targets keep theirs beside their lines.
	LongestOwn = 256
	// OwnPart is the part of a page's series, one in so many, that have a value if it is the target's own.
	OwnPart = 4
	// manyAbout is how many series tell of a thing that is worth slots, where a label has several.
	manyAbout = 8
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
	slots      map[string][]int    // by the name of the label
	slotNames  []string            // of all slots
	kinds      map[uint64]uint8    // pioneers of pages, by what these are about
	ownHeld    int64               // bytes of the values that targets have in slots
	orders     map[ordered]uint64  // of values, hashed: those that the first page had
	varying    map[string]struct{} // labels that pages of a kind have other values under, or in another order
	templating []byte
	moved      []int // by how much each value is further behind in the last template than in its line
	renaming   renaming
	replaced   replaced
	indexed    slotIndex
	counting   counting
}

// ordered is the values of a label on pages of a kind.
type ordered struct {
	kind  uint64
	label string
}

func newOwnSlots() ownSlots {
	return ownSlots{slots: map[string][]int{}, kinds: map[uint64]uint8{}, orders: map[ordered]uint64{}, varying: map[string]struct{}{}}
}

// slotOf returns the slot of the target's that a value has, or -1.
func (s *ownSlots) slotOf(t *Identity, name, value []byte) int {
	all := s.slots[string(name)]
	if len(all) == 0 || len(value) == 0 {
		return -1
	}
	if len(all) > fewSlots {
		return s.indexed.slot(s, t.Own, name, value)
	}
	for _, slot := range all {
		if slot < len(t.Own) && t.Own[slot] == string(value) {
			return slot
		}
	}
	return -1
}

// fewSlots is how many slots of a label are looked through. More are found by an index, which is of the target that was last asked for:
// one page asks for many.
const fewSlots = 4

// slotIndex finds slots by their labels and values.
type slotIndex struct {
	own   []string // whose it is: values are never written to once a target has them
	slots map[labelPair]int
}

func (x *slotIndex) slot(s *ownSlots, own []string, name, value []byte) int {
	if len(own) == 0 {
		return -1
	}
	if len(x.own) != len(own) || &x.own[0] != &own[0] {
		if x.own = own; x.slots == nil {
			x.slots = map[labelPair]int{}
		}
		clear(x.slots)
		for slot, v := range own {
			if v != "" {
				x.slots[labelPair{s.slotNames[slot], v}] = slot
			}
		}
	}
	if slot, ok := x.slots[labelPair{string(name), string(value)}]; ok {
		return slot
	}
	return -1
}

// slot returns a slot of a label, the first or one after it, or -1 if there are too many.
func (s *ownSlots) slot(name string, n int) int {
	all := s.slots[name]
	if n < len(all) {
		return all[n]
	}
	if len(s.slotNames) == MostOwn {
		return -1
	}
	slot := len(s.slotNames)
	s.slotNames = append(s.slotNames, name)
	s.slots[name] = append(all, slot)
	return slot
}

// ownBytes is what a value takes besides its text.
const ownBytes = 24

// CountOwn adds up what the target's own values take, since they were last counted.
func (c *Catalog) CountOwn(t *Identity) {
	n := int64(0)
	for _, v := range t.Own {
		n += ownBytes + int64(len(v))
	}
	c.ownHeld += n - t.ownCounted
	t.ownCounted = n
}

// DiscountOwn counts them no more: the target is leaving.
func (c *Catalog) DiscountOwn(t *Identity) { c.ownHeld, t.ownCounted = c.ownHeld-t.ownCounted, 0 }

// IsApart tells whether two slots are of different labels, so that they may have the same value.
func (s *ownSlots) IsApart(a, b int) bool { return s.slotNames[a] != s.slotNames[b] }

// slotMarks are what stands for the values in slots.
var slotMarks = func() (marks []string) {
	for slot := range MostOwn {
		marks = append(marks, OfTarget.Of(ownBase+slot))
	}
	return marks
}()

// template returns the text of an entry with slots for the target's own values, for a moment; nil if it has none of them.
func (c *Catalog) template(t *Identity, e *expo.Entry) []byte {
	b, at, first := c.templating[:0], 0, 0
	c.moved = c.moved[:0]
	move := func(labels, end int) { // the values before some label are in a piece that ends somewhere
		b = binary.AppendUvarint(b, uint64(end-at))
		for range labels - first {
			c.moved = append(c.moved, len(b)-at)
		}
		b, first = append(b, e.Text[at:end]...), labels
	}
	for i := range e.Labels() {
		name, value := e.Label(i)
		slot := c.slotOf(t, name, value)
		if slot < 0 {
			continue
		}
		begin, end := e.Span(i)
		move(i, begin)
		c.moved, first = append(c.moved, 0), i+1
		b = binary.AppendUvarint(b, uint64(slot))
		at = end
	}
	if at == 0 {
		return nil
	}
	move(e.Labels(), len(e.Text))
	c.templating = b
	return b
}

// slotted returns the target's line of a template, if it is known.
func (c *Catalog) slotted(t *Identity, template []byte, in Setting) *Line {
	return c.Lines.find(maphash.Bytes(seed, template)^slottedSalt, func(l *Line) bool {
		return l.Setting == in && l.IsSlotted() && string(*l.body) == string(template) && t.meets(l.Name.Cond)
	}).share()
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
	body := piece(b)
	if sh := c.shape(t, e, kept, true); sh != nil {
		var l *Line
		if sh.isSole() {
			l = c.mouldSole(sh, e, kept, &body, slotted)
		} else {
			l = c.mould(sh, e, kept, text{Name: sh.name, body: &body, tail: slotted})
		}
		c.Lines.insert(l, l.hash())
		return l, nil
	}
	own := text{body: &body, tail: slotted}
	exposed := c.expose(e, in)
	set := labels.NewBuilder(exposed)
	for i := range e.Labels() {
		name, value := e.Label(i)
		if slot := c.slotOf(t, name, value); slot >= 0 {
			set.Set(string(name), OfTarget.Of(ownBase+slot))
		}
	}
	final, cond, err := c.final(set.Labels(), t)
	if err != nil {
		return nil, err
	}
	own.Name = c.nameOf(exposed, final, cond)
	return c.addSeries(own, kept, final, true), nil
}
