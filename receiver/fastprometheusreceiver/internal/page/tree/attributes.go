// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package tree

import (
	"go.opentelemetry.io/collector/pdata/pcommon"

	"github.com/godwit-otel/godwit/internal/slab"
)

// manyAttributes is the number of attributes from which on a map is filled all at once. One by one, pcommon.Map
// compares each with all that it already has, which takes seconds for the labels of a hostile line.
const manyAttributes = 64

// attributes fills a map. flush must be called at the end.
type attributes struct {
	pcommon.Map

	many  *namedValues // nil if there are few
	slabs *slab.Slabs  // nil if a name may come twice, or the map is kept
}

// namedValues are attributes in the order in which their names first came. The order is the same each time, so that
// consumers recognise the series.
type namedValues struct {
	names, values []string
	at            map[string]int
}

func (n *namedValues) put(name, value string) {
	i, ok := n.at[name]
	if !ok {
		i = len(n.names)
		n.at[name] = i
		n.names, n.values = append(n.names, name), append(n.values, "")
	}
	n.values[i] = value
}

func (n *namedValues) all(yield func(name, value string) bool) {
	for i, name := range n.names {
		if !yield(name, n.values[i]) {
			return
		}
	}
}

// fillAttributes begins to fill an empty map with up to most attributes.
func fillAttributes(m pcommon.Map, most int) attributes {
	if most > manyAttributes {
		return attributes{Map: m, many: &namedValues{at: make(map[string]int, most)}}
	}
	m.EnsureCapacity(most)
	return attributes{Map: m}
}

// put sets an attribute.
func (a *attributes) put(name, value string) {
	switch {
	case a.many != nil:
		a.many.put(name, value)
	case a.slabs != nil:
		a.slabs.PutStr(a.Map, name, value)
	default:
		a.PutStr(name, value)
	}
}

// fillOnce begins to fill a map with attributes whose names all differ. It takes memory from slabs, if given.
func fillOnce(m pcommon.Map, most int, slabs *slab.Slabs) attributes {
	if slabs == nil || most > manyAttributes {
		return fillAttributes(m, most)
	}
	slabs.Reserve(m, most)
	return attributes{Map: m, slabs: slabs}
}

func (a *attributes) flush() {
	if a.many != nil {
		new(slab.Slabs).PutAll(a.Map, len(a.many.names), a.many.all)
	}
}
