// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package catalog

import (
	"encoding/binary"
	"hash/maphash"
	"strconv"
	"strings"

	"github.com/prometheus/prometheus/model/labels"
)

// points are the data points, each once, and what many of them have in common: the names of their attributes, and where
// the values are in the texts of lines.
type points struct {
	known      table[Point, *Point]
	keys       map[string]*keys
	named      map[string][]*keys // by their names
	attributes map[string]string  // names of attributes
	lastID     uint32             // of the last keys
	held       int64              // in bytes; an estimate

	forms       map[string]*form // those since the last sweep
	heldByForms int64            // bytes of the points in use

	packing []byte // memory for later calls
}

func newPoints() points {
	return points{keys: map[string]*keys{}, named: map[string][]*keys{}, attributes: map[string]string{}, forms: map[string]*form{}}
}

// of returns the point of a family for the given labels without those to skip. Most of their values are in the text.
func (ps *points) of(f *Family, l *Line, set labels.Labels, skip func(name string) bool) *Point {
	var (
		all  [16]labels.Label
		kept = all[:0]
	)
	set.Range(func(l labels.Label) {
		if l.Value != "" && !skip(l.Name) {
			kept = append(kept, l)
		}
	})
	return ps.intern(&Point{Family: f, Form: ps.pack(ps.keysOf(kept), &l.text, kept), Line: l})
}

// intern returns the known point that equals p, or adds p.
func (ps *points) intern(p *Point) *Point {
	had := ps.known.intern(p, p.equals)
	if had == p {
		ps.held += PointBytes
	} else {
		had.bits &^= soleBit // it belongs to another line, too
	}
	return had
}

// keysOf returns the keys of the labels that become attributes.
func (ps *points) keysOf(kept []labels.Label) *keys {
	key := ps.packing[:0]
	for _, l := range kept {
		key = append(append(strconv.AppendInt(key, int64(marked(l.Value)), 10), l.Name...), 0xff)
	}
	ps.packing = key
	ks := ps.keys[string(key)]
	if ks == nil {
		ps.lastID++
		ks = &keys{id: ps.lastID, Names: make([]string, len(kept)), From: make([]int16, len(kept))}
		for i, l := range kept {
			ks.Names[i], ks.From[i] = ps.attribute(l.Name), int16(marked(l.Value))
			ks.Marked = ks.Marked || ks.From[i] >= 0
		}
		ps.keys[string(key)] = ks
		ps.held += ks.bytes(len(key))
		ps.contest(ks)
	}
	return ks
}

// contest records whether there are keys with the same names of which one takes a value from the line where another
// takes the target's. Own values of pages do not count: a line that has one always has its slot.
func (ps *points) contest(k *keys) {
	all := strings.Join(k.Names, "\xff")
	for _, other := range ps.named[all] {
		for i, from := range k.From {
			if other.From[i] != from && min(from, other.From[i]) < ownBase && (from >= 0 && from < ownBase || other.From[i] >= 0 && other.From[i] < ownBase) {
				k.Contested, other.Contested = true, true
			}
		}
	}
	ps.named[all] = append(ps.named[all], k)
}

// attribute returns one copy of an attribute's name for all keys, which makes comparisons cheaper.
func (ps *points) attribute(name string) string {
	kept, ok := ps.attributes[name]
	if !ok {
		kept = strings.Clone(name)
		ps.attributes[kept] = kept
		ps.held += attributeBytes + int64(len(kept))
	}
	return kept
}

// remove forgets a point, if it is known.
func (ps *points) remove(p *Point) {
	if ps.known.remove(p) {
		ps.held -= PointBytes
	}
}

// sweep forgets what has no mark. Points share forms if they come at the same time; later ones have little in common
// with them. So the forms are left to their points, and about the same part of them is assumed to stay as of lines.
func (ps *points) sweep(mark uint32, stays part) {
	ps.known.retain(func(p *Point) bool { return p.Epoch == mark })
	ps.held = PointBytes * int64(ps.known.count)
	ps.forms, ps.heldByForms = map[string]*form{}, stays.of(ps.heldByForms)
	ps.keys = kept(ps.keys, func(k *keys) bool { return k.epoch == mark })
	ps.named, ps.attributes = map[string][]*keys{}, map[string]string{}
	for key, k := range ps.keys {
		ps.held += k.bytes(len(key))
		for _, name := range k.Names {
			ps.attributes[name] = name
		}
		k.Contested = false
	}
	for _, k := range ps.keys {
		ps.contest(k)
	}
	for name := range ps.attributes {
		ps.held += attributeBytes + int64(len(name))
	}
}

// rest leaves the forms to their points.
func (ps *points) rest() {
	ps.heldByForms -= formSlotBytes * int64(len(ps.forms))
	ps.forms = map[string]*form{}
}

// equals reports whether two points are the same.
func (p *Point) equals(q *Point) bool {
	if p.Family != q.Family || p.Form.Keys != q.Form.Keys {
		return false
	}
	var v, w span
	for i, j := 0, 0; i < len(p.Form.values); {
		v, i = unpack(p.Form.values, i)
		if w, j = unpack(q.Form.values, j); p.text(v) != q.text(w) {
			return false
		}
	}
	return true
}

// hash covers everything that identifies the point.
func (p *Point) hash() uint64 {
	h := (uint64(p.Family.ID)<<32 | uint64(p.Form.Keys.id)) * 0x9e3779b97f4a7c15
	var v span
	for i := 0; i < len(p.Form.values); {
		v, i = unpack(p.Form.values, i)
		h = (h ^ maphash.String(seed, p.text(v))) * 0x9e3779b97f4a7c15
		h ^= h >> 29
	}
	return h
}

// mostForms limits the forms that are shared. The points of a large page need few, since forms are made of lengths.
const mostForms = 1 << 14

// mostSearched is how many values are looked for in a text. Further ones, which only hostile lines have, are stored
// beside it: each search takes as long as the text is.
const mostSearched = 64

// pack encodes the values of labels that the target does not fill in: twice their length, the piece of the text that
// they are in, and the offset; or, marked by an odd length, the values themselves.
func (ps *points) pack(k *keys, t *text, ls []labels.Label) *form {
	b := k.start(ps.packing[:0])
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
	ps.packing = b
	return ps.form(k, b, begin)
}

// start begins the key of a form.
func (k *keys) start(b []byte) []byte { return binary.AppendUvarint(b, uint64(k.id)) }

// form returns the form with these keys and the values packed in b from begin on.
func (ps *points) form(k *keys, b []byte, begin int) *form {
	f := ps.forms[string(b)]
	if f == nil {
		all := string(b)
		if f = (&form{k, all[begin:]}); len(ps.forms) < mostForms {
			ps.forms[all] = f
			ps.heldByForms += formSlotBytes
		}
		ps.heldByForms += formBytes + int64(len(all))
	}
	return f
}

// A span is where a value is: in a piece of a line's text or, for noPiece, among the packed values.
type span struct{ piece, at, size int }

// text returns a value of the point.
func (p *Point) text(s span) string {
	if s.piece == noPiece {
		return p.Form.values[s.at : s.at+s.size]
	}
	return p.Line.piece(s.piece)[s.at : s.at+s.size]
}

// unpack decodes the place of the value packed at i, and returns it with the offset of the next one.
func unpack(values string, i int) (s span, next int) {
	if len(values)-i > 2 && values[i]&1 == 0 && values[i]|values[i+1]|values[i+2] < 0x80 { // fast path for nearly all short
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
