// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"bytes"
	"encoding/binary"
	"math"
	"unsafe"

	"github.com/godwit-otel/godwit/receiver/fastprometheusreceiver/internal/page/catalog"
)

// A Text is the text of a plan's page, where each line lacks what it has in common with the start of the line before.
// Lines are objects spread over the memory, and there are more than the CPU's caches hold: comparing a page with them
// means waiting for memory. A Text is a third as long, and in one piece. What a line has in common with the line before
// is compared with the page itself, which is in the cache.
//
// A line about one of several things of the target's own, such as a pod, usually has the same labels as an earlier
// line, because the metric before was about the same pod. The labels of such a line are compared as a whole with the
// earlier line on the page; only the first line about a pod is compared with the line itself.
//
// Texts are made for plans that many targets share: they take memory, but little for each target.
type Text struct {
	lines []lineText // and a last one, for its end
	rest  []byte     // of all lines, one after the other
}

// lineText is a line's part of a Text.
type lineText struct {
	from   uint32 // where its rest begins; it ends where the next one begins
	shared uint16 // bytes in common with the line before, without the target's own value
	slotAt uint16 // offset of the target's own value in the rest, or slotShared, or noSlot
	slot   uint16
	kind   TextKind
	like   int32  // the earlier line with the same labels, or -1. If set, the fields below are used instead of slotAt
	head   uint16 // bytes of the rest before the labels
	begin  uint16 // offset of the labels in the earlier line
	less   uint16 // bytes after the labels in the earlier line
}

// A TextKind is what must be known about an expected line.
type TextKind uint8

// The kinds of lines.
const (
	OtherText  TextKind = iota // the line itself must be looked at
	SampleText                 // a number follows
	TypeText                   // TYPE
	SaidText                   // HELP or UNIT
)

// lineTextBytes is what a line takes besides its rest.
const lineTextBytes = int64(unsafe.Sizeof(lineText{}))

const (
	noSlot     = math.MaxUint16
	slotShared = math.MaxUint16 - 1
	mostText   = slotShared - 1
)

// Kind returns the kind of line i.
func (t *Text) Kind(i int) TextKind { return t.lines[i].kind }

// Like returns the earlier line whose text has the same labels, or -1.
func (t *Text) Like(i int) int { return int(t.lines[i].like) }

// Match returns the length of a line's text if b starts with it, else 0. before is the line before on the page, which
// matched; like is the line with the same labels, if there is one, which matched, too. own has the values for slots.
func (t *Text) Match(i int, before, like, b []byte, own []string) int {
	l := &t.lines[i]
	rest := t.rest[l.from:t.lines[i+1].from]
	n := int(l.shared)
	if l.like >= 0 {
		head, end := int(l.head), len(like)-int(l.less)
		if end < int(l.begin) || len(before) < n || len(b) < n+head || string(b[:n]) != string(before[:n]) || string(b[n:n+head]) != string(rest[:head]) {
			return 0
		}
		n, like, rest = n+head, like[l.begin:end], rest[head:]
		if len(b) < n+len(like) || string(b[n:n+len(like)]) != string(like) {
			return 0
		}
		return endOf(b, n+len(like), rest)
	}
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
	return endOf(b, n, rest)
}

// endOf returns the offset at which rest ends if it starts at n, 0 if it does not.
func endOf(b []byte, n int, rest []byte) int {
	end := n + len(rest)
	if len(b) < end || string(b[n:end]) != string(rest) {
		return 0
	}
	return end
}

// ManySharing is the number of targets from which on a shared plan has a text.
const ManySharing = 32

// Text returns the text of the plan's page, nil if the plan has too few targets.
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
	m := maker{Text: t, like: map[string]labelled{}}
	var before, is spelled
	for _, l := range lines {
		is.spell(l)
		m.add(&before, &is, l)
		before, is = is, before
	}
	t.lines = append(t.lines, lineText{from: uint32(len(t.rest)), like: -1})
	t.rest = append(make([]byte, 0, len(t.rest)), t.rest...)
	return t
}

