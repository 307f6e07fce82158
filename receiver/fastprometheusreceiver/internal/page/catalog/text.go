// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package catalog

import (
	"hash/maphash"
	"strings"

	"github.com/prometheus/common/model"

	"github.com/godwit-otel/godwit/receiver/fastprometheusreceiver/internal/page/expo"
)

// A text is the text of a line. On a large page, the labels that identify an object are repeated for every metric. So
// texts there are divided into pieces: the part before the labels, which the name stores, the first few labels, and the
// rest. If a bound comes last, as in buckets, the first piece has all other labels, so that all buckets of a histogram
// share it; the same applies to long texts. Equal pieces are stored once, unless a sweep comes between them, and no
// value of a label is divided.
type text struct {
	Name       *Name  // of the series, or of the family of metadata
	body, tail *piece // tail is nil if the body is the whole text
}

const (
	// MostWhole is the number of lines of a cohort that have undivided texts.
	MostWhole = 1 << 13
	// pieceLabels is the number of labels in a body.
	pieceLabels = 3
	// longText is the length from which on texts are always divided, even if there are few lines.
	longText = 256
)

// bare is the body of a text that is the name alone, which the name stores.
var bare = new(piece)

// Whole returns an undivided text.
func Whole[T string | []byte](n *Name, t T) text { return text{Name: n, body: sole(n, t)} }

// sole returns the only piece of an undivided text.
func sole[T string | []byte](n *Name, t T) *piece {
	if string(t) == n.exposed {
		return bare
	}
	return newPiece(t)
}

// first returns the text of the body.
func (t *text) first() string {
	if t.body == bare {
		return t.Name.exposed
	}
	return t.body.text()
}

func (t *text) isWhole() bool { return t.tail == nil }

// isAlone reports whether the text shares only its head with others.
func (t *text) isAlone() bool { return t.tail == aloneTail || t.tail == slottedAlone }

// isShared reports whether the text may share pieces other than the head with others.
func (t *text) isShared() bool { return !t.isWhole() && !t.isAlone() && t.tail != slotted }

// Match returns the length of the text if b starts with it, or 0. own are the values for its slots.
func (t *text) Match(b []byte, own []string) int {
	if t.IsSlotted() {
		return t.matchOwn(b, own)
	}
	begin := 0
	if t.tail != nil {
		if begin = len(t.Name.head); len(b) < begin || string(b[:begin]) != t.Name.head {
			return 0
		}
	}
	first := t.first()
	end := begin + len(first)
	if len(b) < end || string(b[begin:end]) != first {
		return 0
	}
	if t.tail == nil || t.tail.isEmpty() {
		return end
	}
	begin = end
	rest := t.tail.text()
	if end += len(rest); len(b) < end || string(b[begin:end]) != rest {
		return 0
	}
	return end
}

func (t *text) Is(b []byte) bool {
	return !t.IsSlotted() && t.Match(b, nil) == len(b) && t.len() == len(b)
}

// Indices of the pieces of a text.
const (
	headPiece = iota
	bodyPiece
	tailPiece
	noPiece
)

func (t *text) piece(i int) string {
	switch i {
	case headPiece:
		return t.Name.head
	case bodyPiece:
		return t.first()
	default:
		return t.tail.text()
	}
}

// pieces yields the pieces of the text.
func (t *text) pieces(yield func(int, string) bool) {
	if t.isWhole() || t.tail == slotted {
		yield(bodyPiece, t.piece(bodyPiece))
		return
	}
	for i := range noPiece {
		if !yield(i, t.piece(i)) {
			return
		}
	}
}

func (t *text) len() (n int) {
	for _, p := range t.pieces {
		n += len(p)
	}
	return n
}

// find returns the piece that contains s and the position in it, which is -1 if none does.
func (t *text) find(s string) (piece, at int) {
	for i, p := range t.pieces {
		if at = strings.Index(p, s); at >= 0 {
			return i, at
		}
		piece = i
	}
	return piece, at
}

func (t *text) String() string {
	if t.isWhole() {
		return t.first()
	}
	return t.Name.head + t.first() + t.tail.text()
}

// hash returns the hash that maphash.Bytes has for the text, or for its template.
func (t *text) hash() uint64 {
	switch {
	case t.isWhole():
		return maphash.String(seed, t.first())
	case t.IsSlotted():
		return t.ownHash()
	default:
	}
	var h maphash.Hash
	h.SetSeed(seed)
	for _, p := range t.pieces {
		_, _ = h.WriteString(p)
	}
	return h.Sum64()
}

