// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package encode

import (
	"cmp"
	"slices"

	"github.com/prometheus/prometheus/model/labels"

	"github.com/godwit-otel/godwit/exporter/remotewriteexporter/internal/encode/loss"
	"github.com/godwit-otel/godwit/exporter/remotewriteexporter/internal/encode/names"
	"github.com/godwit-otel/godwit/exporter/remotewriteexporter/internal/encode/store"
)

// outcome is what becomes of a series of which rules leave none: its place is taken by a series without a layout.
type outcome struct {
	series series
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

func isSeries(s *series) bool { return s.layout != 0 }

// outcomeOf is the outcome of a point with these parts; nil if it is none.
func (e *Encoder) outcomeOf(parts uint32) *outcome {
	for i := range e.out {
		if parts != 0 && e.out[i].parts == parts {
			return &e.out[i]
		}
	}
	return nil
}

// leaveOut counts a sample of an outcome's series.
func (w *walk) leaveOut(s *series) {
	if s == &w.e.out[outDropped].series {
		w.ruledOut++
		return
	}
	w.e.losses.Add(loss.Rules, w.family.name, 1)
}

// fillByRules makes the series of a new point as the rules say. The table is locked.
func (e *Encoder) fillByRules(t *tenant, p *point, f *form) {
	layouts := f.layouts
	if f.single {
		n, out := e.ruled(t, f.family.schema, layouts[0], p.values)
		p.one, layouts = n, layouts[1:]
		if out != nil && len(layouts) == 0 {
			p.parts = out.parts
			return
		}
	}
	if len(layouts) == 0 {
		return
	}
	parts := make([]*series, 0, len(layouts))
	for _, l := range layouts {
		if n, out := e.ruled(t, f.family.schema, l, p.values); out != nil {
			parts = append(parts, &out.series)
		} else {
			parts = append(parts, e.series.One(n))
		}
	}
	p.parts = e.parts.Add()
	*e.parts.One(p.parts) = parts
}

// ruled is the series that rules make of a layout, made for a schema, and values, or else the outcome. The table is locked.
func (e *Encoder) ruled(t *tenant, s *schema, n, values uint32) (uint32, *outcome) {
	r := e.row(&series{layout: n, values: values})
	text := e.symbols.Snapshot()
	list, size := e.ruling[:0], 0
	for _, l := range r.layout.labels {
		value := ""
		if l.value&fromResource == 0 {
			value = text[r.ref(l)]
		} else if s.read != nil {
			value = s.read[l.value&placeMask]
		}
		if value != "" { // else no rule wants to know
			list = append(list, names.Label{Name: text[l.name], Value: value})
			size += len(text[l.name]) + len(value)
		}
	}
	e.ruling = list
	defer clear(list)
	if size > maxRuled || len(list) > maxRuledLabels {
		return 0, &e.out[outUnusable]
	}
	before, after, keep := e.rules.Apply(list)
	switch {
	case !keep:
		return 0, &e.out[outDropped]
	case labels.Equal(before, after):
		return e.seriesOf(t, n, values), nil
	case !e.rules.Valid(after):
		return 0, &e.out[outUnusable]
	}
	n, values = e.relabelled(t, &r, values, after)
	return e.seriesOf(t, n, values), nil
}

// relabelled is the layout, and the values, of what rules have made of the labels of a row: the point's own values, if none
// of them has changed, or else others, so that points that differ in nothing else have one layout all the same.
func (e *Encoder) relabelled(t *tenant, r *row, values uint32, after labels.Labels) (n, newValues uint32) {
	text := e.symbols.Snapshot()
	find := func(name, value string) (l labelRef, same bool) {
		i, ok := slices.BinarySearchFunc(r.layout.labels, name, func(l labelRef, name string) int { return cmp.Compare(text[l.name], name) })
		if !ok {
			return l, false
		}
		l = r.layout.labels[i]
		return l, l.value&fromResource != 0 || text[r.ref(l)] == value // no rule sets what keeps its place
	}
	made := layout{schema: r.layout.schema, meta: r.layout.meta, labels: make([]labelRef, 0, after.Len()+len(r.layout.schema.names))}
	asTheyCame := true
	after.Range(func(l labels.Label) {
		_, same := find(l.Name, l.Value)
		asTheyCame = asTheyCame && (same || l.Name == names.NameLabel)
	})
	var own ids
	after.Range(func(l labels.Label) {
		was, same := find(l.Name, l.Value)
		if same && was.value&fromResource != 0 {
			return // with the others that are
		}
		ref := labelRef{name: e.symbols.Intern(l.Name)}
		switch {
		case same && (asTheyCame || was.value&^placeMask == 0):
			ref.value = was.value
			if ref.value&fromPoint != 0 {
				made.keys = r.layout.keys
			}
		case l.Name == names.NameLabel:
			ref.value = e.symbols.Intern(l.Value)
		default:
			ref.value = uint32(len(own)) | fromPoint
			own = append(own, e.symbols.Intern(l.Value))
		}
		made.labels = append(made.labels, ref)
	})
	for _, l := range r.layout.labels {
		if l.value&fromResource != 0 {
			made.labels = append(made.labels, l)
		}
	}
	if made.keys != nil {
		newValues = values
	}
	if len(own) > 0 {
		made.keys = e.width(len(own))
		newValues = made.keys.values.Add()
		copy(made.keys.values.Run(newValues), own)
	}
	text = e.symbols.Snapshot()
	slices.SortFunc(made.labels, func(a, b labelRef) int { return cmp.Compare(text[a.name], text[b.name]) })
	made.weight = made.meta.weight()
	for _, l := range made.labels {
		made.weight += len(text[l.name]) + 16
		if l.value&^placeMask == 0 {
			made.weight += len(text[l.value])
		}
	}
	return e.sharedLayout(t, made), newValues
}

// width are keys for values that are no attributes'. The table is locked.
func (e *Encoder) width(n int) *keys {
	k := e.widths[n]
	if k == nil {
		k = &keys{names: make([]string, n), values: e.valuesOf(n)}
		e.widths[n] = k
	}
	return k
}

// sharedLayout finds or makes a layout of sorted labels. The table is locked.
func (e *Encoder) sharedLayout(t *tenant, made layout) uint32 {
	h := made.schema.id
	for _, l := range made.labels {
		h = store.Mix(h, uint64(l.name)<<32|uint64(l.value))
	}
	hash := store.Fold(h & e.hashMask)
	for n := range t.layouts.Of(hash) {
		l := e.layouts.One(n)
		if l.schema == made.schema && l.meta == made.meta && l.keys == made.keys && slices.Equal(l.labels, made.labels) {
			return n
		}
	}
	n := e.layouts.Add()
	*e.layouts.One(n) = made
	t.layouts.Insert(hash, n)
	return n
}
