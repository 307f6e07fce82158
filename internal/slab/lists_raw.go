// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

//go:build !purego

package slab

import "go.opentelemetry.io/collector/pdata/pcommon"

// keptLists are the addresses of lists, and their content.
type keptLists struct {
	at   []*[]keyValue
	ends []int      // where each list's content ends
	said []keyValue // content of one list after the other
}

func (l *keptLists) keep(m pcommon.Map) bool {
	if !known {
		return false
	}
	at := attributesOf(m)
	l.at, l.said = append(l.at, at), append(l.said, *at...)
	l.ends = append(l.ends, len(l.said))
	return true
}

// putBack writes into the memory that a list has now. If a consumer added more than there was capacity for, the list
// has new memory, with capacity for the next time.
func (l *keptLists) putBack() {
	from := 0
	for i, at := range l.at {
		said := l.said[from:l.ends[i]]
		from = l.ends[i]
		if cap(*at) < len(said) {
			*at = make([]keyValue, 0, len(said)+1)
		}
		list := (*at)[:len(said)]
		for j := range list { // a call for so few takes longer
			list[j] = said[j]
		}
		*at = list
	}
}

func (l *keptLists) forget() {
	clear(l.at)
	clear(l.said)
	l.at, l.ends, l.said = l.at[:0], l.ends[:0], l.said[:0]
}
