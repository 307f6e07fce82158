// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package request

import (
	"slices"

	"github.com/godwit-otel/godwit/exporter/remotewriteexporter/internal/encode/cache"
	"github.com/godwit-otel/godwit/exporter/remotewriteexporter/internal/encode/column"
)

// arrangement is the order in which a flush writes series. Those of a page stay in its order, except for layouts of
// which several resources have series that only they have, such as pages with a label of the target's own: these are
// grouped. Within a group, the first series of each resource come first, then the second ones and so on. So consecutive
// messages differ in what belongs to resources, which come in the same order each time, and compression finds that.
type arrangement struct {
	order    []uint32 // slots
	position []uint32 // index in order by slot

	layouts []layoutRank // by number of the layout
	epoch   uint32       // of layouts; counts flushes
	groups  []group      // of slots with a layout
	of      []uint32     // group by slot
	ranks   []uint32     // by slot: its rank among those of its group and resource
	counts  []uint32     // of slots of a group by rank, then where those begin
	slots   []uint32     // by group
}

// group is the slots of a layout.
type group struct {
	size, resources uint32 // a resource that comes again is counted again
	begin, end      uint32 // in slots
	last, rank      uint32 // the place of the last slot's resource, and how many of its slots came before
	ranks           uint32 // one more than the largest rank
}

// layoutRank is the number of a layout's group within the flush of an epoch.
type layoutRank struct{ epoch, group uint32 }

// isGrouped reports whether the slots of the group are written together, in turns.
func (g *group) isGrouped() bool { return g.resources >= minRun }

// isGrouped reports whether a slot's group is apart.
func (a *arrangement) isGrouped(slot uint32) bool {
	return len(a.groups) > 0 && a.groups[a.of[slot]].isGrouped()
}

// keepOrder arranges n slots in their own order.
func (a *arrangement) keepOrder(n int) {
	a.groups = a.groups[:0]
	a.order, a.position = resize(a.order, n), resize(a.position, n)
	for i := range n {
		a.order[i], a.position[i] = uint32(i), uint32(i)
	}
}

// byLayout arranges the slots of series. place returns the place of the resource of a slot's first sample; layouts
// exceeds the number of any layout.
func (a *arrangement) byLayout(series []*cache.Series, layouts int, place func(slot uint32) uint32) {
	n := len(series)
	if !a.group(series, layouts, place) {
		a.keepOrder(n)
		return
	}
	a.collect()
	a.order, a.position = a.order[:0], resize(a.position, n)
	for slot, k := range a.of {
		switch g := &a.groups[k]; {
		case !g.isGrouped():
			a.order = append(a.order, uint32(slot))
		case g.begin < g.end: // its first slot
			a.inTurn(a.slots[g.begin:g.end], g.ranks)
			g.begin = g.end
		}
	}
	for i, slot := range a.order {
		a.position[slot] = uint32(i)
	}
}

// group finds the groups, and reports whether one of them is apart.
func (a *arrangement) group(series []*cache.Series, layouts int, place func(slot uint32) uint32) (apart bool) {
	a.begin(layouts)
	a.of, a.ranks = resize(a.of, len(series)), resize(a.ranks, len(series))
	for slot, s := range series {
		l := &a.layouts[s.Layout]
		if l.epoch != a.epoch {
			*l = layoutRank{a.epoch, uint32(len(a.groups))}
			a.groups = append(a.groups, group{})
		}
		g := &a.groups[l.group]
		if at := place(uint32(slot)); g.size == 0 || at != g.last {
			g.last, g.rank = at, 0
			g.resources++
			apart = apart || g.isGrouped()
		}
		a.of[slot], a.ranks[slot] = l.group, g.rank
		g.size++
		g.rank++
		g.ranks = max(g.ranks, g.rank)
	}
	return apart
}

func (a *arrangement) begin(layouts int) {
	if a.epoch++; a.epoch == 0 { // after 4 billion flushes an old stamp would look new
		clear(a.layouts)
		a.epoch = 1
	}
	if missing := layouts - len(a.layouts); missing > 0 {
		a.layouts = append(a.layouts, make([]layoutRank, missing)...)
	}
	a.groups = a.groups[:0]
}

// collect brings the slots of each group that is apart together.
func (a *arrangement) collect() {
	begin := uint32(0)
	for i := range a.groups {
		if g := &a.groups[i]; g.isGrouped() {
			g.begin, g.end = begin, begin
			begin += g.size
		}
	}
	a.slots = resize(a.slots, int(begin))
	for slot, k := range a.of {
		if g := &a.groups[k]; g.isGrouped() {
			a.slots[g.end] = uint32(slot)
			g.end++
		}
	}
}

// inTurn appends slots to the order, sorted by their rank, which is below ranks.
func (a *arrangement) inTurn(slots []uint32, ranks uint32) {
	a.counts = resize(a.counts, int(ranks))
	clear(a.counts)
	for _, slot := range slots {
		a.counts[a.ranks[slot]]++
	}
	begin := uint32(len(a.order))
	for i, n := range a.counts {
		a.counts[i] = begin
		begin += n
	}
	a.order = slices.Grow(a.order, len(slots))[:begin]
	for _, slot := range slots {
		at := &a.counts[a.ranks[slot]]
		a.order[*at] = slot
		*at++
	}
}

// release frees space that only a much larger flush than usual needed.
func (a *arrangement) release(usual int) {
	if cap(a.order) > 4*usual+column.FewSamples {
		*a = arrangement{}
	}
}

func resize(s []uint32, n int) []uint32 { return slices.Grow(s[:0], n)[:n] }
