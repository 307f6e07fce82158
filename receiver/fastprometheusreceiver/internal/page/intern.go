// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package page

import (
	"encoding/binary"
	"hash/maphash"
	"strconv"
	"strings"

	"github.com/prometheus/prometheus/model/labels"
)

// intern returns the point of a family that has the given labels but those to skip. Most of their values are in the text.
func (c *cohort) intern(f *family, l *line, set labels.Labels, skip func(name string) bool) *point {
	var (
		all  [16]labels.Label
		kept = all[:0]
	)
	set.Range(func(l labels.Label) {
		if l.Value != "" && !skip(l.Name) {
			kept = append(kept, l)
		}
	})
	return c.internPoint(&point{family: f, form: c.pack(c.keysOf(kept), &l.text, kept), line: l})
}

// internPoint returns the point that is like one, if it is known, or else the one.
func (c *cohort) internPoint(p *point) *point {
	had := c.points.count
	p = c.points.intern(p, p.equals)
	c.size += pointBytes * int64(c.points.count-had)
	return p
}

// keysOf returns the keys of labels that become attributes.
func (c *cohort) keysOf(kept []labels.Label) *keys {
	key := c.packing[:0]
	for _, l := range kept {
		key = append(append(strconv.AppendInt(key, int64(marked(l.Value)), 10), l.Name...), 0xff)
	}
	c.packing = key
	ks := c.keySets[string(key)]
	if ks == nil {
		c.lastID++
		ks = &keys{id: c.lastID, names: make([]string, len(kept)), from: make([]int16, len(kept))}
		for i, l := range kept {
			ks.names[i], ks.from[i] = c.attribute(l.Name), int16(marked(l.Value))
			ks.marked = ks.marked || ks.from[i] >= 0
		}
		c.keySets[string(key)] = ks
		c.size += ks.bytes(len(key))
		c.contest(ks)
	}
	return ks
}

// contest notes whether there are keys with the same names that have a line's own value where these have the target's. Values of
// pages do not count: a line that has one always has its slot.
func (c *cohort) contest(k *keys) {
	all := strings.Join(k.names, "\xff")
	for _, other := range c.named[all] {
		for i, from := range k.from {
			if other.from[i] != from && min(from, other.from[i]) < ownBase && (from >= 0 && from < ownBase || other.from[i] >= 0 && other.from[i] < ownBase) {
				k.contested, other.contested = true, true
			}
		}
	}
	c.named[all] = append(c.named[all], k)
}

// attribute keeps the name of an attribute, the same for all keys: then it takes less to see that two are the same.
func (c *cohort) attribute(name string) string {
	kept, ok := c.attributes[name]
	if !ok {
		kept = strings.Clone(name)
		c.attributes[kept] = kept
		c.size += attributeBytes + int64(len(kept))
	}
	return kept
}

// equals tells whether two points are the same.
func (p *point) equals(q *point) bool {
	if p.family != q.family || p.form.keys != q.form.keys {
		return false
	}
	var v, w span
	for i, j := 0, 0; i < len(p.form.values); {
		v, i = unpack(p.form.values, i)
		if w, j = unpack(q.form.values, j); p.text(v) != q.text(w) {
			return false
		}
	}
	return true
}

// hash is one of all that makes the point what it is.
func (p *point) hash() uint64 {
	h := (uint64(p.family.id)<<32 | uint64(p.form.keys.id)) * 0x9e3779b97f4a7c15
	var v span
	for i := 0; i < len(p.form.values); {
		v, i = unpack(p.form.values, i)
		h = (h ^ maphash.String(seed, p.text(v))) * 0x9e3779b97f4a7c15
		h ^= h >> 29
	}
	return h
}

// mostForms bounds how many forms are shared. Those of a large page's points are much the same, being lengths.
const mostForms = 1 << 14

// mostSearched is for how many values a text is searched. Further ones, of which only hostile lines have some, are kept beside
// it: a search takes as long as the text is.
const mostSearched = 64

// pack writes down the values of labels that are not the target's to fill in: their lengths, doubled, and which piece of the
// text they are in, and where, or, the length being odd, themselves.
func (c *cohort) pack(k *keys, t *text, ls []labels.Label) *form {
	b := k.start(c.packing[:0])
	begin := len(b)
	left := mostSearched
	for _, l := range ls {
		if marked(l.Value) >= 0 {
			continue
		}
		n := uint64(len(l.Value)) << 1
		piece, at := noPiece, -1
		if left > 0 {
			piece, at = t.find(l.Value)
			left--
		}
		if at >= 0 {
			b = binary.AppendUvarint(binary.AppendUvarint(binary.AppendUvarint(b, n), uint64(piece)), uint64(at))
		} else {
			b = append(binary.AppendUvarint(b, n|1), l.Value...)
		}
	}
	c.packing = b
	return c.form(k, b, begin)
}

// start begins what a form is known by.
func (k *keys) start(b []byte) []byte { return binary.AppendUvarint(b, uint64(k.id)) }

// form returns the form with these keys and the values that are packed in b from begin on.
func (c *cohort) form(k *keys, b []byte, begin int) *form {
	f := c.forms[string(b)]
	if f == nil {
		all := string(b)
		if f = (&form{k, all[begin:]}); len(c.forms) < mostForms {
			c.forms[all] = f
			c.written += formSlotBytes
		}
		c.written += formBytes + int64(len(all))
	}
	return f
}

// A span is where a value is: in a piece of a line's text or, in noPiece, among the packed values.
type span struct{ piece, at, size int }

// text returns a value of the point.
func (p *point) text(s span) string {
	if s.piece == noPiece {
		return p.form.values[s.at : s.at+s.size]
	}
	return p.line.piece(s.piece)[s.at : s.at+s.size]
}

// unpack returns where the value is that is packed at i, and where the next one is packed.
func unpack(values string, i int) (s span, next int) {
	if len(values)-i > 2 && values[i]&1 == 0 && values[i]|values[i+1]|values[i+2] < 0x80 { // fast path: nearly all are short
		return span{int(values[i+1]), int(values[i+2]), int(values[i] >> 1)}, i + 3
	}
	n, i := number(values, i)
	size := n >> 1
	if n&1 == 1 {
		return span{noPiece, i, size}, i + size
	}
	piece, i := number(values, i)
	at, i := number(values, i)
	return span{piece, at, size}, i
}

// number reads a varint.
func number(s string, i int) (n, next int) {
	for shift := 0; ; shift += 7 {
		b := s[i]
		n |= int(b&0x7f) << shift
		if i++; b < 0x80 {
			return n, i
		}
	}
}
