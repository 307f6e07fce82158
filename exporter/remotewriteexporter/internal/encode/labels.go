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
	typeLabel     = "__type__"
	unitLabel     = "__unit__"
)

type label struct {
	name, value string
}

// seriesLabel is a label of a layout being made. Its value is its own or, when from is positive, that of the
// resource's label from-1 or, when attribute is positive, that of the point's attribute attribute-1. One that is from
// removed only says that no other label of its name is to be there.
type seriesLabel struct {
	label

	own       bool // made of the point's attributes
	from      int
	attribute int
}

const removed = -1

func byName(a, b label) int { return cmp.Compare(a.name, b.name) }

// fewLabels are looked through one by one, faster than any map is made; sets of more than that have an index, since a
// point may come with any number of labels.
const fewLabels = 32

// places tells where in a list each name is.
type places map[string]int

// placesFor returns nil for a list so short that it is looked through.
func placesFor(n int) places {
	if n <= fewLabels {
		return nil
	}
	return make(places, n)
}

// attributeLabels translates attributes. Keys that become one name are joined, their values in the order of the
// keys as they were. Only err says that the attributes make no labels.
func (e *Encoder) attributeLabels(m pcommon.Map, skip func(key string) bool) ([]label, error) {
	list := make([]label, 0, m.Len()+4)
	for k, v := range m.All() {
		if value := PlainText(v); value != "" && (skip == nil || !skip(k)) {
			list = append(list, label{k, value})
		}
	}
	slices.SortStableFunc(list, byName)
	out, at := list[:0], placesFor(len(list))
	var joined map[int][]byte // values that grow
	for _, l := range list {
		name, err := e.labelNamer.Build(l.name)
		if err != nil {
			return nil, err
		}
		i := at.find(out, name)
		if i < 0 {
			if at != nil {
				at[name] = len(out)
			}
			out = append(out, label{name, l.value})
			continue
		}
		value, grows := joined[i]
		if !grows {
			value = []byte(out[i].value)
		}
		if string(value) == l.value {
			continue
		}
		if joined == nil {
			joined = map[int][]byte{}
		}
		joined[i] = append(append(value, ';'), l.value...)
	}
	for i, value := range joined {
		out[i].value = string(value)
	}
	return out, nil
}

// find returns the place of a name in list, or -1.
func (at places) find(list []label, name string) int {
	if at == nil {
		return slices.IndexFunc(list, func(l label) bool { return l.name == name })
	}
	if i, ok := at[name]; ok {
		return i
	}
	return -1
}

// A labelSet is a list of labels without a name twice.
type labelSet struct {
	list []seriesLabel
	at   places
}

func (s *labelSet) has(name string) bool { return s.find(name) >= 0 }

func (s *labelSet) find(name string) int {
	if s.at == nil {
		return indexOf(s.list, name)
	}
	if i, ok := s.at[name]; ok {
		return i
	}
	return -1
}

// set puts l in the place of a label of its name, or at the end.
func (s *labelSet) set(l seriesLabel) {
	if i := s.find(l.name); i >= 0 {
		s.list[i] = l
		return
	}
	if s.at != nil {
		s.at[l.name] = len(s.list)
	}
	s.list = append(s.list, l)
}

// pointLabels are the labels of a point without its name, in no order: attributes, then what the resource
// contributes, external labels where there is room, and the scope's over all.
func (e *Encoder) pointLabels(f *family, m pcommon.Map) ([]seriesLabel, error) {
	own, err := e.attributeLabels(m, nil)
	if err != nil {
		return nil, err
	}
	n := len(own) + len(f.schema.names) + len(e.external) + 3
	out := labelSet{make([]seriesLabel, 0, n), placesFor(n)}
	for _, l := range own { // which has no name twice
		if out.at != nil {
			out.at[l.name] = len(out.list)
		}
		out.list = append(out.list, seriesLabel{label: l, own: true})
	}
	for i, name := range f.schema.names {
		// Job and instance identify the target: a point's attributes of these names give way.
		if e.cfg.ResourceWins || name == jobLabel || name == instanceLabel || !out.has(name) {
			out.set(f.schema.label(i))
		}
	}
	for _, l := range e.external {
		if !out.has(l.name) {
			out.set(seriesLabel{label: l})
		}
	}
	if f.scope != nil {
		for _, l := range f.scope.labels {
			out.set(seriesLabel{label: l})
		}
	}
	return slices.DeleteFunc(out.list, func(l seriesLabel) bool { return l.from == removed }), nil
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
	at := placesFor(s.Attributes().Len() + 2)
	add := func(key, value string) {
		if name, err := e.labelNamer.Build("otel_scope_" + key); err == nil && value != "" {
			i := at.find(c.labels, name)
			if i < 0 {
				if at != nil {
					at[name] = len(c.labels)
				}
				c.labels = append(c.labels, label{name, value})
			} else {
				c.labels[i].value = value
			}
		}
	}
	const nameKey, versionKey, schemaKey = "name", "version", "schema_url"
	add(nameKey, c.name)
	add(versionKey, c.version)
	for k, v := range s.Attributes().All() {
		if k != nameKey && k != versionKey && k != schemaKey {
			add(k, strings.Clone(PlainText(v)))
		}
	}
	if e.listed < e.cfg.MaxSeries {
		t.scopes[h] = c
	}
	return c
}
