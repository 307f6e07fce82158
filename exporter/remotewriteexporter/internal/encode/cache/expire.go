// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package cache

import (
	"iter"
	"slices"
	"sync/atomic"
)

// Mark identifies the last sweep that found an entry in use. All entries that survive a sweep have its mark, so a few
// bits are enough.
type Mark uint16

// Expiry marks what is in use, then sweeps the rest: first what others hold, then points, then each tenant, then the
// slabs.
type Expiry struct {
	c       *Cache
	mark    Mark
	live    func(*atomic.Uint32) bool
	symbols []bool
	values  map[int][]bool // by width
	kept    []bool         // by point in tables: whether it stays
	removed bool           // points were removed from tables
	before  int            // places of points before
}

// BeginExpiry looks for entries not seen for as many generations as the Config allows or, if there was no room for new
// entries, in this one and the last; and for points that have ended. Nobody may use the cache until End.
func (c *Cache) BeginExpiry() *Expiry {
	c.mu.Lock()
	generation := c.Ages.generation.Load()
	idle := uint32(c.cfg.IdleGenerations)
	if c.room.overflow.Swap(0) > 0 {
		idle = min(idle, 2) // those seen in the last one are likely to come again
	}
	if c.Sweeps++; c.Sweeps == 0 {
		c.Sweeps++ // new entries have 0
	}
	x := &Expiry{c: c, mark: c.Sweeps, live: func(seen *atomic.Uint32) bool {
		at := seen.Load()
		return at != ended && generation-at < idle
	}, values: map[int][]bool{}, before: c.room.points}
	x.symbols = make([]bool, len(c.Symbols.Snapshot()))
	for width, s := range c.sets.byWidth {
		x.values[width] = make([]bool, s.Size())
	}
	c.room.empty()
	return x
}

// End removes what neither the remaining tenants nor other holders refer to. It returns how many points it removed.
func (x *Expiry) End(tenants iter.Seq[*Tenant], advance bool) (evicted int) {
	defer x.c.mu.Unlock()
	x.series(tenants)
	if x.removed {
		x.c.Removals++
	}
	x.slabs()
	x.c.Symbols.Release(x.symbols)
	x.c.Ages.swept(x.c.room.points)
	x.c.room.memory.swept()
	if advance {
		x.c.Ages.generation.Add(1)
	}
	return max(x.before-x.c.room.points, 0)
}

// Points keeps points in use, with what they refer to. It visits them in the order of memory, which is nearly that of
// what they refer to; in the order of a table, each access would be a cache miss.
func (x *Expiry) Points() {
	c := x.c
	x.kept = make([]bool, c.Points.Size())
	c.Points.Each(func(n uint32, p *Point) {
		if p.Form == 0 {
			return
		}
		if !x.live(&p.Seen) {
			p.Form = 0
			x.removed = true
			return
		}
		x.kept[n] = true
		f := c.Forms.One(p.Form)
		c.room.addPoint(len(f.Keys.names))
		x.keepForm(f)
		x.keepValuesOf(f.Keys, p.Values)
		if p.One != 0 {
			x.KeepSeries(c.Series.One(p.One))
		}
		if p.Parts != 0 {
			for _, s := range *c.Parts.One(p.Parts) {
				x.KeepSeries(s)
			}
		}
	})
	if !x.removed {
		return
	}
	// Neighbours point at each other across tables: all dead points must be known before links are cut.
	c.Points.Each(func(_ uint32, p *Point) {
		if next := p.Next.Load(); next != 0 && !x.kept[next] {
			p.Next.Store(0)
		}
	})
}

// series removes series that nothing refers to from the tables.
func (x *Expiry) series(tenants iter.Seq[*Tenant]) {
	kept := make([]bool, x.c.Series.Size())
	x.c.Series.Each(func(n uint32, s *Series) { kept[n] = s.marked == x.mark })
	for t := range tenants {
		t.series.Sweep(func(n uint32) bool { return kept[n] })
	}
}

// KeepSeries keeps a series that a caller holds.
func (x *Expiry) KeepSeries(s *Series) {
	if s == nil || s.Layout == 0 || s.marked == x.mark {
		return
	}
	s.marked = x.mark
	l := x.c.Layouts.One(s.Layout)
	x.keepLayout(l)
	x.keepValuesOf(l.Keys, s.Values)
}

func (x *Expiry) keepLayout(l *Layout) {
	if l.marked == x.mark {
		return
	}
	l.marked = x.mark
	l.Schema.marked = x.mark
	for _, ref := range l.Labels {
		x.symbols[ref.Name] = true
		if ref.Value&^PlaceMask == 0 {
			x.symbols[ref.Value] = true
		}
	}
	if m := l.Meta; m != nil {
		x.keepMeta(m)
	}
}

func (x *Expiry) keepSchema(s *Schema) { s.marked, s.places().marked = x.mark, x.mark }

