// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package catalog

import "slices"

// A SlotUse describes how the lines of a page use slots: which lines have which, and which values they spell out for
// labels that have slots.
type SlotUse struct {
	names   []string            // of labels, by slot
	lines   [][]int32           // numbers by slot
	spelled map[labelPair]bool  // values that are spelled out
	labels  map[string]struct{} // that have slots
}

// UseOf finds out how lines use slots. It returns nil if that cannot be told.
func (o *OwnValues) UseOf(lines []*Line) *SlotUse {
	u := &SlotUse{names: o.labels, lines: make([][]int32, len(o.labels)), spelled: map[labelPair]bool{}, labels: map[string]struct{}{}}
	for i, l := range lines {
		if !l.IsSlotted() {
			continue
		}
		for _, slot := range l.Parts {
			if slot < 0 {
				continue
			}
			if of := u.lines[slot]; len(of) == 0 || of[len(of)-1] != int32(i) {
				u.lines[slot] = append(of, int32(i))
			}
			u.labels[u.names[slot]] = struct{}{}
		}
	}
	for _, l := range lines {
		if l.Kind != SeriesLine && l.Kind != DroppedLine {
			continue
		}
		e, ok := o.catalog.reread.line(l, slotMarks)
		if !ok {
			return nil
		}
		for i := range e.Labels() {
			name, value := e.Label(i)
			if _, has := u.labels[string(name)]; has && len(value) > 0 && marked(string(value)) < 0 {
				u.spelled[labelPair{string(name), string(value)}] = true
			}
		}
	}
	return u
}

// First returns the first line with a slot, or -1.
func (u *SlotUse) First(slot int) int {
	if slot >= len(u.lines) || len(u.lines[slot]) == 0 {
		return -1
	}
	return int(u.lines[slot][0])
}

// Lines returns the lines with a slot, in order.
func (u *SlotUse) Lines(slot int) []int32 { return u.lines[slot] }

// IsTaken reports whether a line has a value for the label of a slot in another way: spelled out, or in another slot.
func (u *SlotUse) IsTaken(slot int, value []byte, own []string) bool {
	name := u.names[slot]
	if u.spelled[labelPair{name, string(value)}] {
		return true
	}
	for other, v := range own {
		if other != slot && v == string(value) && (other >= len(u.names) || u.names[other] == name) {
			return true
		}
	}
	return false
}

// Bytes estimates what it takes.
func (u *SlotUse) Bytes() (n int64) {
	if u == nil {
		return 0
	}
	for _, lines := range u.lines {
		n += 24 + 4*int64(cap(lines))
	}
	for pair := range u.spelled {
		n += 64 + int64(len(pair.name)+len(pair.value))
	}
	return n
}

// HasOneOf reports whether the text has one of the slots.
func (t *text) HasOneOf(slots []int) bool {
	if !t.IsSlotted() {
		return false
	}
	for _, slot := range t.Parts {
		if slices.Contains(slots, slot) {
			return true
		}
	}
	return false
}

// HasOneOf reports whether the target has the value of one of the point's attributes in one of the slots.
func (p *Point) HasOneOf(slots []int) bool {
	return slices.ContainsFunc(p.Form.Keys.From, func(from int16) bool { return slices.Contains(slots, int(from)-ownBase) })
}
