// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package encode

import (
	"hash/maphash"
	"slices"
	"strconv"
	"strings"

	"go.opentelemetry.io/collector/pdata/pcommon"
)

// keys are the attribute keys of a point in the order they came, and the kinds of their values. The points of a
// metric mostly have the same, so they share one.
type keys struct {
	names []string
	kinds []pcommon.ValueType
}

// attributes remember a pcommon.Map well enough to recognise it: values other than strings by their text.
type attributes struct {
	keys   *keys
	values []string
}

// match says whether m is what a remembers. Strings that are the same memory compare at once.
func (a *attributes) match(m pcommon.Map) bool {
	if m.Len() != len(a.values) {
		return false
	}
	i := 0
	for k, v := range m.All() {
		kind := v.Type()
		if kind != a.keys.kinds[i] || k != a.keys.names[i] {
			return false
		}
		if kind == pcommon.ValueTypeStr {
			if v.Str() != a.values[i] {
				return false
			}
		} else if !textIs(v, a.values[i]) {
			return false
		}
		i++
	}
	return true
}

// textIs is v.AsString() == text, without making a string where that is easy.
func textIs(v pcommon.Value, text string) bool {
	switch v.Type() {
	case pcommon.ValueTypeInt:
		var buf [20]byte
		return string(strconv.AppendInt(buf[:0], v.Int(), 10)) == text
	case pcommon.ValueTypeBool:
		return strconv.FormatBool(v.Bool()) == text
	default:
		return v.AsString() == text
	}
}

// remember copies m. The keys are those of like where they are equal.
func (e *Encoder) remember(m pcommon.Map, like *keys) attributes {
	if m.Len() == 0 {
		return attributes{keys: &keys{}}
	}
	a := attributes{values: make([]string, 0, m.Len())}
	same := like != nil && len(like.names) == m.Len()
	for k, v := range m.All() {
		i := len(a.values)
		same = same && like.names[i] == k && like.kinds[i] == v.Type()
		a.values = append(a.values, e.keep(v.AsString()))
	}
	if same {
		a.keys = like
		return a
	}
	a.keys = &keys{}
	for k, v := range m.All() {
		a.keys.names = append(a.keys.names, e.keep(k))
		a.keys.kinds = append(a.keys.kinds, v.Type())
	}
	return a
}

// keep is a copy of s: the one that labels share, unless s cannot be a label.
func (e *Encoder) keep(s string) string {
	id := e.symbols.intern(s) // before the snapshot, which must know it
	if kept := e.symbols.snapshot()[id]; kept == s {
		return kept
	}
	return strings.Clone(s)
}

// mix folds the hash of a part into that of a whole.
func mix(h, part uint64) uint64 {
	h = (h ^ part) * 0x9e3779b97f4a7c15
	return h ^ h>>29
}

func (e *Encoder) hashString(h uint64, s string) uint64 { return mix(h, maphash.String(e.seed, s)) }

func (e *Encoder) hashMap(h uint64, m pcommon.Map) uint64 {
	for k, v := range m.All() {
		h = e.hashString(h, k)
		if v.Type() == pcommon.ValueTypeStr {
			h = e.hashString(h, v.Str())
		} else {
			h = mix(e.hashString(h, v.AsString()), uint64(v.Type()))
		}
	}
	return h
}

// glob says whether name matches pattern, in which * stands for any text and ? for any byte.
func glob(pattern, name string) bool {
	star, mark := -1, 0
	p, n := 0, 0
	for n < len(name) {
		switch {
		case p < len(pattern) && pattern[p] == '*':
			star, mark = p, n
			p++
		case p < len(pattern) && (pattern[p] == '?' || pattern[p] == name[n]):
			p++
			n++
		case star >= 0: // let the last star take one more
			mark++
			p, n = star+1, mark
		default:
			return false
		}
	}
	return strings.Trim(pattern[p:], "*") == ""
}

func globAny(patterns []string, name string) bool {
	return slices.ContainsFunc(patterns, func(p string) bool { return glob(p, name) })
}
