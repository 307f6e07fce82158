// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package catalog

// Programs put on every line who they are: a pod, an instance of an application. Such a value is the target's own, as
// its labels are, although the page has it: lines have a slot in its place and are the same for all targets. Other
// programs report about a few things that no other target has, each on many lines: the pods of a node, and their
// containers. Then a label has several slots, one for each of its values, in the order of the page: so pages about
// other pods have the same lines. A target never has the same value in two slots of a label, and a line with a value of
// the target's own always has its slot.

const (
	// ownBase is the number of the first own value that comes from a page, after those from discovery and from rules.
	ownBase = MostVariables
	// MostOwn limits the slots.
	MostOwn = 512
	// LongestOwn limits the length of a value, since each target stores its own.
	LongestOwn = 256
)

// slots are the slots of a cohort's lines.
type slots struct {
	byLabel map[string][]int
	labels  []string // label names by slot
	index   slotIndex
	held    int64 // bytes of the targets' values in slots
}

// of returns the target's slot for a value, or -1.
func (s *slots) of(t *Identity, name, value []byte) int {
	all := s.byLabel[string(name)]
	if len(all) == 0 || len(value) == 0 {
		return -1
	}
	if len(all) > fewSlots {
		return s.index.slot(s, t.Own, name, value)
	}
	for _, slot := range all {
		if slot < len(t.Own) && t.Own[slot] == string(value) {
			return slot
		}
	}
	return -1
}

// fewSlots is the number of a label's slots that are searched one by one. More are found by an index, built for the
// target that was asked for last, since a page asks many times.
const fewSlots = 4

// slotIndex finds slots by their labels and values.
type slotIndex struct {
	own   []string // the target's values it was built for, which are never modified
	slots map[labelPair]int
}

func (x *slotIndex) slot(s *slots, own []string, name, value []byte) int {
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
				x.slots[labelPair{s.labels[slot], v}] = slot
			}
		}
	}
	if slot, ok := x.slots[labelPair{string(name), string(value)}]; ok {
		return slot
	}
	return -1
}

// nth returns the n-th slot of a label, or -1 if there are too many.
func (s *slots) nth(name string, n int) int {
	all := s.byLabel[name]
	if n < len(all) {
		return all[n]
	}
	if len(s.labels) == MostOwn {
		return -1
	}
	slot := len(s.labels)
	s.labels = append(s.labels, name)
	s.byLabel[name] = append(all, slot)
	return slot
}

// ownBytes is what a value takes besides its text.
const ownBytes = 24

// Count counts what the target's own values take, in place of the last count.
func (s *slots) Count(t *Identity) {
	n := int64(0)
	for _, v := range t.Own {
		n += ownBytes + int64(len(v))
	}
	s.held += n - t.ownCounted
	t.ownCounted = n
}

// Discount removes them from the count, when the target leaves.
func (s *slots) Discount(t *Identity) { s.held, t.ownCounted = s.held-t.ownCounted, 0 }

// AreApart reports whether two slots are of different labels, so that they may have the same value.
func (s *slots) AreApart(a, b int) bool { return s.labels[a] != s.labels[b] }

// HasSeveral reports whether the target has values in several slots of a label.
func (s *slots) HasSeveral(t *Identity) bool {
	for slot, value := range t.Own {
		if value != "" && s.byLabel[s.labels[slot]][0] != slot {
			return true
		}
	}
	return false
}

// slotMarks stand for the values in slots.
var slotMarks = func() (marks []string) {
	for slot := range MostOwn {
		marks = append(marks, OfTarget.Of(ownBase+slot))
	}
	return marks
}()
