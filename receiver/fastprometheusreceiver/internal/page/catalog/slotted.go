// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package catalog

import (
	"encoding/binary"
	"hash/maphash"
	"strings"

	"github.com/godwit-otel/godwit/receiver/fastprometheusreceiver/internal/page/expo"
)

// slotMark begins the tail of a text with slots. No text has it, but those that no page may have.
const slotMark = 0xff

// The tails of texts with slots that are in no pieces which others may have: the body of the one is all of it, that of the other all but the head.
// A piece of a text with slots is what is between them, each part after its length, and the numbers of the slots; that of a tail after the mark.
var slotted, slottedAlone = ownTail(""), ownTail("\x00")

func ownTail(parts string) *piece {
	p := piece(string([]byte{slotMark}) + parts)
	return &p
}

// IsSlotted reports whether the text has slots.
func (t *text) IsSlotted() bool { return t.tail != nil && *t.tail != "" && (*t.tail)[0] == slotMark }

// Parts visits a text with slots: what is before each slot, and the slot, or some of what is before it, or behind the last one, and -1.
func (t *text) Parts(yield func(before string, slot int) bool) {
	if t.tail == slotted {
		yieldParts(string(*t.body), yield)
		return
	}
	if yield(t.Name.head, -1) && yieldParts(string(*t.body), yield) {
		yieldParts(string((*t.tail)[1:]), yield)
	}
}

func yieldParts(s string, yield func(before string, slot int) bool) bool {
	for i := 0; ; {
		n, at := number(s, i)
		before := s[at : at+n]
		if i = at + n; i == len(s) {
			return yield(before, -1)
		}
		slot, next := number(s, i)
		if !yield(before, slot) {
			return false
		}
		i = next
	}
}

// matchOwn returns the length of a text with slots if b starts with it, else 0.
func (t *text) matchOwn(b []byte, own []string) int {
	end := 0
	if t.tail != slotted {
		if end = len(t.Name.head); len(b) < end || string(b[:end]) != t.Name.head {
			return 0
		}
	}
	end = matchParts(string(*t.body), b, end, own)
	if t.tail == slotted || t.tail == slottedAlone || end < 0 {
		return max(end, 0)
	}
	return max(matchParts(string((*t.tail)[1:]), b, end, own), 0)
}

// matchParts returns where in b a piece of a text ends that begins somewhere, or -1.
func matchParts(s string, b []byte, end int, own []string) int {
	for i := 0; ; {
		n, at := number(s, i)
		i = at + n
		if len(b)-end < n || string(b[end:end+n]) != s[at:i] {
			return -1
		}
		if end += n; i == len(s) {
			return end
		}
		var slot int
		slot, i = number(s, i)
		if slot >= len(own) {
			return -1
		}
		v := own[slot]
		if len(v) == 0 || len(b)-end < len(v) || string(b[end:end+len(v)]) != v {
			return -1
		}
		end += len(v)
	}
}

// isOf reports whether a text is that of a template.
func (t *text) isOf(template []byte) bool {
	if !t.IsSlotted() {
		return false
	}
	var mark [1 + binary.MaxVarintLen16]byte
	for before, slot := range t.Parts {
		if len(template) < len(before) || string(template[:len(before)]) != before {
			return false
		}
		if template = template[len(before):]; slot >= 0 {
			m := appendSlot(mark[:0], slot)
			if len(template) < len(m) || string(template[:len(m)]) != string(m) {
				return false
			}
			template = template[len(m):]
		}
	}
	return len(template) == 0
}

// ownHash returns what maphash.Bytes does of the template of a text.
func (t *text) ownHash() uint64 {
	var (
		h    maphash.Hash
		mark [1 + binary.MaxVarintLen16]byte
	)
	h.SetSeed(seed)
	for before, slot := range t.Parts {
		if _, _ = h.WriteString(before); slot >= 0 {
			_, _ = h.Write(appendSlot(mark[:0], slot))
		}
	}
	return h.Sum64()
}

// contains reports whether a piece of a text has another text in it, as it may have where that is in it by chance.
func (t *text) contains(s string) bool {
	return strings.Contains(string(*t.body), s) || t.tail != nil && strings.Contains(string(*t.tail), s)
}

// hasOneOf reports whether a text has one of the slots.
func (t *text) hasOneOf(slots []bool) bool {
	for _, slot := range t.Parts {
		if slot >= 0 && slots[slot] {
			return true
		}
	}
	return false
}

// A template is the text of an entry with marks for the values of a target's own. Its memory is used again.
type template struct {
	text   []byte
	slots  []int // of the labels, or -1
	kept   []byte
	places []place // of the values, where the text is kept
	next   int     // label without a place
}

// A place is where something is in a text: in which piece, and where in that.
type place struct{ piece, at int }

func appendSlot(b []byte, slot int) []byte {
	return binary.AppendUvarint(append(b, slotMark), uint64(slot))
}

// write returns the text of an entry with marks for the target's own values, for a moment; nil if it has none of them.
func (w *template) write(s *slots, t *Identity, e *expo.Entry) []byte {
	b, at := w.text[:0], 0
	w.slots, w.places, w.next = w.slots[:0], w.places[:0], 0
	for i := range e.Labels() {
		name, value := e.Label(i)
		slot := s.of(t, name, value)
		if w.slots = append(w.slots, slot); slot < 0 {
			continue
		}
		begin, end := e.Span(i)
		b, at = appendSlot(append(b, e.Text[at:begin]...), slot), end
	}
	if at == 0 {
		return nil
	}
	b = append(b, e.Text[at:]...)
	w.text = b
	return b
}

// keep returns what is between two places of the entry's text, as it is kept in some piece, for a moment. It comes after what is before it, and
// notes where values are.
func (w *template) keep(e *expo.Entry, at, end, in int) []byte {
	if w.kept = w.kept[:0]; in == tailPiece {
		w.kept = append(w.kept, slotMark)
	}
	for {
		until, label := w.until(e, end)
		w.kept = binary.AppendUvarint(w.kept, uint64(until-at))
		moved := len(w.kept) - at
		for ; w.next < label; w.next++ {
			begin, _ := e.Span(w.next)
			w.places = append(w.places, place{in, begin + moved})
		}
		if w.kept = append(w.kept, e.Text[at:until]...); until == end {
			return w.kept
		}
		w.kept = binary.AppendUvarint(w.kept, uint64(w.slots[label]))
		_, at = e.Span(label)
		w.places, w.next = append(w.places, place{}), label+1
	}
}

// until returns where a part ends that begins before the next label: before a slot or at the end of a piece; and the label that is there.
func (w *template) until(e *expo.Entry, end int) (at, label int) {
	for label = w.next; label < len(w.slots); label++ {
		begin, _ := e.Span(label)
		if begin >= end {
			break
		}
		if w.slots[label] >= 0 {
			return begin, label
		}
	}
	return end, label
}
