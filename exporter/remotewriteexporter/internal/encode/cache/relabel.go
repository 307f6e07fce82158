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

// outcome is what becomes of a series of which rules leave none: its place is taken by a series without a layout.
type outcome struct {
	series Series
	parts  uint32 // of a point of which there is nothing else: parts that there are none of
}

// The outcomes.
const (
	outDropped  = 0 // as the rules say
	outUnusable = 1 // what they leave cannot be sent
)

// Rules are applied to no more bytes of labels, and no more of these: regular expressions may take long, and what some rules
// take grows with the square of the labels.
const (
	maxRuled       = 1 << 20
	maxRuledLabels = 2000
)

// IsSeries says whether s is one, and does not stand for an outcome.
func IsSeries(s *Series) bool { return s.Layout != 0 }

// OutcomeOf is the series that stands for the outcome of a point with these parts; nil if it is none.
func (c *Cache) OutcomeOf(parts uint32) *Series {
	for i := range c.out {
		if parts != 0 && c.out[i].parts == parts {
			return &c.out[i].series
		}
	}
	return nil
}

// IsDropped says whether rules drop what a series of no layout stands for.
func (c *Cache) IsDropped(s *Series) bool { return s == &c.out[outDropped].series }

// fillByRules makes the series of a new point as the rules say. The table is locked.
func (c *Cache) fillByRules(t *Tenant, p *Point, f *Form) {
	layouts := f.layouts
	if f.single {
		n, out := c.ruled(t, f.Family.Schema, layouts[0], p.Values)
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
		if n, out := c.ruled(t, f.Family.Schema, l, p.Values); out != nil {
			parts = append(parts, &out.series)
		} else {
			parts = append(parts, c.Series.One(n))
		}
	}
	p.Parts = c.Parts.Add()
	*c.Parts.One(p.Parts) = parts
}

// ruled is the series that rules make of a layout, made for a schema, and values, or else the outcome. The table is locked.
func (c *Cache) ruled(t *Tenant, s *Schema, n, values uint32) (uint32, *outcome) {
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
		if value != "" { // else no rule wants to know
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
	n, values = c.relabelled(t, &r, values, after)
	return c.seriesOf(t, n, values), nil
}

// relabelled is the layout, and the values, of what rules have made of the labels of a row: the point's own values, if none
// of them has changed, or else others, so that points that differ in nothing else have one layout all the same.
func (c *Cache) relabelled(t *Tenant, r *Row, values uint32, after labels.Labels) (n, newValues uint32) {
	text := c.Symbols.Snapshot()
	find := func(name, value string) (l LabelRef, same bool) {
		i, ok := slices.BinarySearchFunc(r.Layout.Labels, name, func(l LabelRef, name string) int { return cmp.Compare(text[l.Name], name) })
		if !ok {
			return l, false
		}
		l = r.Layout.Labels[i]
		return l, l.Value&FromResource != 0 || text[r.Ref(l)] == value // no rule sets what keeps its place
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
			return // with the others that are
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
		copy(made.Keys.values.Run(newValues), own)
	}
	text = c.Symbols.Snapshot()
	slices.SortStableFunc(made.Labels, func(a, b LabelRef) int { return cmp.Compare(text[a.Name], text[b.Name]) })
	made.weight = made.Meta.weight()
	for _, l := range made.Labels {
		made.weight += len(text[l.Name]) + 16
		if l.Value&^PlaceMask == 0 {
			made.weight += len(text[l.Value])
		}
	}
	return c.sharedLayout(t, made), newValues
}

// sharedLayout finds or makes a layout of sorted labels. The table is locked.
func (c *Cache) sharedLayout(t *Tenant, made Layout) uint32 {
	h := made.Schema.id
	for _, l := range made.Labels {
		h = store.Mix(h, uint64(l.Name)<<32|uint64(l.Value))
	}
	hash := store.Fold(h & c.HashMask)
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
