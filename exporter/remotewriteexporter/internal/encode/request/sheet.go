// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package request

import (
	"cmp"
	"slices"

	"github.com/godwit-otel/godwit/internal/promwrite"

	"github.com/godwit-otel/godwit/exporter/remotewriteexporter/internal/encode/cache"
	"github.com/godwit-otel/godwit/exporter/remotewriteexporter/internal/encode/column"
)

// sheet is a buffer laid out: its series as they are arranged, the samples of each by resource, then as they came.
type sheet struct {
	arrangement

	version   promwrite.Version
	inOrder   bool            // samples arrived like that, and are where they were
	sorted    []column.Sample // otherwise; else room for those of a series that are not in one piece
	begins    []uint32        // where the samples of each slot are, and those behind the last one
	offsets   []uint32
	sources   []uint32                // batches sorted
	places    []uint32                // of each batch's resource
	resources []*cache.ResourceLabels // by place
	weights   []int                   // theirs
	heaviest  int                     // of these
	exemplars []column.Exemplar       // not yet written; sorted as the series are

	// About how many samples were sorted in the larger of the last flushes, and series there were.
	usually struct{ sorted, series int }
}

// layOut sorts by counting: the batches by resource, then one pass that drops each sample into its series' place.
// Samples that came in order, such as those of one large page, stay where they are.
func (h *sheet) layOut(b *column.Buffer, version promwrite.Version, layouts int) {
	h.version = version
	h.sources, h.resources, h.weights, h.heaviest = h.sources[:0], h.resources[:0], h.weights[:0], 0
	for i := range b.Batches {
		h.sources = append(h.sources, uint32(i))
	}
	slices.SortStableFunc(h.sources, func(x, y uint32) int {
		return cmp.Compare(h.rank(b.Batches[x].Labels), h.rank(b.Batches[y].Labels))
	})
	h.places = slices.Grow(h.places[:0], len(b.Batches))[:len(b.Batches)]
	for _, i := range h.sources {
		labels := b.Batches[i].Labels
		if n := len(h.resources); n == 0 || h.resources[n-1] != labels {
			h.resources, h.weights = append(h.resources, labels), append(h.weights, labels.Weight)
			h.heaviest = max(h.heaviest, labels.Weight)
		}
		h.places[i] = uint32(len(h.resources) - 1)
	}
	h.begins = append(h.begins[:0], 0)
	for _, n := range b.Counts {
		h.begins = append(h.begins, h.begins[len(h.begins)-1]+n)
	}
	if h.inOrder = h.ordered(b); h.inOrder {
		h.sorted = h.sorted[:0]
		for i := range b.Batches {
			for j := b.Batches[i].First; j < b.End(i); j++ {
				b.Samples.At(int(j)).Of = h.places[i]
			}
		}
	} else {
		h.sort(b)
	}
	if version == promwrite.V2 && !b.Unlisted { // samples of a series that is there twice stay in their order
		h.byLayout(b.Series, layouts, func(slot uint32) uint32 { return h.cell(b, slot).Of })
	} else {
		h.asTheyCame(len(b.Series))
	}
}

// sortExemplars has them come as their series do.
func (h *sheet) sortExemplars(b *column.Buffer) {
	slices.SortStableFunc(b.Exemplars, func(x, y column.Exemplar) int {
		return cmp.Or(cmp.Compare(h.position[x.Slot], h.position[y.Slot]), cmp.Compare(h.rank(x.Labels), h.rank(y.Labels)), cmp.Compare(x.Time, y.Time))
	})
	h.exemplars = b.Exemplars
}

// rank sorts resources: in the order in which they were made, which is much that of their times. In 1.0, which has their
// values in each message, those of one length come together, since their messages are of one length then.
func (h *sheet) rank(r *cache.ResourceLabels) uint64 {
	if h.version == promwrite.V1 {
		return uint64(r.Weight)<<32 | uint64(r.Order)
	}
	return uint64(r.Order)
}

// cells are the samples of a slot.
func (h *sheet) cells(b *column.Buffer, slot uint32) (cells []column.Sample) {
	first, end := int(h.begins[slot]), int(h.begins[slot+1])
	if !h.inOrder {
		return h.sorted[first:end]
	}
	cells, h.sorted = b.Samples.Some(h.sorted, first, end)
	return cells
}

// cell is the first sample of a slot.
func (h *sheet) cell(b *column.Buffer, slot uint32) *column.Sample {
	if !h.inOrder {
		return &h.sorted[h.begins[slot]]
	}
	return b.Samples.At(int(h.begins[slot]))
}

// ordered says whether the samples are sorted already.
func (h *sheet) ordered(b *column.Buffer) bool {
	slot, place := uint32(0), uint32(0)
	for i := range b.Batches {
		for j := b.Batches[i].First; j < b.End(i); j++ {
			s := b.Samples.At(int(j))
			if s.Of < slot || s.Of == slot && h.places[i] < place {
				return false
			}
			slot, place = s.Of, h.places[i]
		}
	}
	return true
}

func (h *sheet) sort(b *column.Buffer) {
	h.offsets = append(h.offsets[:0], h.begins[:len(b.Series)]...)
	h.sorted = slices.Grow(h.sorted[:0], b.Samples.Len())[:b.Samples.Len()]
	for _, i := range h.sources {
		place := h.places[i]
		for j := b.Batches[i].First; j < b.End(int(i)); j++ {
			s := b.Samples.At(int(j))
			at := &h.offsets[s.Of]
			h.sorted[*at] = column.Sample{Of: place, Extra: s.Extra, Time: s.Time, Bits: s.Bits}
			*at++
		}
	}
}

// single says whether a slot has one number, and no exemplar.
func (h *sheet) single(b *column.Buffer, slot uint32) bool {
	return b.Counts[slot] == 1 && h.cell(b, slot).Extra&column.IsHistogram == 0 && !h.isExemplary(slot)
}

// isExemplary says whether a slot, or one before it, has exemplars that are not yet written.
func (h *sheet) isExemplary(slot uint32) bool {
	return len(h.exemplars) > 0 && h.position[h.exemplars[0].Slot] <= h.position[slot]
}

// exemplarsOf cuts off what belongs to a series and resource; they come in the order that runs do.
func (h *sheet) exemplarsOf(slot uint32, r *cache.ResourceLabels) []column.Exemplar {
	if !h.isExemplary(slot) {
		return nil
	}
	before := func(x *column.Exemplar) bool {
		return h.position[x.Slot] < h.position[slot] || x.Slot == slot && h.rank(x.Labels) < h.rank(r)
	}
	i := 0
	for i < len(h.exemplars) && before(&h.exemplars[i]) {
		i++
	}
	n := i
	for n < len(h.exemplars) && h.exemplars[n].Slot == slot && h.exemplars[n].Labels == r {
		n++
	}
	own := h.exemplars[i:n]
	h.exemplars = h.exemplars[n:]
	return own
}

// release lets go of what refers to the cache, and of space that has been much too large for a while.
func (h *sheet) release() {
	h.exemplars = nil
	clear(h.resources)
	u := &h.usually
	u.sorted, u.series = max(len(h.sorted), u.sorted-u.sorted/16), max(len(h.order), u.series-u.series/16)
	if cap(h.sorted) > 2*u.sorted+column.FewSamples {
		h.sorted = nil
	}
	h.arrangement.release(u.series)
}
