// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package queue

import (
	"cmp"
	"slices"
	"sort"
	"time"
)

// age puts what has waited for too long behind what is fresh. What senders have stays where it is: should it come back, it
// follows then.
func (d *destination) age(now time.Time) {
	if d.policy.FreshFor <= 0 {
		return
	}
	before := now.Add(-d.policy.FreshFor)
	for _, g := range d.fresh.groups {
		for _, l := range slices.Backward(g.lanes) { // a lane that leaves has its place taken by one that was looked at
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

// group finds or makes that of an epoch, wherever its place is.
func (r *row) group(epoch uint32) *group {
	i := sort.Search(len(r.groups), func(i int) bool { return r.groups[i].epoch >= epoch })
	if i == len(r.groups) || r.groups[i].epoch != epoch {
		g := newGroup(epoch)
		g.mayMix = true
		r.groups = slices.Insert(r.groups, i, g)
	}
	return r.groups[i]
}

// tidy puts in order what senders do not have, as far as something was put behind what comes back from them.
func (l *lane) tidy() {
	bySeq := func(a, b *entry) int { return cmp.Compare(a.seq, b.seq) }
	if rest := l.entries[l.held:]; l.of.mayMix && !slices.IsSortedFunc(rest, bySeq) {
		slices.SortFunc(rest, bySeq)
	}
}

// insert puts entries in their place, behind those that senders have.
func (l *lane) insert(entries []*entry) {
	for _, e := range entries {
		i := len(l.entries)
		for i > l.held && l.entries[i-1].seq > e.seq {
			i--
		}
		l.entries = slices.Insert(l.entries, i, e)
	}
}
