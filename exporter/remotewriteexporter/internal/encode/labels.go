// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package encode

import (
	"cmp"
	"slices"
	"strings"

	"go.opentelemetry.io/collector/pdata/pcommon"
)

const (
	nameLabel     = "__name__"
	jobLabel      = "job"
	instanceLabel = "instance"
)

type label struct {
	name, value string
}

// seriesLabel is a label of a layout being made. Its value is its own or, when from is positive, that of the
// resource's label from-1 or, when attribute is positive, that of the point's attribute attribute-1.
type seriesLabel struct {
	label

	own       bool // made of the point's attributes
	from      int
	attribute int
}

func byName(a, b label) int { return cmp.Compare(a.name, b.name) }

// attributeLabels translates attributes. Keys that become one name are joined, their values in the order of the
// keys as they were. Only err says that the attributes make no labels.
func (e *Encoder) attributeLabels(m pcommon.Map, skip func(key string) bool) ([]label, error) {
	list := make([]label, 0, m.Len()+4)
	for k, v := range m.All() {
		if value := v.AsString(); value != "" && (skip == nil || !skip(k)) {
			list = append(list, label{k, value})
		}
	}
	slices.SortStableFunc(list, byName)
	out := list[:0]
	for _, l := range list {
		name, err := e.labelNamer.Build(l.name)
		if err != nil {
			return nil, err
		}
		if i := slices.IndexFunc(out, func(o label) bool { return o.name == name }); i < 0 {
			out = append(out, label{name, l.value})
		} else if out[i].value != l.value {
			out[i].value += ";" + l.value
		}
	}
	return out, nil
}

// pointLabels are the labels of a point without its name, in no order: attributes, then what the resource
// contributes, external labels where there is room, and the scope's over all.
func (e *Encoder) pointLabels(f *family, m pcommon.Map) ([]seriesLabel, error) {
	own, err := e.attributeLabels(m, nil)
	if err != nil {
		return nil, err
	}
	list := make([]seriesLabel, 0, len(own)+len(f.schema.names)+len(e.external)+3)
	for _, l := range own {
		list = append(list, seriesLabel{label: l, own: true})
	}
	for i, name := range f.schema.names {
		// Job and instance identify the target: a point's attributes of these names give way.
		if e.cfg.ResourceWins || name == jobLabel || name == instanceLabel || indexOf(list, name) < 0 {
			list = set(list, seriesLabel{label: label{name: name}, from: i + 1})
		}
	}
	for _, l := range e.external {
		if indexOf(list, l.name) < 0 {
			list = append(list, seriesLabel{label: l})
		}
	}
	if f.scope != nil {
		for _, l := range f.scope.labels {
			list = set(list, seriesLabel{label: l})
		}
	}
	return list, nil
}

func indexOf(list []seriesLabel, name string) int {
	return slices.IndexFunc(list, func(l seriesLabel) bool { return l.name == name })
}

// set puts l in the place of a label of its name, or at the end.
func set(list []seriesLabel, l seriesLabel) []seriesLabel {
	if i := indexOf(list, l.name); i >= 0 {
		list[i] = l
		return list
	}
	return append(list, l)
}

// with is a copy of list with more labels set.
func with(list []seriesLabel, more ...label) []seriesLabel {
	list = append(make([]seriesLabel, 0, len(list)+len(more)), list...)
	for _, l := range more {
		list = set(list, seriesLabel{label: l})
	}
	return list
}

// scope is an instrumentation scope whose labels are wanted.
type scope struct {
	name, version string
	attributes    attributes
	labels        []label
	id            uint64
	sibling       *scope
	marked        mark
}

// scraped says whether a scope is that of a receiver that scrapes.
func scraped(name string) bool {
	return strings.HasSuffix(name, "/prometheusreceiver") || strings.HasSuffix(name, "/fastprometheusreceiver")
}

// scope finds or makes the scope that s's series shall name; nil for none.
func (e *Encoder) scope(t *tenant, s pcommon.InstrumentationScope, scraped bool) *scope {
	switch {
	case e.cfg.ScopeLabels == ScopeLabelsOff, e.cfg.ScopeLabels == ScopeLabelsAuto && scraped:
		return nil
	case s.Name() == "" && s.Version() == "" && s.Attributes().Len() == 0:
		return nil
	}
	h := e.hashMap(e.hashString(e.hashString(0, s.Name()), s.Version()), s.Attributes()) & e.hashMask
	e.tableMu.Lock()
	defer e.tableMu.Unlock()
	text := e.symbols.snapshot()
	for c := t.scopes[h]; c != nil; c = c.sibling {
		if c.name == s.Name() && c.version == s.Version() && c.attributes.keys.match(s.Attributes(), c.attributes.values, text) {
			return c
		}
	}
	e.familyIDs++
	c := &scope{
		name: e.keep(s.Name()), version: e.keep(s.Version()), attributes: e.remember(s.Attributes()),
		id: e.familyIDs, sibling: t.scopes[h],
	}
	add := func(key, value string) {
		if name, err := e.labelNamer.Build("otel_scope_" + key); err == nil && value != "" {
			i := slices.IndexFunc(c.labels, func(l label) bool { return l.name == name })
			if i < 0 {
				c.labels = append(c.labels, label{name, value})
			} else {
				c.labels[i].value = value
			}
		}
	}
	add("name", c.name)
	add("version", c.version)
	for k, v := range s.Attributes().All() {
		if k != "name" && k != "version" && k != "schema_url" {
			add(k, strings.Clone(v.AsString()))
		}
	}
	if e.listed < e.cfg.MaxSeries {
		t.scopes[h] = c
	}
	return c
}
