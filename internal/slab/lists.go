// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package slab

import "go.opentelemetry.io/collector/pdata/pcommon"

// Lists are lists of attributes with copies of their content. PutBack restores it, whatever was done to them through
// pdata's API, except within values that are maps and slices. It only writes to the memory that the lists have then:
// what was moved out of one is left alone. The caller must own the data.
type Lists struct {
	kept   keptLists
	copies []copied // used if pdata's memory layout is not known
}

// copied is a list and a copy of it.
type copied struct{ of, was pcommon.Map }

// Keep records the content of a list.
func (l *Lists) Keep(m pcommon.Map) {
	if l.kept.keep(m) {
		return
	}
	was := pcommon.NewMap()
	m.CopyTo(was)
	l.copies = append(l.copies, copied{m, was})
}

// PutBack restores all lists.
func (l *Lists) PutBack() {
	l.kept.putBack()
	for _, c := range l.copies {
		c.was.CopyTo(c.of)
	}
}

// Forget forgets all lists.
func (l *Lists) Forget() {
	l.kept.forget()
	clear(l.copies)
	l.copies = l.copies[:0]
}
