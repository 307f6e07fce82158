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
func (c *cohort) intern(f *family, text string, set labels.Labels, skip func(name string) bool) *point {
	var (
		h    maphash.Hash
		key  = c.keying[:0]
		all  [16]labels.Label
		kept = all[:0]
	)
	h.SetSeed(seed)
	maphash.WriteComparable(&h, f)
	set.Range(func(l labels.Label) {
		if l.Value == "" || skip(l.Name) {
			return
		}
		kept = append(kept, l)
		i := marked(l.Value)
		key = append(append(strconv.AppendInt(key, int64(i), 10), l.Name...), 0xff)
		maphash.WriteComparable(&h, l)
	})
	c.keying = key
	ks := c.keySets[string(key)]
	if ks == nil {
		ks = &keys{names: make([]string, len(kept)), from: make([]int16, len(kept))}
		for i, l := range kept {
			ks.names[i], ks.from[i] = strings.Clone(l.Name), int16(marked(l.Value))
			ks.marked = ks.marked || ks.from[i] >= 0
		}
		c.keySets[string(key)] = ks
	}
	for at := h.Sum64(); ; at++ {
		p := c.points[at]
		if p == nil {
			p = &point{family: f, keys: ks, text: text, values: c.pack(text, kept)}
			c.points[at] = p
			return p
		}
		if p.family == f && p.keys == ks && p.has(kept) {
			return p
		}
	}
}

// pack writes down the values of labels that are not the target's to fill in: their lengths, doubled, and where they are
// in the text or, the length being odd, themselves.
func (c *cohort) pack(text string, ls []labels.Label) string {
	b := c.packing[:0]
	for _, l := range ls {
		if marked(l.Value) >= 0 {
			continue
		}
		n := uint64(len(l.Value)) << 1
		if i := strings.Index(text, l.Value); i >= 0 {
			b = binary.AppendUvarint(binary.AppendUvarint(b, n), uint64(i))
		} else {
			b = append(binary.AppendUvarint(b, n|1), l.Value...)
		}
	}
	c.packing = b
	return string(b)
}

// unpack returns the first of packed values and the others.
func unpack(text, values string) (first, rest string) {
	n, rest := number(values)
	size := n >> 1
	if n&1 == 1 {
		return rest[:size], rest[size:]
	}
	at, rest := number(rest)
	return text[at : at+size], rest
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
		if v, rest = unpack(p.text, rest); v != l.Value {
			return false
		}
	}
	return true
}
