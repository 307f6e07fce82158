// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package page

import (
	"hash/maphash"
	"strings"

	"github.com/godwit-otel/godwit/receiver/fastprometheusreceiver/internal/page/expo"
)

// A text is that of a line. On a large page the labels that say what a sample is about come again with every metric. So
// there a text is in pieces: what is before the labels, the first few of them, and the others. The same piece is there
// once, and no value of a label is in two.
type text struct{ head, body, tail *string }

const (
	// mostWhole is how many lines of a cohort have a text of their own before they are cut.
	mostWhole = 1 << 13
	// pieceLabels is how many labels the body has.
	pieceLabels = 3
)

// whole is a text in one piece.
func whole[T string | []byte](t T) text {
	s := string(t)
	return text{head: &s}
}

// match returns the length of the text if b starts with it, or 0.
func (t *text) match(b []byte) int {
	n := len(*t.head)
	if len(b) < n || string(b[:n]) != *t.head {
		return 0
	}
	if t.body == nil {
		return n
	}
	end := n + len(*t.body)
	if len(b) < end || string(b[n:end]) != *t.body {
		return 0
	}
	if n = end; t.tail == nil {
		return n
	}
	if end += len(*t.tail); len(b) < end || string(b[n:end]) != *t.tail {
		return 0
	}
	return end
}

func (t *text) is(b []byte) bool { return t.match(b) == len(b) && t.len() == len(b) }

// pieces visits what the text is made of.
func (t *text) pieces(yield func(int, *string) bool) {
	for i, p := range [...]*string{t.head, t.body, t.tail} {
		if p == nil || !yield(i, p) {
			return
		}
	}
}

func (t *text) len() (n int) {
	for _, p := range t.pieces {
		n += len(*p)
	}
	return n
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
		return *t.head
	case bodyPiece:
		return *t.body
	default:
		return *t.tail
	}
}

// find returns in which piece some text is, and where; -1 is nowhere.
func (t *text) find(s string) (piece, at int) {
	for i, p := range t.pieces {
		if at = strings.Index(*p, s); at >= 0 {
			return i, at
		}
		piece = i
	}
	return piece, at
}

func (t *text) String() string {
	if t.body == nil {
		return *t.head
	}
	var b strings.Builder
	b.Grow(t.len())
	for _, p := range t.pieces {
		b.WriteString(*p)
	}
	return b.String()
}

// hash returns what maphash.Bytes does of the text.
func (t *text) hash() uint64 {
	if t.body == nil {
		return maphash.String(seed, *t.head)
	}
	var h maphash.Hash
	h.SetSeed(seed)
	for _, p := range t.pieces {
		_, _ = h.WriteString(*p)
	}
	return h.Sum64()
}

// text keeps the text of an entry.
func (c *cohort) text(e *expo.Entry) text {
	if c.lines.count < c.job.whole {
		return whole(e.Text)
	}
	b, cuts := e.Text, c.cut(e)
	switch len(cuts) {
	case 0:
		return text{head: c.piece(b)}
	case 1:
		return text{c.piece(b[:cuts[0]]), c.piece(b[cuts[0]:]), nil}
	default:
		return text{c.piece(b[:cuts[0]]), c.piece(b[cuts[0]:cuts[1]]), c.piece(b[cuts[1]:])}
	}
}

// cut returns where a text is cut, for a moment.
func (c *cohort) cut(e *expo.Entry) []int {
	c.cuts = e.Cut(c.cuts[:0], pieceLabels)
	c.cuts = c.cuts[:min(len(c.cuts), 2)]
	return c.cuts
}

func (c *cohort) piece(b []byte) *string {
	p := c.pieces[string(b)]
	if p == nil {
		s := string(b)
		p = &s
		c.pieces[s] = p
	}
	return p
}

// keep makes the pieces of a text known.
func (c *cohort) keep(t text) {
	if t.body == nil {
		return
	}
	for _, p := range t.pieces {
		c.pieces[*p] = p
	}
}
