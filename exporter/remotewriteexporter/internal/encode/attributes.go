// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package encode

import (
	"hash/maphash"
	"math"
	"slices"

	"go.opentelemetry.io/collector/pdata/pcommon"

	"github.com/godwit-otel/godwit/exporter/remotewriteexporter/internal/encode/attribute"
	"github.com/godwit-otel/godwit/exporter/remotewriteexporter/internal/encode/store"
)

// keys are the attribute keys of a point in the order they came, and the kinds of their values: ValueTypeEmpty for every
// one without text, which makes no label. The points of a metric mostly have the same, so they share one.
type keys struct {
	names  []string
	kinds  []pcommon.ValueType
	values *store.Slab[uint32] // of points with as many keys; nil for what is no point's
}

func (k *keys) valuesOf(n uint32) ids {
	if n == 0 {
		return nil
	}
	return k.values.Run(n)
}

// attributes remember a pcommon.Map well enough to recognise it.
type attributes struct {
	keys   *keys
	values ids
}

// match says whether m has these keys and values. text is that of the symbols.
func (k *keys) match(m pcommon.Map, values ids, text []string) bool {
	if m.Len() != len(k.names) {
		return false
	}
	i := 0
	for name, v := range m.All() {
		kind, id := k.kinds[i], values[i]
		if name != k.names[i] || int(id) >= len(text) { // or newer than the snapshot: the table will tell
			return false
		}
		switch {
		case kind == pcommon.ValueTypeStr: // fast path: of what is no string it is empty, which the text is not
			if v.Str() != text[id] {
				return false
			}
		case kind == pcommon.ValueTypeEmpty:
			if attribute.Text(v) != "" {
				return false
			}
		case kind != v.Type() || !attribute.TextIs(v, text[id]):
			return false
		}
		i++
	}
	return true
}

// same says whether m has these keys.
func (k *keys) same(m pcommon.Map) bool {
	if m.Len() != len(k.names) {
		return false
	}
	i := 0
	for name, v := range m.All() {
		if attribute.KindOf(v) != k.kinds[i] || name != k.names[i] {
			return false
		}
		i++
	}
	return true
}

// pointKeys are keys with room for the values of points. The table is locked.
func (e *Encoder) pointKeys(m pcommon.Map) *keys {
	k := e.keys(m)
	k.values = e.valuesOf(m.Len())
	return k
}

// valuesOf is where sets of n values are. The table is locked.
func (e *Encoder) valuesOf(n int) *store.Slab[uint32] {
	s := e.values[n]
	if s == nil {
		s = store.NewSlab[uint32](n)
		e.values[n] = s
	}
	return s
}

// keys copies the keys of m.
func (e *Encoder) keys(m pcommon.Map) *keys {
	k := &keys{names: make([]string, 0, m.Len()), kinds: make([]pcommon.ValueType, 0, m.Len())}
	for name, v := range m.All() {
		k.names, k.kinds = append(k.names, e.keep(name)), append(k.kinds, attribute.KindOf(v))
	}
	return k
}

// remember copies m. The table is locked.
func (e *Encoder) remember(m pcommon.Map) attributes {
	values := make(ids, m.Len())
	e.symbols.Pack(values, m)
	return attributes{e.keys(m), values}
}

// pack keeps the values of a point of keys, those other than strings by their text, unless a point that came not long before has the
// same. The table is locked.
func (e *Encoder) pack(k *keys, m pcommon.Map) uint32 {
	if len(k.names) == 0 {
		return 0
	}
	n := k.values.Add()
	values := ids(k.values.Run(n))
	e.symbols.Pack(values, m)
	if len(values) > math.MaxUint16 {
		return n
	}
	few, is := e.recent.few(values, e.listed)
	for _, was := range few {
		if was.width == is.width && was.tag == is.tag && slices.Equal(k.values.Run(was.number), values) {
			k.values.GiveBack(n)
			return was.number
		}
	}
	copy(few[1:], few)
	is.number = n
	few[0] = is
	return n
}

// recent are sets of values that points have which came not long before, a few of each of some hashes. Metrics tell of the same things one
// after the other, as all of a container do, so the next points with a set mostly come soon. It is forgotten when sets may be freed.
type recent []packed

// packed is a set of values by its number among those that have as many, and a part of its hash: one that is another mostly need not be
// looked at.
type packed struct {
	width, tag uint16
	number     uint32
}

// A table has a place for so many points each, so that what one page tells of fits in, within bounds.
const (
	pointsForSet = 2
	setsOfHash   = 4
	fewRecent    = 1 << 10
	mostRecent   = 1 << 16
)

// few are the sets among which one would be, the latest first, and what that would be. points says how many there are in all.
func (r *recent) few(values ids, points int) ([]packed, packed) {
	if n := len(*r); n == 0 || n < mostRecent && n < points/pointsForSet {
		*r = make(recent, max(fewRecent, 2*n))
	}
	h := uint64(len(values))
	for _, id := range values {
		h = store.Mix(h, uint64(id))
	}
	at := uint64(store.Fold(h)) * uint64(len(*r)/setsOfHash) >> 32 * setsOfHash
	return (*r)[at : at+setsOfHash], packed{width: uint16(len(values)), tag: uint16(h)}
}

// forget forgets all sets, and keeps the memory if as many points as there are would need it.
func (r *recent) forget(points int) {
	if len(*r) > max(fewRecent, 2*points/pointsForSet) {
		*r = nil
	}
	clear(*r)
}

// keep is a copy of s: the one that symbols share.
func (e *Encoder) keep(s string) string {
	return e.symbols.TextOf(e.symbols.Keep(s))
}

func (e *Encoder) hashString(h uint64, s string) uint64 {
	return store.Mix(h, maphash.String(e.seed, s))
}

func (e *Encoder) hashMap(h uint64, m pcommon.Map) uint64 {
	for k, v := range m.All() {
		h = e.hashString(h, k)
		if v.Type() == pcommon.ValueTypeStr {
			h = e.hashString(h, v.Str())
		} else {
			h = store.Mix(e.hashString(h, attribute.Text(v)), uint64(v.Type()))
		}
	}
	return h
}
