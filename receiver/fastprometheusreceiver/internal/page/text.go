// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package page

import (
	"hash/maphash"
	"slices"
	"strings"

	"github.com/godwit-otel/godwit/receiver/fastprometheusreceiver/internal/page/expo"
)

// A text is that of a line. On a large page the labels that say what a sample is about come again with every metric. So
// there a text is in pieces, a few labels each, and the same piece is there once.
type text struct {
	head string
	rest *piece
}

// A piece goes on until there is no next. No value of a label is in two.
type piece struct {
	text string
	next *piece
}

const (
	// mostWhole is how many lines of a cohort have a text of their own before they are cut.
	mostWhole = 1 << 13
	// pieceLabels is how many labels a piece has.
	pieceLabels = 3
)

// match returns the length of the text if b starts with it, or 0.
func (t *text) match(b []byte) int {
	n := len(t.head)
	if len(b) < n || string(b[:n]) != t.head {
		return 0
	}
	for p := t.rest; p != nil; p = p.next {
		end := n + len(p.text)
		if len(b) < end || string(b[n:end]) != p.text {
			return 0
		}
		n = end
	}
	return n
}

func (t *text) is(b []byte) bool { return t.match(b) == len(b) && t.len() == len(b) }

func (t *text) len() int {
	n := len(t.head)
	for p := t.rest; p != nil; p = p.next {
		n += len(p.text)
	}
	return n
}

// piece returns a piece of the text; the head is number 0.
func (t *text) piece(i int) string {
	if i == 0 {
		return t.head
	}
	p := t.rest
	for ; i > 1; i-- {
		p = p.next
	}
	return p.text
}

// find returns in which piece some text is, and where; -1 is nowhere.
func (t *text) find(s string) (piece, at int) {
	if at = strings.Index(t.head, s); at >= 0 {
		return 0, at
	}
	for p := t.rest; p != nil && at < 0; p = p.next {
		piece++
		at = strings.Index(p.text, s)
	}
	return piece, at
}

func (t *text) String() string {
	if t.rest == nil {
		return t.head
	}
	var b strings.Builder
	b.Grow(t.len())
	b.WriteString(t.head)
	for p := t.rest; p != nil; p = p.next {
		b.WriteString(p.text)
	}
	return b.String()
}

// hash returns what maphash.Bytes does of the text.
func (t *text) hash() uint64 {
	if t.rest == nil {
		return maphash.String(seed, t.head)
	}
	var h maphash.Hash
	h.SetSeed(seed)
	_, _ = h.WriteString(t.head)
	for p := t.rest; p != nil; p = p.next {
		_, _ = h.WriteString(p.text)
	}
	return h.Sum64()
}

// text keeps the text of an entry.
func (c *cohort) text(e *expo.Entry) text {
	if c.lines.count < c.job.whole {
		return text{head: string(e.Text)}
	}
	c.cuts = e.Cut(c.cuts[:0], pieceLabels)
	var rest *piece
	b := e.Text
	for _, at := range slices.Backward(c.cuts) {
		rest = c.piece(b[at:], rest)
		b = b[:at]
	}
	return text{c.piece(b, nil).text, rest}
}

// piece returns a piece before another.
func (c *cohort) piece(b []byte, next *piece) *piece {
	last := c.pieces[string(b)]
	if last == nil {
		last = &piece{text: string(b)}
		c.pieces[last.text] = last
	}
	if next == nil {
		return last
	}
	return &piece{last.text, next}
}

// keep makes the pieces of a text known.
func (c *cohort) keep(t text) {
	if t.rest == nil {
		return
	}
	c.piece([]byte(t.head), nil)
	for p := t.rest; p != nil; p = p.next {
		if p.next == nil {
			c.pieces[p.text] = p
		} else if c.pieces[p.text] == nil {
			c.pieces[p.text] = &piece{text: p.text}
		}
	}
}
