// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package tree

import (
	"github.com/godwit-otel/godwit/internal/handback"
	"github.com/godwit-otel/godwit/receiver/fastprometheusreceiver/internal/page/plan"
)

// Targets of a kind fill one tree in turn, and where each has values of its own in the attributes of its points, these are written into all of
// them each time, for an exporter to read them and to find that they are those of the last time. Where nobody else reads them, they are owed:
// the loan says whose they would be, and who does not know that has them put in.

// words are what is noted of a target's values, as long as its points are those of a layout.
type words struct {
	handback.Wording

	layout  *plan.Layout
	version int
}

// wording is about the owner's values in the points of a layout.
func (o *Owner) wording(l *plan.Layout) *handback.Wording {
	if w := &o.words; w.layout != l || w.version != o.Version {
		w.Forget()
		w.layout, w.version = l, o.Version
	}
	return &o.words.Wording
}

// mayOwe tells whether points may be left with another target's values when the tree is filled. That is where they are all of a layout, in its order, and
// most of them have some that are a target's own: what an exporter notes of a target is as long as all of them.
func (t *Tree) mayOwe(l *plan.Layout, v *View) bool {
	return v.Owner.Tree.Unread && t.loan.Asked() && t.Layout == l && !t.foreign && v.Variation == nil && 2*l.Marked > len(l.Points) && t.isPlain()
}

// isPlain tells whether the points of the tree are all of its layout, in its order.
func (t *Tree) isPlain() bool {
	for i, list := range t.lists {
		m := &t.Layout.Metrics[i]
		if list != nil && len(list) != int(m.Points) {
			return false
		}
		for j, at := range list {
			if at != m.First+int32(j) {
				return false
			}
		}
	}
	t.lists = nil
	return true
}

// owe leaves the attributes of points as they are.
func (t *Tree) owe(o *Owner) {
	if t.owner != o.Identity || t.version != o.Version {
		t.ownResources(o)
		t.debt = o
	}
	if t.blank {
		t.debt = o
	}
}

// Settle implements [handback.Debtor].
func (t *Tree) Settle() {
	o := t.debt
	t.debt = nil
	switch {
	case o == nil:
	case t.blank:
		t.restorePoints(o)
	default:
		t.ownPoints(o)
	}
}
