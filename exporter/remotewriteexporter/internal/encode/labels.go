// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package encode

import (
	"slices"
	"strings"

	"go.opentelemetry.io/collector/pdata/pcommon"

	"github.com/godwit-otel/godwit/exporter/remotewriteexporter/internal/encode/attribute"
	"github.com/godwit-otel/godwit/exporter/remotewriteexporter/internal/encode/names"
)

// seriesLabel is a label of a layout being made. Its value is its own or, when from is positive, that of the
// resource's label from-1 or, when attribute is positive, that of the point's attribute attribute-1. One that is from
// removed only says that no other label of its name is to be there.
type seriesLabel struct {
	names.Label

	own       bool // made of the point's attributes
	from      int
	attribute int
}

const removed = -1

// A labelSet is a list of labels without a name twice.
type labelSet struct {
	list []seriesLabel
	at   names.Places
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
	if i := s.find(l.Name); i >= 0 {
		s.list[i] = l
		return
	}
	if s.at != nil {
		s.at[l.Name] = len(s.list)
	}
	s.list = append(s.list, l)
}

// pointLabels are the labels of a point without its name, in no order: attributes, then what the resource
// contributes, external labels where there is room, and the scope's over all.
func (e *Encoder) pointLabels(f *family, m pcommon.Map) ([]seriesLabel, error) {
	own, err := e.names.Attributes(m, nil)
	if err != nil {
		return nil, err
	}
	n := len(own) + len(f.schema.names) + len(e.names.External) + 3
	out := labelSet{make([]seriesLabel, 0, n), names.PlacesFor(n)}
	for _, l := range own { // which has no name twice
		if out.at != nil {
			out.at[l.Name] = len(out.list)
		}
		out.list = append(out.list, seriesLabel{Label: l, own: true})
	}
	for i, name := range f.schema.names {
		// Job and instance identify the target: a point's attributes of these names give way.
		if e.cfg.ResourceWins || name == names.JobLabel || name == names.InstanceLabel || !out.has(name) {
			out.set(f.schema.label(i))
		}
	}
	for _, l := range e.names.External {
		if !out.has(l.Name) {
			out.set(seriesLabel{Label: l})
		}
	}
	if f.scope != nil {
		for _, l := range f.scope.labels {
			out.set(seriesLabel{Label: l})
		}
	}
	return slices.DeleteFunc(out.list, func(l seriesLabel) bool { return l.from == removed }), nil
}

func indexOf(list []seriesLabel, name string) int {
	return slices.IndexFunc(list, func(l seriesLabel) bool { return l.Name == name })
}

// set puts l in the place of a label of its name, or at the end.
func set(list []seriesLabel, l seriesLabel) []seriesLabel {
	if i := indexOf(list, l.Name); i >= 0 {
		list[i] = l
		return list
	}
	return append(list, l)
}

// with is a copy of list with more labels set.
func with(list []seriesLabel, more ...names.Label) []seriesLabel {
	list = append(make([]seriesLabel, 0, len(list)+len(more)), list...)
	for _, l := range more {
		list = set(list, seriesLabel{Label: l})
	}
	return list
}

// scope is an instrumentation scope whose labels are wanted.
type scope struct {
	name, version string
	attributes    attributes
	labels        []names.Label
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
	text := e.symbols.Snapshot()
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
	at := names.PlacesFor(s.Attributes().Len() + 2)
	add := func(key, value string) {
		if name, err := e.names.Label("otel_scope_" + key); err == nil && value != "" {
			i := at.Find(c.labels, name)
			if i < 0 {
				if at != nil {
					at[name] = len(c.labels)
				}
				c.labels = append(c.labels, names.Label{Name: name, Value: value})
			} else {
				c.labels[i].Value = value
			}
		}
	}
	const nameKey, versionKey, schemaKey = "name", "version", "schema_url"
	add(nameKey, c.name)
	add(versionKey, c.version)
	for k, v := range s.Attributes().All() {
		if k != nameKey && k != versionKey && k != schemaKey {
			add(k, strings.Clone(attribute.Text(v)))
		}
	}
	if e.listed < e.cfg.MaxSeries {
		t.scopes[h] = c
	}
	return c
}
