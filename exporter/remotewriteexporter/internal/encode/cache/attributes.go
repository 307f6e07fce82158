// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package cache

import (
	"hash/maphash"

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

// ValuesOf are the values of a point by their number, 0 of which is none.
func (k *keys) ValuesOf(n uint32) ids {
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

// Match says whether m has these keys and values. text is that of the symbols.
func (k *keys) Match(m pcommon.Map, values ids, text []string) bool {
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
func (c *Cache) pointKeys(m pcommon.Map) *keys {
	k := c.keys(m)
	k.values = c.sets.of(m.Len())
	return k
}

// keys copies the keys of m.
func (c *Cache) keys(m pcommon.Map) *keys {
	k := &keys{names: make([]string, 0, m.Len()), kinds: make([]pcommon.ValueType, 0, m.Len())}
	for name, v := range m.All() {
		k.names, k.kinds = append(k.names, c.keep(name)), append(k.kinds, attribute.KindOf(v))
	}
	return k
}

// remember copies m. The table is locked.
func (c *Cache) remember(m pcommon.Map) attributes {
	values := make(ids, m.Len())
	c.Symbols.Pack(values, m)
	return attributes{c.keys(m), values}
}

// pack keeps the values of a point of keys, those other than strings by their text, unless a point that came not long before has the
// same. The table is locked.
func (c *Cache) pack(k *keys, m pcommon.Map) uint32 {
	if len(k.names) == 0 {
		return 0
	}
	n := k.values.Add()
	c.Symbols.Pack(k.values.Run(n), m)
	return c.sets.share(k.values, n, c.room.points)
}

// keep is a copy of s: the one that symbols share.
func (c *Cache) keep(s string) string {
	return c.Symbols.TextOf(c.Symbols.Keep(s))
}

func (c *Cache) hashString(h uint64, s string) uint64 {
	return store.Mix(h, maphash.String(c.Seed, s))
}

// HashMap goes on with a hash of what is before attributes.
func (c *Cache) HashMap(h uint64, m pcommon.Map) uint64 {
	for k, v := range m.All() {
		h = c.hashString(h, k)
		if v.Type() == pcommon.ValueTypeStr {
			h = c.hashString(h, v.Str())
		} else {
			h = store.Mix(c.hashString(h, attribute.Text(v)), uint64(v.Type()))
		}
	}
	return h
}