// pieces are the pieces of texts, each once since the last sweep.
type pieces struct {
	known table[piece, *piece]
	held  int64 // size of all pieces in bytes; an estimate
	cuts  []int // of the last text; the memory is reused
}

// text divides the text of an entry into pieces. It stays whole if its head is not that of other texts of the name.
func (ps *pieces) text(n *Name, e *expo.Entry) text {
	b, cuts := e.Text, ps.cut(e)
	if len(cuts) == 0 || !n.startsAll(b[:cuts[0]]) {
		return Whole(n, b)
	}
	end := len(b)
	if len(cuts) > 1 {
		end = cuts[1]
	}
	return text{Name: n, body: ps.piece(b[cuts[0]:end]), tail: ps.piece(b[end:])}
}

// startsAll reports whether head is that of all divided texts of the name. The first one sets it.
func (n *Name) startsAll(head []byte) bool {
	if n.head == "" {
		n.head = string(head)
	}
	return n.head == string(head)
}

// cut returns the positions at which a text is divided, valid until the next call.
func (ps *pieces) cut(e *expo.Entry) []int {
	ps.cuts = e.Cut(ps.cuts[:0], pieceLabels)
	if ps.cuts = ps.cuts[:min(len(ps.cuts), 2)]; len(ps.cuts) < 2 {
		return ps.cuts
	}
	at := e.BeforeBound()
	if at == 0 && len(e.Text) >= longText {
		at = e.BehindLabels()
	}
	ps.cuts[1] = max(ps.cuts[1], at)
	return ps.cuts
}

// place returns the piece of the text cut last that contains a position, and the position in it.
func (ps *pieces) place(at int) (piece, in int) {
	piece = bodyPiece
	if len(ps.cuts) > 1 && ps.cuts[1] <= at {
		piece = tailPiece
	}
	return piece, at - ps.cuts[piece-1]
}

// noTail is the tail of a text with few labels. aloneTail is the tail of a text whose body is its own and has all
// labels.
var noTail, aloneTail = new(piece), new(piece)

// alone returns the body and the tail of a text that shares no pieces. If it has the name's head, the body is what
// follows: the name stores the head once for all texts that come and go.
func (ps *pieces) alone(n *Name, e *expo.Entry) (body, tail *piece) {
	if cuts := ps.cut(e); len(cuts) > 0 && n.startsAll(e.Text[:cuts[0]]) {
		ps.cuts = cuts[:1]
		return newPiece(e.Text[cuts[0]:]), aloneTail
	}
	return sole(n, e.Text), nil
}

func (ps *pieces) piece(b []byte) *piece {
	if len(b) == 0 {
		return noTail
	}
	hash := maphash.Bytes(seed, b)
	p := ps.known.find(hash, func(p *piece) bool { return p.text() == string(b) })
	if p == nil {
		p = newPiece(b)
		ps.known.insert(p, hash)
		ps.held += int64(len(b)) + PieceBytes + slotBytes
	}
	return p
}

// rest forgets the pieces, which stay with their lines.
func (ps *pieces) rest() {
	ps.held -= slotBytes * int64(ps.known.count)
	ps.known = table[piece, *piece]{}
}

// sweep forgets the pieces, which stay with their lines: later lines will share little with these. stays is the part of
// the lines that remain, and so about that of the pieces.
func (ps *pieces) sweep(stays part) {
	ps.known, ps.held = table[piece, *piece]{}, stays.of(ps.held)
}

// isCutLate reports whether the body of a divided text may have more than the first few labels: all before a bound, or
// all.
func (t *text) isCutLate() bool {
	tail := t.tail.text()
	return strings.HasPrefix(tail, ","+model.BucketLabel+"=") || strings.HasPrefix(tail, ","+model.QuantileLabel+"=") || strings.IndexByte(tail, '=') < 0 && t.tail != noTail
}

// About returns the first few labels of a line, which identify its object.
func (c *Catalog) About(l *Line) string {
	if l.isShared() && !l.IsSlotted() && !l.isCutLate() {
		return strings.TrimRight(l.first(), "}")
	}
	s := l.String()
	if e, ok := c.reread.line(l, slotMarks); ok {
		b := e.Text
		if cuts := e.Cut(c.pieces.cuts[:0], pieceLabels); len(cuts) > 1 {
			b = b[cuts[0]:cuts[1]]
		} else if len(cuts) > 0 {
			b = b[cuts[0]:]
		}
		s = string(b)
	}
	return strings.TrimRight(s, "}")
}
