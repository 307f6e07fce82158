// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package cache

import (
	"iter"
	"slices"
	"sync/atomic"
)

// Mark is the sweep that last saw an entry in use. Whatever outlives a sweep bears its mark, so that a few bits do.
type Mark uint16

// Expiry marks what is in use, then sweeps the rest: first whatever others keep, then points, then each tenant, then end.
type Expiry struct {
	c       *Cache
	mark    Mark
	live    func(*atomic.Uint32) bool
	symbols []bool
	values  map[int][]bool // by width
	kept    []bool         // points in tables, and those of them that stay
	removed bool           // points from tables
	before  int            // places of points
}

// BeginExpiry looks for what was not seen for as many generations as the Config allows, or, where there was no room for new entries, in
// this one and the last; and for what has ended. Nobody may use the cache until it has come to its end.
func (c *Cache) BeginExpiry() *Expiry {
	c.mu.Lock()
	generation := c.Ages.generation.Load()
	idle := uint32(c.cfg.IdleGenerations)
	if c.room.overflow.Swap(0) > 0 {
		idle = min(idle, 2) // those seen last time are likely to come again: forgetting them would gain nothing
	}
	if c.Sweeps++; c.Sweeps == 0 {
		c.Sweeps++ // what is new bears 0
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

// End removes what none of the tenants that are left refers to, nor whoever keeps something. It returns how many points went.
func (x *Expiry) End(tenants iter.Seq[*Tenant], advance bool) (evicted int) {
	defer x.c.mu.Unlock()
	x.series(tenants)
	if x.removed {
		x.c.Removals++
	}
	x.slabs()
	x.c.Symbols.Release(x.symbols)
	x.c.Ages.swept(x.c.room.points)
	if advance {
		x.c.Ages.generation.Add(1)
	}
	return max(x.before-x.c.room.points, 0)
}

// Points keeps what is alive, with what it refers to. They are looked at in the order in which they are in memory, as nearly is what they
// refer to: in that of a table, each look would be anywhere.
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
	// Neighbours point at each other from table to table: the dead must be known before links are cut.
	c.Points.Each(func(_ uint32, p *Point) {
		if next := p.Next.Load(); next != 0 && !x.kept[next] {
			p.Next.Store(0)
		}
	})
}

// series takes those out of the tables that nothing refers to.
func (x *Expiry) series(tenants iter.Seq[*Tenant]) {
	kept := make([]bool, x.c.Series.Size())
	x.c.Series.Each(func(n uint32, s *Series) { kept[n] = s.marked == x.mark })
	for t := range tenants {
		t.series.Sweep(func(n uint32) bool { return kept[n] })
	}
}

// KeepSeries keeps a series for whoever has it.
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

// keepValuesOf keeps those of a point.
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

// KeepLabels keeps those of a resource for whoever has them.
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

// Tenant sweeps t and says whether anything is left of it.
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

// slabs frees what no table and nothing pending refers to any more.
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

// sweep removes what is not to be kept from the chains of a table.
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
