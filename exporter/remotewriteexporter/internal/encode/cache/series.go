// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package cache

import (
	"hash/maphash"
	"slices"

	"github.com/zeebo/xxh3"

	"github.com/godwit-otel/godwit/exporter/remotewriteexporter/internal/encode/names"
	"github.com/godwit-otel/godwit/exporter/remotewriteexporter/internal/encode/store"
)

// Layout is the labels of a form's series, sorted by name, and where their values are.
type Layout struct {
	Schema *Schema
	Meta   *Meta
	Labels []LabelRef
	Keys   *keys  // of the points; nil if there are none
	weight uint32 // the most bytes that it takes in a request, without the values of points
	marked Mark
}

// LabelRef is the symbol of a name, and the symbol of a value or where the value is.
type LabelRef struct {
	Name, Value uint32
}

// Flags of a value that is not a symbol itself.
const (
	FromResource = 1 << 31 // in ResourceLabels.Values
	FromPoint    = 1 << 30 // in Series.Values
	PlaceMask    = FromPoint - 1
)

// Series is a set of labels, without the values that the resource contributes.
type Series struct {
	Layout uint32
	Values uint32 // the point's, by number in those of its layout's keys
	Weight uint32 // the most bytes that the labels and metadata take in a request
	Slot   uint32 // index in the open buffer of its column, if any; guarded by the column's lock
	Spread uint16 // determines the shard, for any number of shards
	marked Mark
}

// Row is a series with what it refers to.
type Row struct {
	Series *Series
	Layout *Layout
	Values ids
}

// Row looks up what a series refers to.
func (c *Cache) Row(s *Series) Row {
	r := Row{Series: s, Layout: c.Layouts.One(s.Layout)}
	if s.Values != 0 {
		r.Values = r.Layout.Keys.ValuesOf(s.Values)
	}
	return r
}

// Ref is a label's value: a symbol, or a place in the resource's values.
func (r *Row) Ref(l LabelRef) uint32 {
	if l.Value&^PlaceMask == FromPoint {
		return r.Values[l.Value&PlaceMask]
	}
	return l.Value
}

func (r *Row) equal(o *Row) bool {
	return r.Layout.Schema == o.Layout.Schema &&
		slices.EqualFunc(r.Layout.Labels, o.Layout.Labels, func(a, b LabelRef) bool {
			return a.Name == b.Name && r.Ref(a) == o.Ref(b)
		})
}

// layout makes the layout of labels, in any order. The table must be locked.
func (c *Cache) layout(f *Schema, k *keys, list []seriesLabel, m *Meta) Layout {
	slices.SortStableFunc(list, func(a, b seriesLabel) int { return names.ByName(a.Label, b.Label) })
	l := Layout{Schema: f.places(), Meta: m, Keys: k, Labels: make([]LabelRef, 0, len(list)), weight: uint32(m.weight())}
	for _, x := range list {
		ref := LabelRef{Name: c.Symbols.Intern(x.Name)}
		l.weight += uint32(len(x.Name) + 16)
		switch {
		case x.from > 0:
			ref.Value = uint32(x.from-1) | FromResource
		case x.attribute > 0:
			ref.Value = uint32(x.attribute-1) | FromPoint
		default:
			ref.Value = c.Symbols.Intern(x.Value)
			l.weight += uint32(len(x.Value))
		}
		l.Labels = append(l.Labels, ref)
	}
	return l
}

// addLayout returns the number of a layout, which other points may have made if isShared is set. The table must be
// locked.
func (c *Cache) addLayout(t *Tenant, l Layout, isShared bool) uint32 {
	if c.rules != nil { // many schemas may have the same one
		if l.Keys != nil {
			l.Keys = c.sets.width(len(l.Keys.names))
		}
		return c.sharedLayout(t, l)
	}
	if isShared {
		return c.sharedLayout(t, l)
	}
	n := c.Layouts.Add()
	*c.Layouts.One(n) = l
	return n
}

// seriesOf returns the series of a layout and values, which it makes if needed. The table must be locked.
func (c *Cache) seriesOf(t *Tenant, layout, values uint32) uint32 {
	made := Series{Layout: layout, Values: values}
	r := c.Row(&made)
	symbols := c.Symbols.Snapshot()
	text, weight := c.hashed[:0], int(r.Layout.weight) // the text is hashed
	for _, x := range r.Layout.Labels {
		text = append(append(text, symbols[x.Name]...), 0xff)
		if x.Value&FromResource == 0 {
			value := symbols[r.Ref(x)]
			text = append(append(text, value...), 0xff)
			if x.Value&FromPoint != 0 {
				weight += len(value)
			}
		}
	}
	c.hashed = text
	made.Weight = uint32(weight)
	made.Spread = uint16(xxh3.Hash(text))
	hash := store.Fold(store.Mix(maphash.Bytes(c.Seed, text), r.Layout.Schema.id) & c.HashMask)
	for n := range t.series.Of(hash) {
		if o := c.Row(c.Series.One(n)); o.equal(&r) {
			return n
		}
	}
	n := c.Series.Add()
	*c.Series.One(n) = made
	if !c.room.isFull() {
		t.series.Insert(hash, n)
	}
	return n
}

// ids are symbols.
type ids []uint32