// A maker makes a text.
type maker struct {
	*Text

	like map[string]labelled // by their labels, with slots
}

// labelled is a line with several slots.
type labelled struct {
	line  int
	begin int    // offset of its labels
	tail  string // what follows the last slot
}

func (t *maker) add(before, is *spelled, l *catalog.Line) {
	x := lineText{from: uint32(len(t.rest)), slotAt: noSlot, kind: OtherText, like: -1}
	if is.isLong || before.isLong || len(t.rest)+len(is.text) > math.MaxUint32 {
		t.lines = append(t.lines, x) // nothing else is known about it, as its kind says
		return
	}
	n := is.shared(before)
	x.shared = uint16(n)
	text := is.text[n:]
	switch {
	case is.slots > 1:
		var isLike bool
		if text, isLike = t.likeOther(&x, is, n); !isLike {
			t.lines = append(t.lines, x)
			return
		}
	case is.slots == 1:
		if x.slot, x.slotAt = uint16(is.slot), slotShared; n <= is.slotAt {
			x.slotAt = uint16(is.slotAt - n)
		}
	default:
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
	t.rest = append(t.rest, text...)
	t.lines = append(t.lines, x)
}

// likeOther finds an earlier line with the same labels as a line with several slots that has shared bytes in common
// with the line before it. It returns what is the line's own.
func (t *maker) likeOther(x *lineText, is *spelled, shared int) (text []byte, found bool) {
	if is.labelsAt < 0 {
		return nil, false
	}
	labels, tail := string(is.labels), string(is.text[is.lastAt:])
	other, found := t.like[labels]
	t.like[labels] = labelled{len(t.lines), is.labelsAt, tail}
	if !found {
		return nil, false
	}
	same := 0
	for same < min(len(tail), len(other.tail)) && tail[same] == other.tail[same] {
		same++
	}
	begin := other.begin + max(shared-is.labelsAt, 0)
	if begin > math.MaxUint16 || len(other.tail)-same > math.MaxUint16 || other.line > math.MaxInt32 {
		return nil, false
	}
	head := is.text[shared:max(shared, is.labelsAt)]
	x.like, x.head, x.begin, x.less = int32(other.line), uint16(len(head)), uint16(begin), uint16(len(other.tail)-same)
	return append(append([]byte(nil), head...), tail[same:]...), true
}

// spelled is a line's text without the target's own values, and where these are, if it has any.
type spelled struct {
	text         []byte
	slots        int
	slotAt, slot int    // the first slot
	lastAt       int    // offset of the last slot
	labelsAt     int    // offset of the labels if they come before all slots; else -1
	labels       []byte // from there to the last slot, with marks for slots
	isLong       bool
}

func (s *spelled) spell(l *catalog.Line) {
	*s = spelled{text: s.text[:0], labels: s.labels[:0], slotAt: -1, labelsAt: -1}
	if !l.IsSlotted() {
		s.text = append(s.text, l.String()...)
	} else {
		for before, slot := range l.Parts {
			if s.text = append(s.text, before...); slot < 0 {
				continue
			}
			begin := s.lastAt
			if s.slots++; s.slots == 1 {
				s.slotAt, s.slot = len(s.text), slot
				s.labelsAt = bytes.IndexByte(s.text, '{')
				begin = max(s.labelsAt, 0)
			}
			s.lastAt = len(s.text)
			const mark = 0xff // a byte that no text has
			s.labels = binary.AppendUvarint(append(append(s.labels, s.text[begin:]...), mark), uint64(slot))
		}
	}
	s.isLong = len(s.text) > mostText
}

// shared returns how many bytes a text has in common with the one before. This includes the value if both have it at
// the same place and something after it is shared, too.
func (s *spelled) shared(before *spelled) (n int) {
	same := s.slots <= 1 && before.slots <= 1 && s.slotAt == before.slotAt && s.slot == before.slot
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
	return lineTextBytes*int64(cap(p.text.lines)) + int64(cap(p.text.rest))
}
