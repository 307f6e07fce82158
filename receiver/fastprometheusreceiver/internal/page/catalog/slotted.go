// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package catalog

import (
	"encoding/binary"
	"strings"

	"github.com/godwit-otel/godwit/receiver/fastprometheusreceiver/internal/page/expo"
)

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

// matchOwn returns the length of a text with slots if b starts with it, else 0.
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

// hasOneOf reports whether a text has one of the slots.
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

// A template is the text of an entry with slots for the values of a target's own. Its memory is used again.
type template struct {
	text  []byte
	moved []int // by how much each value is further behind in the template than in its line
}

// write returns the text of an entry with slots for the target's own values, for a moment; nil if it has none of them.
func (w *template) write(s *slots, t *Identity, e *expo.Entry) []byte {
	b, at, first := w.text[:0], 0, 0
	w.moved = w.moved[:0]
	move := func(labels, end int) { // the values before some label are in a piece that ends somewhere
		b = binary.AppendUvarint(b, uint64(end-at))
		for range labels - first {
			w.moved = append(w.moved, len(b)-at)
		}
		b, first = append(b, e.Text[at:end]...), labels
	}
	for i := range e.Labels() {
		name, value := e.Label(i)
		slot := s.of(t, name, value)
		if slot < 0 {
			continue
		}
		begin, end := e.Span(i)
		move(i, begin)
		w.moved, first = append(w.moved, 0), i+1
		b = binary.AppendUvarint(b, uint64(slot))
		at = end
	}
	if at == 0 {
		return nil
	}
	move(e.Labels(), len(e.Text))
	w.text = b
	return b
}