func (x *Expiry) keepForm(s *Form) {
	if s.marked == x.mark {
		return
	}
	s.marked = x.mark
	s.Family.marked = x.mark
	for _, l := range s.layouts {
		x.keepLayout(x.c.Layouts.One(l))
	}
}

// keepValuesOf keeps the values of a point.
func (x *Expiry) keepValuesOf(k *keys, n uint32) {
	if n == 0 {
		return
	}
	if kept := &x.values[len(k.names)][n]; !*kept {
		*kept = true
		x.keepValues(k.values.Run(n))
	}
}

func (x *Expiry) keepValues(values ids) {
	for _, id := range values {
		x.symbols[id] = true
	}
}

func (x *Expiry) keepMeta(m *Meta) {
	m.marked = x.mark
	x.symbols[m.HelpRef], x.symbols[m.UnitRef] = true, true
}

// KeepLabels keeps the labels of a resource that a caller holds.
func (x *Expiry) KeepLabels(l *ResourceLabels) {
	if l.marked == x.mark {
		return
	}
	l.marked = x.mark
	l.schema.marked = x.mark
	for _, ref := range l.Values {
		x.symbols[ref] = true
	}
}

// Tenant sweeps t and reports whether anything is left of it.
func (x *Expiry) Tenant(t *Tenant) bool {
	t.points.Sweep(func(n uint32) bool { return x.kept[n] })
	sweep(t.families, func(f *Family) **Family { return &f.sibling }, func(f *Family) bool {
		f.Dead = f.marked != x.mark
		if f.Dead {
			return false
		}
		x.keepSchema(f.Schema)
		if f.Scope != nil && f.Scope.marked != x.mark {
			f.Scope.marked = x.mark
			x.keepValues(f.Scope.attributes.values)
		}
		f.forms = slices.DeleteFunc(f.forms, func(n uint32) bool { return x.c.Forms.One(n).marked != x.mark })
		if f.meta != nil {
			x.keepMeta(f.meta)
		}
		if !x.kept[f.First.Load()] {
			f.First.Store(0)
		}
		return true
	})
	for _, f := range t.families {
		for ; f != nil; f = f.sibling {
			if n := f.Next.Load(); n != nil && n.Dead {
				f.Next.Store(nil)
			}
		}
	}
	sweep(t.resources, func(r *Resource) **Resource { return &r.sibling }, func(r *Resource) bool {
		if !x.live(&r.seen) {
			return false
		}
		x.c.room.resources++
		x.keepValues(r.attributes.values)
		x.KeepLabels(r.Labels)
		x.keepSchema(r.Schema)
		x.KeepSeries(r.Info)
		if f := r.First.Load(); f != nil && f.Dead {
			r.First.Store(nil)
		}
		return true
	})
	sweep(t.labelSets, func(l *ResourceLabels) **ResourceLabels { return &l.sibling },
		func(l *ResourceLabels) bool { return l.marked == x.mark })
	sweep(t.scopes, func(s *Scope) **Scope { return &s.sibling }, func(s *Scope) bool { return s.marked == x.mark })
	t.layouts.Sweep(func(n uint32) bool { return x.c.Layouts.One(n).marked == x.mark })
	for k, s := range t.schemas {
		if s.marked != x.mark {
			delete(t.schemas, k)
		}
	}
	for k, m := range t.metas {
		if m.marked != x.mark {
			delete(t.metas, k)
		}
	}
	return t.points.Len() > 0 || len(t.resources) > 0
}

// slabs frees what neither a table nor pending samples refer to.
func (x *Expiry) slabs() {
	c := x.c
	parts := make([]bool, c.Parts.Size())
	for i := range c.out {
		parts[c.out[i].parts] = true
	}
	c.Points.Sweep(func(n uint32) bool {
		p := c.Points.One(n)
		if p.Form != 0 {
			parts[p.Parts] = true
		}
		return p.Form != 0
	})
	c.Parts.Sweep(func(n uint32) bool { return parts[n] })
	c.Series.Sweep(func(n uint32) bool { return c.Series.One(n).marked == x.mark })
	c.Forms.Sweep(func(n uint32) bool { return c.Forms.One(n).marked == x.mark })
	c.Layouts.Sweep(func(n uint32) bool { return c.Layouts.One(n).marked == x.mark })
	c.sets.sweep(x.values, c.room.points)
}

// sweep removes entries that are not kept from the chains of a table.
func sweep[T any](table map[uint64]*T, sibling func(*T) **T, keep func(*T) bool) {
	for h, head := range table {
		link := &head
		for *link != nil {
			if keep(*link) {
				link = sibling(*link)
			} else {
				*link = *sibling(*link)
			}
		}
		if head == nil {
			delete(table, h)
		} else {
			table[h] = head
		}
	}
}
