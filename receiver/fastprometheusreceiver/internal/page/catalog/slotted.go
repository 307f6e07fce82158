// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package catalog

import (
	"encoding/binary"
	"hash/maphash"
	"strings"

	"github.com/godwit-otel/godwit/receiver/fastprometheusreceiver/internal/page/expo"
)

// slotMark is the first byte of the tail of a text with slots. It is not valid UTF-8, so no other tail of a valid page
// begins with it.
const slotMark = 0xff

// slotted and slottedAlone are the tails of texts with slots that share no pieces: with slotted, the body is the whole
// text, with slottedAlone all but the head. A piece of a text with slots consists of the parts between them, each
// preceded by its length, and the numbers of the slots. In a tail, this follows the mark.
var slotted, slottedAlone = ownTail(""), ownTail("\x00")

func ownTail(parts string) *piece {
	return newPiece(string([]byte{slotMark}) + parts)
}

// IsSlotted reports whether the text has slots.
func (t *text) IsSlotted() bool {
	return t.tail != nil && !t.tail.isEmpty() && t.tail.text()[0] == slotMark
}

// Parts yields a text with slots part by part: the text before each slot with the slot, or with -1 a part that no slot
// follows.
func (t *text) Parts(yield func(before string, slot int) bool) {
	if t.tail == slotted {
		yieldParts(t.first(), yield)
		return
	}
	if yield(t.Name.head, -1) && yieldParts(t.first(), yield) {
		yieldParts(t.tail.text()[1:], yield)
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
	end = matchParts(t.first(), b, end, own)
	if t.tail == slotted || t.tail == slottedAlone || end < 0 {
		return max(end, 0)
	}
	return max(matchParts(t.tail.text()[1:], b, end, own), 0)
}

// matchParts returns where in b a piece ends that begins at end, or -1.
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

// isOf reports whether a template is that of the text.
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

// ownHash returns the hash that maphash.Bytes has for the template of the text.
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

// contains reports whether a piece of the text contains another text, possibly by chance.
func (t *text) contains(s string) bool {
	return strings.Contains(t.first(), s) || t.tail != nil && strings.Contains(t.tail.text(), s)
}

// hasOneOf reports whether the text has one of the slots.
func (t *text) hasOneOf(slots []bool) bool {
	for _, slot := range t.Parts {
		if slot >= 0 && slots[slot] {
			return true
		}
	}
	return false
}

// A template is the text of an entry with marks in place of the target's own values. Its memory is reused.
type template struct {
	text   []byte
	slots  []int // by label, -1 for none
	kept   []byte
	places []place // of the values in the kept text
	next   int     // the first label without a place
}

// A place is the index of a piece of a text, and the position in it.
type place struct{ piece, at int }

func appendSlot(b []byte, slot int) []byte {
	return binary.AppendUvarint(append(b, slotMark), uint64(slot))
}

// write returns the text of an entry with marks in place of the target's own values, nil if it contains none. The
// result is valid until the next call.
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

// keep returns a range of the entry's text in the form that a piece stores, and records the places of values in it.
// Ranges must be kept in order. The result is valid until the next call.
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

// until returns the end of the part before the next slot, or before the end of a piece, and the index of the label
// there.
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
