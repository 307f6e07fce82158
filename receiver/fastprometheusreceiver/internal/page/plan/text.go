// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"math"

	"github.com/godwit-otel/godwit/receiver/fastprometheusreceiver/internal/page/catalog"
)

// Text is that of a plan's page, each line less what it begins with as the line before does. Lines are objects here and there in memory,
// and there are more of them than caches hold: to compare a page with their texts is to wait for memory. This is a third as long,
// and in one piece. What a line has in common with the one before is compared with the page itself, which is at hand.
//
// It is made for plans that many targets share: it takes memory, if little for each of them.
type Text struct {
	lines []lineText // one more than the plan has
	rest  []byte     // of all lines
}

// lineText is a line's part of a Text.
type lineText struct {
	from   uint32 // where its rest begins; it ends where the next one's does
	shared uint16 // bytes in common with the line before, the target's own value aside
	slotAt uint16 // where in the rest the target's own value is, or slotShared, or noSlot
	slot   uint16
	kind   TextKind
}

// TextKind says what has to be known of a line that is as expected.
type TextKind uint8

// The kinds of lines.
const (
	OtherText  TextKind = iota // the line has to be looked at
	SampleText                 // a number follows
	TypeText                   // TYPE
	SaidText                   // HELP or UNIT
)

const (
	noSlot     = math.MaxUint16
	slotShared = math.MaxUint16 - 1
	mostText   = slotShared - 1
)

// Kind returns what kind of line there is in a place.
func (t *Text) Kind(i int) TextKind { return t.lines[i].kind }

// Match returns the length of a line's text if b starts with it, or 0. The line before, in the page, is as expected. own is for slots.
func (t *Text) Match(i int, before, b []byte, own []string) int {
	l := &t.lines[i]
	rest := t.rest[l.from:t.lines[i+1].from]
	n := int(l.shared)
	if l.slotAt != noSlot {
		if int(l.slot) >= len(own) || own[l.slot] == "" {
			return 0
		}
		if l.slotAt == slotShared {
			n += len(own[l.slot])
		}
	}
	if len(before) < n || len(b) < n || string(b[:n]) != string(before[:n]) {
		return 0
	}
	if at := int(l.slotAt); at < slotShared {
		value := own[l.slot]
		end := n + at + len(value)
		if len(b) < end || string(b[n:n+at]) != string(rest[:at]) || string(b[n+at:end]) != value {
			return 0
		}
		n, rest = end, rest[at:]
	}
	end := n + len(rest)
	if len(b) < end || string(b[n:end]) != string(rest) {
		return 0
	}
	return end
}

// ManySharing is how many targets share a plan that has a text.
const ManySharing = 32

// Text returns the text of the plan's page, nil if it is not for many targets.
func (p *Plan) Text() *Text {
	if !p.isShared.Load() {
		return nil
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.text == nil {
		p.text = newText(p.Body)
	}
	return p.text
}

func newText(lines []*catalog.Line) *Text {
	t := &Text{lines: make([]lineText, 0, len(lines)+1)}
	var before, is spelled
	for _, l := range lines {
		is.spell(l)
		t.add(&before, &is, l)
		before, is = is, before
	}
	t.lines = append(t.lines, lineText{from: uint32(len(t.rest))})
	t.rest = append(make([]byte, 0, len(t.rest)), t.rest...)
	return t
}

func (t *Text) add(before, is *spelled, l *catalog.Line) {
	x := lineText{from: uint32(len(t.rest)), slotAt: noSlot, kind: OtherText}
	if !is.simple || !before.simple || len(t.rest)+len(is.text) > math.MaxUint32 {
		t.lines = append(t.lines, x) // nothing is known of it, and its kind says so
		return
	}
	n := is.shared(before)
	x.shared = uint16(n)
	if is.slotAt >= 0 {
		if x.slot, x.slotAt = uint16(is.slot), slotShared; n <= is.slotAt {
			x.slotAt = uint16(is.slotAt - n)
		}
	}
	switch l.Kind {
	case catalog.SeriesLine, catalog.DroppedLine:
		x.kind = SampleText
	case catalog.TypeLine:
		x.kind = TypeText
	case catalog.HelpLine, catalog.UnitLine:
		x.kind = SaidText
	default:
	}
	t.rest = append(t.rest, is.text[n:]...)
	t.lines = append(t.lines, x)
}

// spelled is a line's text without the target's own value, and where that is, if it has one.
type spelled struct {
	text         []byte
	slotAt, slot int
	simple       bool // it has one at most, and is not too long
}

func (s *spelled) spell(l *catalog.Line) {
	*s = spelled{text: s.text[:0], slotAt: -1, simple: true}
	if !l.IsSlotted() {
		s.text = append(s.text, l.String()...)
	} else {
		for before, slot := range l.Parts {
			s.text = append(s.text, before...)
			if slot < 0 {
				break
			}
			s.simple = s.slotAt < 0
			s.slotAt, s.slot = len(s.text), slot
		}
	}
	s.simple = s.simple && len(s.text) <= mostText
}

// shared returns how many bytes a text has in common with the one before. The value is among them if both have it in the same place
// and something behind it is shared, too.
func (s *spelled) shared(before *spelled) (n int) {
	same := s.slotAt == before.slotAt && s.slot == before.slot
	for n < min(len(s.text), len(before.text)) && s.text[n] == before.text[n] && (same || n != s.slotAt && n != before.slotAt) {
		n++
	}
	return n
}

func (p *Plan) textBytes() int64 {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.text == nil {
		return 0
	}
	return 12*int64(cap(p.text.lines)) + int64(cap(p.text.rest))
}
