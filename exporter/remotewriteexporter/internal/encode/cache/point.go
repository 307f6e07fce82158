// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package cache

import (
	"math"
	"sync/atomic"

	"go.opentelemetry.io/collector/pdata/pcommon"

	"github.com/godwit-otel/godwit/exporter/remotewriteexporter/internal/encode/attribute"
	"github.com/godwit-otel/godwit/exporter/remotewriteexporter/internal/encode/histogram"
	"github.com/godwit-otel/godwit/exporter/remotewriteexporter/internal/encode/store"
)

// Point is the identity of a data point, and the series it becomes.
type Point struct {
	Form   uint32 // 0 if the point is not in the table
	Values uint32 // its values, by number in those of its form's keys
	One    uint32 // the series of a number or a native histogram
	Parts  uint32 // the series of a classic histogram or a summary: sum, count, then one for each bound
	Next   atomic.Uint32
	Seen   atomic.Uint32
}

// is reports whether p is the point of a family with these attributes and bounds. text is the text of the symbols.
func (c *Cache) is(p *Point, f *Family, m pcommon.Map, bounds []float64, text []string) bool {
	o := c.Forms.One(p.Form)
	return o.Family == f && o.Keys.Match(m, o.Keys.ValuesOf(p.Values), text) && histogram.SameBounds(o.Bounds, bounds)
}

// Find returns a point that was not where it was expected, and makes it if needed. Its number is 0 if the cache is
// full.
func (c *Cache) Find(t *Tenant, f *Family, m pcommon.Map, bounds []float64) (p *Point, n uint32, known bool) {
	h := f.id
	for k, v := range m.All() { // usually the family's keys, but a sender may use others each time
		h = c.hashString(c.hashString(h, k), attribute.Text(v))
	}
	for _, b := range bounds {
		h = store.Mix(h, math.Float64bits(b))
	}
	hash := store.Fold(h & c.HashMask)
	c.mu.Lock()
	defer c.mu.Unlock()
	text := c.Symbols.Snapshot()
	for at := range t.points.Of(hash) {
		if p := c.Points.One(at); c.is(p, f, m, bounds, text) {
			return p, at, true
		}
	}
	n = c.Points.Add()
	p = c.Points.One(n)
	form := c.form(t, f, m, bounds)
	c.fill(t, p, c.Forms.One(form), m)
	if !c.room.takePoint(m.Len()) {
		return p, 0, false // the next Expire frees it
	}
	p.Form = form
	c.Ages.see(&p.Seen)
	t.points.Insert(hash, n)
	return p, n, false
}

// fill makes the series of a new point. The table must be locked.
func (c *Cache) fill(t *Tenant, p *Point, f *Form, m pcommon.Map) {
	p.Values = c.pack(f.Keys, m)
	if c.rules != nil {
		c.fillByRules(t, p, f)
		return
	}
	layouts := f.layouts
	if f.single {
		p.One, layouts = c.seriesOf(t, layouts[0], p.Values), layouts[1:]
	}
	if len(layouts) == 0 {
		return
	}
	parts := make([]*Series, 0, len(layouts))
	for _, l := range layouts {
		parts = append(parts, c.Series.One(c.seriesOf(t, l, p.Values)))
	}
	p.Parts = c.Parts.Add()
	*c.Parts.One(p.Parts) = parts
}
