// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package cache

import (
	"cmp"
	"slices"

	"github.com/prometheus/prometheus/model/labels"

	"github.com/godwit-otel/godwit/exporter/remotewriteexporter/internal/encode/names"
	"github.com/godwit-otel/godwit/exporter/remotewriteexporter/internal/encode/store"
)

// outcome describes what becomes of a series of which rules leave nothing: a series without a layout stands for it.
type outcome struct {
	series Series
	parts  uint32 // of a point of which nothing else is left
}

// The outcomes.
const (
	outDropped  = 0 // dropped by rules
	outUnusable = 1 // what rules leave cannot be sent
)

// Limits of the bytes and the number of labels that rules are applied to: regular expressions may take long, and some
// rules take quadratic time.
const (
	maxRuled       = 1 << 20
	maxRuledLabels = 2000
)

// IsSeries reports whether s is a series, and does not stand for an outcome.
func IsSeries(s *Series) bool { return s.Layout != 0 }

// OutcomeOf returns the series that stands for the outcome of a point with these parts; nil if there is none.
func (c *Cache) OutcomeOf(parts uint32) *Series {
	for i := range c.out {
		if parts != 0 && c.out[i].parts == parts {
			return &c.out[i].series
		}
	}
	return nil
}

// IsDropped reports whether rules dropped the series that s stands for.
func (c *Cache) IsDropped(s *Series) bool { return s == &c.out[outDropped].series }

// fillByRules makes the series of a new point by the rules. The table must be locked.
func (c *Cache) fillByRules(t *Tenant, p *Point, f *Form) {
	layouts := f.layouts
	if f.single {
		n, out := c.applyRules(t, f.Family.Schema, layouts[0], p.Values)
		p.One, layouts = n, layouts[1:]
		if out != nil && len(layouts) == 0 {
			p.Parts = out.parts
			return
		}
	}
	if len(layouts) == 0 {
		return
	}
	parts := make([]*Series, 0, len(layouts))
	for _, l := range layouts {
		if n, out := c.applyRules(t, f.Family.Schema, l, p.Values); out != nil {
			parts = append(parts, &out.series)
		} else {
			parts = append(parts, c.Series.One(n))
		}
	}
	p.Parts = c.Parts.Add()
	*c.Parts.One(p.Parts) = parts
}

// applyRules returns the series that rules make of a layout and values, or their outcome. The table must be locked.
func (c *Cache) applyRules(t *Tenant, s *Schema, n, values uint32) (uint32, *outcome) {
	r := c.Row(&Series{Layout: n, Values: values})
	text := c.Symbols.Snapshot()
	list, size := c.ruling[:0], 0
	for _, l := range r.Layout.Labels {
		value := ""
		if l.Value&FromResource == 0 {
			value = text[r.Ref(l)]
		} else if s.read != nil {
			value = s.read[l.Value&PlaceMask]
		}
		if value != "" { // no rule needs an empty value
			list = append(list, names.Label{Name: text[l.Name], Value: value})
			size += len(text[l.Name]) + len(value)
		}
	}
	c.ruling = list
	defer clear(list)
	if size > maxRuled || len(list) > maxRuledLabels {
		return 0, &c.out[outUnusable]
	}
	before, after, keep := c.rules.Apply(list)
	switch {
	case !keep:
		return 0, &c.out[outDropped]
	case labels.Equal(before, after):
		return c.seriesOf(t, n, values), nil
	case !c.rules.Valid(after):
		return 0, &c.out[outUnusable]
	}
	n, values = c.layoutOfResult(t, &r, values, after)
	return c.seriesOf(t, n, values), nil
}

// layoutOfResult returns the layout and the values of a row's labels after rules: the point's own values if none has
// changed, or new ones, so that points that differ in nothing else still share a layout.
func (c *Cache) layoutOfResult(t *Tenant, r *Row, values uint32, after labels.Labels) (n, newValues uint32) {
	text := c.Symbols.Snapshot()
	find := func(name, value string) (l LabelRef, same bool) {
		i, ok := slices.BinarySearchFunc(r.Layout.Labels, name, func(l LabelRef, name string) int { return cmp.Compare(text[l.Name], name) })
		if !ok {
			return l, false
		}
		l = r.Layout.Labels[i]
		return l, l.Value&FromResource != 0 || text[r.Ref(l)] == value // no rule sets a label that keeps its place
	}
	made := Layout{Schema: r.Layout.Schema, Meta: r.Layout.Meta, Labels: make([]LabelRef, 0, after.Len()+len(r.Layout.Schema.Names))}
	asTheyCame := true
	after.Range(func(l labels.Label) {
		_, same := find(l.Name, l.Value)
		asTheyCame = asTheyCame && (same || l.Name == names.NameLabel)
	})
	var own ids
	after.Range(func(l labels.Label) {
		was, same := find(l.Name, l.Value)
		if same && was.Value&FromResource != 0 {
			return // along with the others
		}
		ref := LabelRef{Name: c.Symbols.Intern(l.Name)}
		switch {
		case same && (asTheyCame || was.Value&^PlaceMask == 0):
			ref.Value = was.Value
			if ref.Value&FromPoint != 0 {
				made.Keys = r.Layout.Keys
			}
		case l.Name == names.NameLabel:
			ref.Value = c.Symbols.Intern(l.Value)
		default:
			ref.Value = uint32(len(own)) | FromPoint
			own = append(own, c.Symbols.Intern(l.Value))
		}
		made.Labels = append(made.Labels, ref)
	})
	for _, l := range r.Layout.Labels {
		if l.Value&FromResource != 0 {
			made.Labels = append(made.Labels, l)
		}
	}
	if made.Keys != nil {
		newValues = values
	}
	if len(own) > 0 {
		made.Keys = c.sets.width(len(own))
		newValues = made.Keys.values.Add()
		c.sets.ids += len(own)
		copy(made.Keys.values.Run(newValues), own)
	}
	text = c.Symbols.Snapshot()
	slices.SortStableFunc(made.Labels, func(a, b LabelRef) int { return cmp.Compare(text[a.Name], text[b.Name]) })
	made.weight = uint32(made.Meta.weight())
	for _, l := range made.Labels {
		made.weight += uint32(len(text[l.Name]) + 16)
		if l.Value&^PlaceMask == 0 {
			made.weight += uint32(len(text[l.Value]))
		}
	}
	return c.sharedLayout(t, made), newValues
}

// sharedLayout returns the layout with these sorted labels, which it makes if needed. The table must be locked.
func (c *Cache) sharedLayout(t *Tenant, made Layout) uint32 {
	hash := c.layoutHash(&made)
	for n := range t.layouts.Of(hash) {
		l := c.Layouts.One(n)
		if l.Schema == made.Schema && l.Meta == made.Meta && l.Keys == made.Keys && slices.Equal(l.Labels, made.Labels) {
			return n
		}
	}
	n := c.Layouts.Add()
	*c.Layouts.One(n) = made
	t.layouts.Insert(hash, n)
	return n
}

func (c *Cache) layoutHash(l *Layout) uint32 {
	h := l.Schema.id
	for _, x := range l.Labels {
		h = store.Mix(h, uint64(x.Name)<<32|uint64(x.Value))
	}
	return store.Fold(h & c.HashMask)
}
