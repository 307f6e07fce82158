// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package catalog

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
)

// slots are those that the lines of a cohort have.
type slots struct {
	byLabel map[string][]int
	labels  []string // their names, by slot
	index   slotIndex
	held    int64 // bytes of the values that targets have in slots
}

// of returns the slot of the target's that a value has, or -1.
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

// fewSlots is how many slots of a label are looked through. More are found by an index, which is of the target that was last asked for:
// one page asks for many.
const fewSlots = 4

// slotIndex finds slots by their labels and values.
type slotIndex struct {
	own   []string // whose it is: values are never written to once a target has them
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

// nth returns a slot of a label, the first or one after it, or -1 if there are too many.
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

// Count adds up what the target's own values take, since they were last counted.
func (s *slots) Count(t *Identity) {
	n := int64(0)
	for _, v := range t.Own {
		n += ownBytes + int64(len(v))
	}
	s.held += n - t.ownCounted
	t.ownCounted = n
}

// Discount counts them no more: the target is leaving.
func (s *slots) Discount(t *Identity) { s.held, t.ownCounted = s.held-t.ownCounted, 0 }

// AreApart tells whether two slots are of different labels, so that they may have the same value.
func (s *slots) AreApart(a, b int) bool { return s.labels[a] != s.labels[b] }

// HasSeveral tells whether the target has values in several slots of a label.
func (s *slots) HasSeveral(t *Identity) bool {
	for slot, value := range t.Own {
		if value != "" && s.byLabel[s.labels[slot]][0] != slot {
			return true
		}
	}
	return false
}

// slotMarks are what stands for the values in slots.
var slotMarks = func() (marks []string) {
	for slot := range MostOwn {
		marks = append(marks, OfTarget.Of(ownBase+slot))
	}
	return marks
}()
