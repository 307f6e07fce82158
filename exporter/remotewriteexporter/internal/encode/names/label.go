// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package names

import (
	"cmp"
	"slices"
)

// Labels with a meaning to Prometheus.
const (
	NameLabel     = "__name__"
	JobLabel      = "job"
	InstanceLabel = "instance"
	typeLabel     = "__type__"
	unitLabel     = "__unit__"
)

// Label is a label of a series.
type Label struct {
	Name, Value string
}

// ByName sorts labels.
func ByName(a, b Label) int { return cmp.Compare(a.Name, b.Name) }

// fewLabels is the number of labels up to which a linear search is faster than a map; larger sets have an index, since
// a point may have any number of labels.
const fewLabels = 32

// Places is an index of names in a list of labels.
type Places map[string]int

// PlacesFor returns nil for a list so short that a linear search is faster.
func PlacesFor(n int) Places {
	if n <= fewLabels {
		return nil
	}
	return make(Places, n)
}

// Find returns the index of a name in list, or -1.
func (at Places) Find(list []Label, name string) int {
	if at == nil {
		return slices.IndexFunc(list, func(l Label) bool { return l.Name == name })
	}
	if i, ok := at[name]; ok {
		return i
	}
	return -1
}
