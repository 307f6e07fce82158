// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package catalog

import "strings"

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
		if slot >= len(own) {
			return 0
		}
		v := own[slot]
		if len(v) == 0 || len(b)-end < len(v) || string(b[end:end+len(v)]) != v {
			return 0
		}
		end += len(v)
	}
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
