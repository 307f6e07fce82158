// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package slab

import "go.opentelemetry.io/collector/pdata/pcommon"

// Lists are lists of attributes, and what was in them. They are put back as they were whatever has been done to them since through
// pdata's API, other than to maps and slices that are values. Only memory is written to that the lists have then: what was moved out
// of one is left alone. The data is the caller's alone.
type Lists struct {
	kept   keptLists
	copies []copied // where pdata's memory is not known
}

// copied is a list and a copy of it.
type copied struct{ of, was pcommon.Map }

// Keep records what is in a list.
func (l *Lists) Keep(m pcommon.Map) {
	if l.kept.keep(m) {
		return
	}
	was := pcommon.NewMap()
	m.CopyTo(was)
	l.copies = append(l.copies, copied{m, was})
}

// PutBack puts all back.
func (l *Lists) PutBack() {
	l.kept.putBack()
	for _, c := range l.copies {
		c.was.CopyTo(c.of)
	}
}

// Forget forgets all.
func (l *Lists) Forget() {
	l.kept.forget()
	clear(l.copies)
	l.copies = l.copies[:0]
}
