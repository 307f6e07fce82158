// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package queue

import (
	"cmp"
	"slices"
	"sort"
	"time"
)

// age moves blocks that have waited too long behind fresh ones. Leased ones stay where they are: if they come back,
// they are moved then.
func (d *destination) age(now time.Time) {
	if d.policy.FreshFor <= 0 {
		return
	}
	before := now.Add(-d.policy.FreshFor)
	for _, g := range d.fresh.groups {
		for _, l := range slices.Backward(g.lanes) { // the place of a lane that leaves is taken by one already visited
			n := 0
			for n < len(l.entries)-l.held && l.entries[l.held+n].queued.Before(before) {
				n++
			}
			if n == 0 {
				continue
			}
			d.late.group(g.epoch).lane(l.key).insert(l.entries[l.held : l.held+n])
			l.entries = slices.Delete(l.entries, l.held, l.held+n)
			g.leave(l)
		}
	}
}

// group returns the group of an epoch, which it makes at its place if needed.
func (r *row) group(epoch uint32) *group {
	i := sort.Search(len(r.groups), func(i int) bool { return r.groups[i].epoch >= epoch })
	if i == len(r.groups) || r.groups[i].epoch != epoch {
		g := newGroup(epoch)
		g.mayMix = true
		r.groups = slices.Insert(r.groups, i, g)
	}
	return r.groups[i]
}

// tidy sorts the entries that are not leased, if some were put behind those that come back.
func (l *lane) tidy() {
	bySeq := func(a, b *entry) int { return cmp.Compare(a.seq, b.seq) }
	if rest := l.entries[l.held:]; l.of.mayMix && !slices.IsSortedFunc(rest, bySeq) {
		slices.SortFunc(rest, bySeq)
	}
}

// insert puts entries in their order, behind leased ones.
func (l *lane) insert(entries []*entry) {
	for _, e := range entries {
		i := len(l.entries)
		for i > l.held && l.entries[i-1].seq > e.seq {
			i--
		}
		l.entries = slices.Insert(l.entries, i, e)
	}
}
