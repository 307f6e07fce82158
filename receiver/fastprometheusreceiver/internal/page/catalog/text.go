// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package catalog

import (
	"hash/maphash"
	"strings"

	"github.com/prometheus/common/model"

	"github.com/godwit-otel/godwit/receiver/fastprometheusreceiver/internal/page/expo"
)

// A text is that of a line. On a large page the labels that say what a sample is about come again with every metric. So
// there a text is in pieces: what is before the labels, which the name has, the first few of them, and the others. Where a bound comes last,
// as in buckets, the first are all but that, so that those of a histogram have one piece; so are those of a long text. Texts
// that come between two sweeps have the same piece once, and no value of a label is in two.
type text struct {
	Name       *Name  // of the series, or the family that metadata is about
	body, tail *piece // there is no tail when the body is the whole text
}

type piece string

// PieceBytes is what a piece takes besides what is in it.
const PieceBytes = 16

func (p *piece) hash() uint64 { return maphash.String(seed, string(*p)) }

const (
	// MostWhole is how many lines of a cohort have a text of their own before they are cut.
	MostWhole = 1 << 13
	// pieceLabels is how many labels the body has.
	pieceLabels = 3
	// longText is from what length on a text is in pieces also before there are many lines.
	longText = 256
)

// Whole is a text in one piece. That of a series without labels is its name.
func Whole[T string | []byte](n *Name, t T) text {
	p := sole(n, t)
	return text{Name: n, body: &p}
}

// sole is the one piece of a text.
func sole[T string | []byte](n *Name, t T) piece {
	if string(t) == n.exposed {
		return piece(n.exposed)
	}
	return piece(t)
}

func (t *text) isWhole() bool { return t.tail == nil }

// isAlone reports whether no other text has a part of it but for the head.
func (t *text) isAlone() bool { return t.tail == aloneTail || t.tail == slottedAlone }

// isShared reports whether other texts may have the parts of it that are behind the head.
func (t *text) isShared() bool { return !t.isWhole() && !t.isAlone() && t.tail != slotted }

// Match returns the length of the text if b starts with it, or 0. own is for its slots.
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
	end := begin + len(*t.body)
	if len(b) < end || string(b[begin:end]) != string(*t.body) {
		return 0
	}
	if t.tail == nil || *t.tail == "" {
		return end
	}
	begin = end
	if end += len(*t.tail); len(b) < end || string(b[begin:end]) != string(*t.tail) {
		return 0
	}
	return end
}

func (t *text) Is(b []byte) bool {
	return !t.IsSlotted() && t.Match(b, nil) == len(b) && t.len() == len(b)
}

// The numbers of pieces.
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
		return string(*t.body)
	default:
		return string(*t.tail)
	}
}

// pieces visits what the text is made of.
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

// find returns in which piece some text is, and where; -1 is nowhere.
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
		return string(*t.body)
	}
	return t.Name.head + string(*t.body) + string(*t.tail)
}

// hash returns what maphash.Bytes does of the text, or of its template.
func (t *text) hash() uint64 {
	switch {
	case t.isWhole():
		return t.body.hash()
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

// pieces are those of texts, each once since the last sweep.
type pieces struct {
	known table[piece, *piece]
	held  int64 // bytes of those that are there, about
	cuts  []int // of the last text, used again
}

// text keeps the text of an entry in pieces, or whole where its head is not that of other texts about the name.
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

// startsAll reports whether a head is that of all texts about the name which are in pieces. The first makes it so.
func (n *Name) startsAll(head []byte) bool {
	if n.head == "" {
		n.head = string(head)
	}
	return n.head == string(head)
}

// cut returns where a text is cut, for a moment.
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

// place returns in which piece of the text that was cut last something is, and where.
func (ps *pieces) place(at int) (piece, in int) {
	piece = bodyPiece
	if len(ps.cuts) > 1 && ps.cuts[1] <= at {
		piece = tailPiece
	}
	return piece, at - ps.cuts[piece-1]
}

// noTail is that of a text with few labels, and aloneTail that of one whose body has all labels, and is its own.
var noTail, aloneTail = new(piece), new(piece)

// alone returns the body of a text of which no other has a part, and the tail: all that is behind the head where there is one, which the name
// has once for all that come and go.
func (ps *pieces) alone(n *Name, e *expo.Entry) (body piece, tail *piece) {
	if cuts := ps.cut(e); len(cuts) > 0 && n.startsAll(e.Text[:cuts[0]]) {
		ps.cuts = cuts[:1]
		return piece(e.Text[cuts[0]:]), aloneTail
	}
	return sole(n, e.Text), nil
}

func (ps *pieces) piece(b []byte) *piece {
	if len(b) == 0 {
		return noTail
	}
	hash := maphash.Bytes(seed, b)
	p := ps.known.find(hash, func(p *piece) bool { return string(*p) == string(b) })
	if p == nil {
		kept := piece(b)
		p = &kept
		ps.known.insert(p, hash)
		ps.held += int64(len(b)) + PieceBytes + slotBytes
	}
	return p
}

// rest leaves the pieces to their lines.
func (ps *pieces) rest() {
	ps.held -= slotBytes * int64(ps.known.count)
	ps.known = table[piece, *piece]{}
}

// sweep leaves the pieces to their lines: those to come have little to share with these. About as much of them stays as of lines.
func (ps *pieces) sweep(stays part) {
	ps.known, ps.held = table[piece, *piece]{}, stays.of(ps.held)
}

// isCutLate reports whether a text in pieces may have been cut behind more labels than the first few: before a bound, or behind all.
func (t *text) isCutLate() bool {
	tail := string(*t.tail)
	return strings.HasPrefix(tail, ","+model.BucketLabel+"=") || strings.HasPrefix(tail, ","+model.QuantileLabel+"=") || strings.IndexByte(tail, '=') < 0 && t.tail != noTail
}

// About returns the labels that tell what a line is about: the first few.
func (c *Catalog) About(l *Line) string {
	if l.isShared() && !l.IsSlotted() && !l.isCutLate() {
		return strings.TrimRight(string(*l.body), "}")
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
