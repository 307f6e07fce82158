// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package cache

import (
	"hash/maphash"

	"go.opentelemetry.io/collector/pdata/pcommon"

	"github.com/godwit-otel/godwit/exporter/remotewriteexporter/internal/encode/attribute"
	"github.com/godwit-otel/godwit/exporter/remotewriteexporter/internal/encode/store"
)

// keys are the attribute keys of a point in their order, and the types of their values: ValueTypeEmpty for those
// without text, which make no label. Most points of a metric have the same ones, so they share them.
type keys struct {
	names  []string
	kinds  []pcommon.ValueType
	values *store.Slab[uint32] // of points with this number of keys; nil if not a point's
}

// ValuesOf returns the values of a point by their number; 0 stands for none.
func (k *keys) ValuesOf(n uint32) ids {
	if n == 0 {
		return nil
	}
	return k.values.Run(n)
}

// attributes are a copy of a pcommon.Map for comparison.
type attributes struct {
	keys   *keys
	values ids
}

// Match reports whether m has these keys and values. text is the text of the symbols.
func (k *keys) Match(m pcommon.Map, values ids, text []string) bool {
	if m.Len() != len(k.names) {
		return false
	}
	i := 0
	for name, v := range m.All() {
		kind, id := k.kinds[i], values[i]
		if name != k.names[i] || int(id) >= len(text) { // changed, or newer than the snapshot: the table decides
			return false
		}
		switch {
		case kind == pcommon.ValueTypeStr: // fast path: Str is empty for other types, and the text is not
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

// same reports whether m has these keys.
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

// recentKeys are keys that were made last. Most metrics of a page have the same keys as one of the few before it.
type recentKeys struct {
	of   [16]*keys
	next uint8
}

// pointKeys returns the keys of m, with room for the values of points: those of another metric, if it is recent. The
// table must be locked.
func (c *Cache) pointKeys(m pcommon.Map) *keys {
	r := &c.recentKeys
	for _, k := range r.of {
		if k != nil && k.same(m) {
			return k
		}
	}
	k := c.keys(m)
	k.values = c.sets.of(m.Len())
	r.of[r.next] = k
	r.next = (r.next + 1) % uint8(len(r.of))
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

// remember copies m. The table must be locked.
func (c *Cache) remember(m pcommon.Map) attributes {
	values := make(ids, m.Len())
	c.Symbols.Pack(values, m)
	return attributes{c.keys(m), values}
}

// pack stores the values of a point, other types than strings as text, unless a recent point has the same ones. The
// table must be locked.
func (c *Cache) pack(k *keys, m pcommon.Map) uint32 {
	if len(k.names) == 0 {
		return 0
	}
	n := k.values.Add()
	c.sets.ids += len(k.names)
	c.Symbols.Pack(k.values.Run(n), m)
	return c.sets.share(k.values, n, c.room.points)
}

// keep returns the symbols' copy of s.
func (c *Cache) keep(s string) string {
	return c.Symbols.TextOf(c.Symbols.Keep(s))
}

func (c *Cache) hashString(h uint64, s string) uint64 {
	return store.Mix(h, maphash.String(c.Seed, s))
}

// HashMap continues the hash h with the attributes of m.
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
