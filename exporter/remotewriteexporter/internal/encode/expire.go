// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package encode

import (
	"slices"
	"sync/atomic"
)

// Expire begins a new generation and forgets what was not seen for as many as the Config allows, or, where there
// was no room for new entries, in this one and the last; and at once what has ended. Call it about once a minute. It
// waits for every Add and Flush under way, and keeps new ones waiting.
func (e *Encoder) Expire() { e.expire(true) }

func (e *Encoder) expire(advance bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.tableMu.Lock()
	defer e.tableMu.Unlock()
	generation := e.generation.Load()
	idle := uint32(e.cfg.IdleGenerations)
	if e.overflow.Swap(0) > 0 {
		idle = min(idle, 2) // those seen last time are likely to come again: forgetting them would gain nothing
	}
	if e.sweeps++; e.sweeps == 0 {
		e.sweeps++ // what is new bears 0
	}
	x := expiry{e: e, mark: e.sweeps, live: func(seen *atomic.Uint32) bool {
		at := seen.Load()
		return at != ended && generation-at < idle
	}, values: map[int][]bool{}}
	x.symbols = make([]bool, len(e.symbols.Snapshot()))
	for width, s := range e.values {
		x.values[width] = make([]bool, s.Size())
	}
	before := e.listed
	e.listed, e.wide, e.resources = 0, 0, 0
	e.deltas.Expire(e.cfg.IdleGenerations, advance, func(k deltaKey) {
		x.keepSeries(k.series)
		x.keepLabels(k.labels)
	})
	x.points()
	for name, t := range e.tenants {
		if !x.tenant(t) {
			delete(e.tenants, name)
		}
	}
	x.series()
	if x.removed {
		e.removals++
	}
	x.slabs()
	e.symbols.Release(x.symbols)
	e.endings.Store(0)
	e.mostEndings.Store(int64(e.listed)/endedPart + fewEndings)
	e.counters.evictions.Add(uint64(max(before-e.listed, 0)))
	if advance {
		e.generation.Add(1)
	}
}

// mark is the sweep that last saw an entry in use. Whatever outlives a sweep bears its mark, so that a few bits do.
type mark uint16

// expiry marks what is in use, then sweeps the rest.
type expiry struct {
	e       *Encoder
	mark    mark
	live    func(*atomic.Uint32) bool
	symbols []bool
	values  map[int][]bool // by width
	kept    []bool         // points in tables, and those of them that stay
	removed bool           // points from tables
}

// points keeps what is alive, with what it refers to. They are looked at in the order in which they are in memory, as nearly is what they
// refer to: in that of a table, each look would be anywhere.
func (x *expiry) points() {
	e := x.e
	x.kept = make([]bool, e.points.Size())
	e.points.Each(func(n uint32, p *point) {
		if p.form == 0 {
			return
		}
		if !x.live(&p.seen) {
			p.form = 0
			x.removed = true
			return
		}
		x.kept[n] = true
		f := e.forms.One(p.form)
		places := placesOf(len(f.keys.names))
		if e.listed += places; places > 1 {
			e.wide += places
		}
		x.keepForm(f)
		x.keepValuesOf(f.keys, p.values)
		if p.one != 0 {
			x.keepSeries(e.series.One(p.one))
		}
		if p.parts != 0 {
			for _, s := range *e.parts.One(p.parts) {
				x.keepSeries(s)
			}
		}
	})
	if !x.removed {
		return
	}
	// Neighbours point at each other from table to table: the dead must be known before links are cut.
	e.points.Each(func(_ uint32, p *point) {
		if next := p.next.Load(); next != 0 && !x.kept[next] {
			p.next.Store(0)
		}
	})
}

// series takes those out of the tables that nothing refers to.
func (x *expiry) series() {
	kept := make([]bool, x.e.series.Size())
	x.e.series.Each(func(n uint32, s *series) { kept[n] = s.marked == x.mark })
	for _, t := range x.e.tenants {
		t.series.Sweep(func(n uint32) bool { return kept[n] })
	}
}

func (x *expiry) keepSeries(s *series) {
	if s == nil || s.layout == 0 || s.marked == x.mark {
		return
	}
	s.marked = x.mark
	l := x.e.layouts.One(s.layout)
	x.keepLayout(l)
	x.keepValuesOf(l.keys, s.values)
}

func (x *expiry) keepLayout(l *layout) {
	if l.marked == x.mark {
		return
	}
	l.marked = x.mark
	l.schema.marked = x.mark
	for _, ref := range l.labels {
		x.symbols[ref.name] = true
		if ref.value&^placeMask == 0 {
			x.symbols[ref.value] = true
		}
	}
	if m := l.meta; m != nil {
		x.keepMeta(m)
	}
}

