// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package cache

import (
	"slices"

	"go.opentelemetry.io/collector/pdata/pcommon"

	"github.com/godwit-otel/godwit/exporter/remotewriteexporter/internal/encode/names"
)

// seriesLabel is a label of a layout being made. Its value is its own or, if from is positive, that of the resource's
// label from-1 or, if attribute is positive, that of the point's attribute attribute-1. A label whose from is removed
// only keeps others of its name out.
type seriesLabel struct {
	names.Label

	own       bool // made from the point's attributes
	from      int
	attribute int
}

const removed = -1

// A labelSet is a list of labels with unique names.
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

// set replaces the label of that name, or adds one.
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

// pointLabels returns the labels of a point without its name, unsorted: attributes, then the resource's, external
// labels whose names are free, and the scope's, which override all.
func (c *Cache) pointLabels(f *Family, m pcommon.Map) ([]seriesLabel, error) {
	own, err := c.names.Attributes(m, nil)
	if err != nil {
		return nil, err
	}
	n := len(own) + len(f.Schema.Names) + len(c.names.External) + 3
	out := labelSet{make([]seriesLabel, 0, n), names.PlacesFor(n)}
	for _, l := range own { // its names are unique
		if out.at != nil {
			out.at[l.Name] = len(out.list)
		}
		out.list = append(out.list, seriesLabel{Label: l, own: true})
	}
	for i, name := range f.Schema.Names {
		// Job and instance identify the target: a point's attributes of these names are overridden.
		if c.cfg.ResourceWins || name == names.JobLabel || name == names.InstanceLabel || !out.has(name) {
			out.set(f.Schema.label(i))
		}
	}
	for _, l := range c.names.External {
		if !out.has(l.Name) {
			out.set(seriesLabel{Label: l})
		}
	}
	if f.Scope != nil {
		for _, l := range f.Scope.labels {
			out.set(seriesLabel{Label: l})
		}
	}
	return slices.DeleteFunc(out.list, func(l seriesLabel) bool { return l.from == removed }), nil
}

func indexOf(list []seriesLabel, name string) int {
	return slices.IndexFunc(list, func(l seriesLabel) bool { return l.Name == name })
}

// set replaces the label of that name, or adds one.
func set(list []seriesLabel, l seriesLabel) []seriesLabel {
	if i := indexOf(list, l.Name); i >= 0 {
		list[i] = l
		return list
	}
	return append(list, l)
}

// with returns a copy of list with more labels set.
func with(list []seriesLabel, more ...names.Label) []seriesLabel {
	list = append(make([]seriesLabel, 0, len(list)+len(more)), list...)
	for _, l := range more {
		list = set(list, seriesLabel{Label: l})
	}
	return list
}
