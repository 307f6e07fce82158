// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package tree

import (
	"slices"

	"github.com/godwit-otel/godwit/internal/handback"
	"github.com/godwit-otel/godwit/receiver/fastprometheusreceiver/internal/page/plan"
)

// Targets of a kind fill one tree in turn. Where each has values of its own in the attributes of its points, or other
// points of the same metrics, these would be written into all points each time, only for an exporter to find that they are
// the same as last time. If nobody else reads them, the tree leaves them out: the loan says whose attributes the points
// should have, and a consumer that does not know these has them filled in.

// words are what others know about a target's points: of its whole page, or of each of its parts. They are valid as long
// as the points are those of the layout, with the same values.
type words struct {
	layout  *plan.Layout
	version int
	divided bool
	parts   []*handback.Wording
}

// wording returns the wording of the owner's points of a layout, or of a part of these if they are divided.
func (o *Owner) wording(l *plan.Layout, divided bool, part int) *handback.Wording {
	w := &o.words
	if w.layout != l || w.version != o.Version || w.divided != divided {
		*w = words{layout: l, version: o.Version, divided: divided}
	}
	for len(w.parts) <= part {
		w.parts = append(w.parts, &handback.Wording{Part: len(w.parts)})
	}
	return w.parts[part]
}

// know declares which points metrics have that were made anew, if they have all of those and nobody changes them.
func (m *recycled) know(v *View, l *plan.Layout, divided bool, part int) {
	if v.Owner.Tree.Unread && v.Variation == nil {
		m.loan.Know(v.Owner.wording(l, divided, part))
	}
}

// mayDefer reports whether the tree may be filled without the attributes of its points. These must be all points of a
// layout, in its order, and most must have own values, or all be another layout's: an exporter remembers as much as there
// are points.
func (t *Tree) mayDefer(l *plan.Layout, v *View) bool {
	if !v.Owner.Tree.Unread || !t.loan.Asked() || v.Variation != nil {
		return false
	}
	if t.Layout == l && !t.foreign {
		return 2*l.Marked > len(l.Points) && t.isPlain()
	}
	if !t.foreign {
		return t.Layout.HasAsManyPoints(l) && t.isPlain()
	}
	return slices.EqualFunc(t.pointCounts, l.Metrics, func(n int32, m plan.PlacedMetric) bool { return n == m.Points })
}

// isPlain reports whether the points of the tree are all points of its layout, in its order.
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

// deferAttributes leaves the attributes of points to Settle.
func (t *Tree) deferAttributes(o *Owner) {
	if t.foreign || t.owner != o.Identity || t.version != o.Version {
		t.ownResources(o)
		t.debt = o
	}
	if t.attributesPoisoned {
		t.debt = o
	}
}

// Settle implements [handback.Filler].
func (t *Tree) Settle() {
	o := t.debt
	t.debt = nil
	switch {
	case o == nil:
	case t.foreign:
		t.foreign = false
		isIntact := t.isIntact()
		t.restorePoints(o)
		if isIntact { // the points may have another number of attributes now
			t.record()
		}
	case t.attributesPoisoned:
		t.restorePoints(o)
	default:
		t.ownPoints(o)
	}
}
