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
	p := &point{family: f, keys: c.keysOf(kept), line: l, values: c.pack(&l.text, kept)}
	return c.points.intern(p.identify(), p.equals)
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
			ks.names[i], ks.from[i] = strings.Clone(l.Name), int16(marked(l.Value))
			ks.marked = ks.marked || ks.from[i] >= 0
		}
		c.keySets[string(key)] = ks
	}
	return ks
}

// equals tells whether two points are the same.
func (p *point) equals(q *point) bool {
	if p.hashed != q.hashed || p.family != q.family || p.keys != q.keys {
		return false
	}
	var v, w string
	for r, s := p.values, q.values; r != ""; {
		v, r = unpack(&p.line.text, r)
		if w, s = unpack(&q.line.text, s); v != w {
			return false
		}
	}
	return true
}

func (p *point) hash() uint64 { return p.hashed }

// identify hashes all that makes the point what it is.
func (p *point) identify() *point {
	h := uint64(p.family.id)<<32 | uint64(p.keys.id)
	var v string
	for rest := p.values; rest != ""; {
		v, rest = unpack(&p.line.text, rest)
		h = (h ^ maphash.String(seed, v)) * 0x9e3779b97f4a7c15
		h ^= h >> 29
	}
	p.hashed = h
	return p
}

// mostPacks bounds how many packed values are shared. Those of a large page's points are much the same, being lengths.
const mostPacks = 1 << 14

// pack writes down the values of labels that are not the target's to fill in: their lengths, doubled, and which piece of the
// text they are in, and where, or, the length being odd, themselves.
func (c *cohort) pack(t *text, ls []labels.Label) string {
	b := c.packing[:0]
	for _, l := range ls {
		if marked(l.Value) >= 0 {
			continue
		}
		n := uint64(len(l.Value)) << 1
		if piece, at := t.find(l.Value); at >= 0 {
			b = binary.AppendUvarint(binary.AppendUvarint(binary.AppendUvarint(b, n), uint64(piece)), uint64(at))
		} else {
			b = append(binary.AppendUvarint(b, n|1), l.Value...)
		}
	}
	c.packing = b
	return c.packed(b)
}

func (c *cohort) packed(b []byte) string {
	packed, ok := c.packs[string(b)]
	if !ok {
		if packed = string(b); len(c.packs) < mostPacks {
			c.packs[packed] = packed
		}
	}
	return packed
}

// unpack returns the first of packed values and the others.
func unpack(t *text, values string) (first, rest string) {
	n, rest := number(values)
	size := n >> 1
	if n&1 == 1 {
		return rest[:size], rest[size:]
	}
	piece, rest := number(rest)
	at, rest := number(rest)
	return t.piece(piece)[at : at+size], rest
}

// number reads a varint.
func number(s string) (n int, rest string) {
	i := 0
	for shift := 0; ; shift += 7 {
		b := s[i]
		n |= int(b&0x7f) << shift
		if i++; b < 0x80 {
			return n, s[i:]
		}
	}
}