func (x *expiry) keepSchema(s *schema) { s.marked, s.places().marked = x.mark, x.mark }

func (x *expiry) keepForm(s *form) {
	if s.marked == x.mark {
		return
	}
	s.marked = x.mark
	s.family.marked = x.mark
	for _, l := range s.layouts {
		x.keepLayout(x.e.layouts.One(l))
	}
}

// keepValuesOf keeps those of a point.
func (x *expiry) keepValuesOf(k *keys, n uint32) {
	if n == 0 {
		return
	}
	if kept := &x.values[len(k.names)][n]; !*kept {
		*kept = true
		x.keepValues(k.values.Run(n))
	}
}

func (x *expiry) keepValues(values ids) {
	for _, id := range values {
		x.symbols[id] = true
	}
}

func (x *expiry) keepMeta(m *meta) {
	m.marked = x.mark
	x.symbols[m.helpRef], x.symbols[m.unitRef] = true, true
}

func (x *expiry) keepLabels(l *resourceLabels) {
	if l.marked == x.mark {
		return
	}
	l.marked = x.mark
	l.schema.marked = x.mark
	for _, ref := range l.values {
		x.symbols[ref] = true
	}
}

// tenant sweeps t and says whether anything is left of it.
func (x *expiry) tenant(t *tenant) bool {
	pending := false
	for i := range t.columns {
		c := &t.columns[i]
		pending = x.buffer(c.open) || pending
		if c.cut != nil {
			pending = x.buffer(c.cut) || pending
		}
	}
	t.points.Sweep(func(n uint32) bool { return x.kept[n] })
	sweep(t.families, func(f *family) **family { return &f.sibling }, func(f *family) bool {
		f.dead = f.marked != x.mark
		if f.dead {
			return false
		}
		x.keepSchema(f.schema)
		if f.scope != nil && f.scope.marked != x.mark {
			f.scope.marked = x.mark
			x.keepValues(f.scope.attributes.values)
		}
		f.forms = slices.DeleteFunc(f.forms, func(n uint32) bool { return x.e.forms.One(n).marked != x.mark })
		if f.meta != nil {
			x.keepMeta(f.meta)
		}
		if !x.kept[f.first.Load()] {
			f.first.Store(0)
		}
		return true
	})
	for _, f := range t.families {
		for ; f != nil; f = f.sibling {
			if n := f.next.Load(); n != nil && n.dead {
				f.next.Store(nil)
			}
		}
	}
	sweep(t.resources, func(r *resource) **resource { return &r.sibling }, func(r *resource) bool {
		if !x.live(&r.seen) {
			return false
		}
		x.e.resources++
		x.keepValues(r.attributes.values)
		x.keepLabels(r.labels)
		x.keepSchema(r.schema)
		x.keepSeries(r.info)
		if f := r.first.Load(); f != nil && f.dead {
			r.first.Store(nil)
		}
		return true
	})
	sweep(t.labelSets, func(l *resourceLabels) **resourceLabels { return &l.sibling },
		func(l *resourceLabels) bool { return l.marked == x.mark })
	sweep(t.scopes, func(s *scope) **scope { return &s.sibling }, func(s *scope) bool { return s.marked == x.mark })
	t.layouts.Sweep(func(n uint32) bool { return x.e.layouts.One(n).marked == x.mark })
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
	return pending || t.points.Len() > 0 || len(t.resources) > 0
}

// buffer keeps what b refers to, and says whether that is anything.
func (x *expiry) buffer(b *buffer) bool {
	for _, s := range b.series {
		x.keepSeries(s)
	}
	for _, bt := range b.batches {
		x.keepLabels(bt.labels)
	}
	return b.samples.len() > 0
}

// slabs frees what no table and nothing pending refers to any more.
func (x *expiry) slabs() {
	e := x.e
	parts := make([]bool, e.parts.Size())
	for i := range e.out {
		parts[e.out[i].parts] = true
	}
	e.points.Sweep(func(n uint32) bool {
		p := e.points.One(n)
		if p.form != 0 {
			parts[p.parts] = true
		}
		return p.form != 0
	})
	e.parts.Sweep(func(n uint32) bool { return parts[n] })
	e.series.Sweep(func(n uint32) bool { return e.series.One(n).marked == x.mark })
	e.forms.Sweep(func(n uint32) bool { return e.forms.One(n).marked == x.mark })
	e.layouts.Sweep(func(n uint32) bool { return e.layouts.One(n).marked == x.mark })
	e.recent.forget(e.listed)
	for width, s := range e.values {
		kept := x.values[width]
		s.Sweep(func(n uint32) bool { return kept[n] })
	}
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
