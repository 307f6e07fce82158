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
		key  = c.keying[:0]
		all  [16]labels.Label
		kept = all[:0]
	)
	set.Range(func(l labels.Label) {
		if l.Value == "" || skip(l.Name) {
			return
		}
		kept = append(kept, l)
		i := marked(l.Value)
		key = append(append(strconv.AppendInt(key, int64(i), 10), l.Name...), 0xff)
	})
	c.keying = key
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
	var h maphash.Hash
	hashPoint(&h, f, ks)
	for _, l := range kept {
		if marked(l.Value) < 0 {
			hashValue(&h, l.Value)
		}
	}
	p := c.points.find(h.Sum64(), func(p *point) bool { return p.family == f && p.keys == ks && p.has(kept) })
	if p == nil {
		p = &point{family: f, keys: ks, line: l, values: c.pack(&l.text, kept)}
		c.points.add(p)
	}
	return p
}

func (p *point) hash() uint64 {
	var (
		h maphash.Hash
		v string
	)
	hashPoint(&h, p.family, p.keys)
	for rest := p.values; rest != ""; {
		v, rest = unpack(&p.line.text, rest)
		hashValue(&h, v)
	}
	return h.Sum64()
}

func hashPoint(h *maphash.Hash, f *family, ks *keys) {
	var ids [8]byte
	binary.LittleEndian.PutUint32(ids[:], f.id)
	binary.LittleEndian.PutUint32(ids[4:], ks.id)
	h.SetSeed(seed)
	_, _ = h.Write(ids[:])
}

func hashValue(h *maphash.Hash, v string) {
	_, _ = h.WriteString(v)
	_ = h.WriteByte(0xff) // in no UTF-8
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

func (p *point) has(ls []labels.Label) bool {
	var v string
	rest := p.values
	for _, l := range ls {
		if marked(l.Value) >= 0 {
			continue
		}
		if v, rest = unpack(&p.line.text, rest); v != l.Value {
			return false
		}
	}
	return true
}
