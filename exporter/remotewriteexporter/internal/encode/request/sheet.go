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

// sheet is a buffer in the order of writing: its series as arranged, the samples of each by resource, then as they
// came.
type sheet struct {
	arrangement

	version   promwrite.Version
	inOrder   bool            // samples came in that order, and stay in the buffer
	sorted    []column.Sample // the samples, if not inOrder; else room for those of a series that are in several pieces
	begins    []uint32        // index of the first sample of each slot, and of the end
	offsets   []uint32
	sources   []uint32                // sorted batches
	places    []uint32                // of each batch's resource
	resources []*cache.ResourceLabels // by place
	weights   []int                   // of resources
	heaviest  int                     // of these
	exemplars []column.Exemplar       // not written yet; sorted as the series are

	// About the numbers of sorted samples and of series in the larger of the last flushes.
	usually struct{ sorted, series int }
}

// layOut sorts by counting: the batches by resource, then one pass that puts each sample into its series' place.
// Samples that came in order, such as those of one large page, are not copied.
func (sh *sheet) layOut(b *column.Buffer, version promwrite.Version, layouts int) {
	sh.version = version
	sh.sources, sh.resources, sh.weights, sh.heaviest = sh.sources[:0], sh.resources[:0], sh.weights[:0], 0
	for i := range b.Batches {
		sh.sources = append(sh.sources, uint32(i))
	}
	slices.SortStableFunc(sh.sources, func(x, y uint32) int {
		return cmp.Compare(sh.rank(b.Batches[x].Labels), sh.rank(b.Batches[y].Labels))
	})
	sh.places = slices.Grow(sh.places[:0], len(b.Batches))[:len(b.Batches)]
	for _, i := range sh.sources {
		labels := b.Batches[i].Labels
		if n := len(sh.resources); n == 0 || sh.resources[n-1] != labels {
			sh.resources, sh.weights = append(sh.resources, labels), append(sh.weights, labels.Weight)
			sh.heaviest = max(sh.heaviest, labels.Weight)
		}
		sh.places[i] = uint32(len(sh.resources) - 1)
	}
	sh.begins = append(sh.begins[:0], 0)
	for _, n := range b.Counts {
		sh.begins = append(sh.begins, sh.begins[len(sh.begins)-1]+n)
	}
	if sh.inOrder = sh.ordered(b); sh.inOrder {
		sh.sorted = sh.sorted[:0]
		for i := range b.Batches {
			for j := b.Batches[i].First; j < b.End(i); j++ {
				b.Samples.At(int(j)).Of = sh.places[i]
			}
		}
	} else {
		sh.sort(b)
	}
	if version == promwrite.V2 && !b.Unlisted { // samples of a series that is there twice stay in their order
		sh.byLayout(b.Series, layouts, func(slot uint32) uint32 { return sh.cell(b, slot).Of })
	} else {
		sh.keepOrder(len(b.Series))
	}
}

// sortExemplars sorts exemplars as their series.
func (sh *sheet) sortExemplars(b *column.Buffer) {
	slices.SortStableFunc(b.Exemplars, func(x, y column.Exemplar) int {
		return cmp.Or(cmp.Compare(sh.position[x.Slot], sh.position[y.Slot]), cmp.Compare(sh.rank(x.Labels), sh.rank(y.Labels)), cmp.Compare(x.Time, y.Time))
	})
	sh.exemplars = b.Exemplars
}

// rank is a sort key of resources: the order in which they were made, which is nearly that of their timestamps. In 1.0,
// which has their values in each message, those of the same length come together, so that their messages have the same
// length.
func (sh *sheet) rank(r *cache.ResourceLabels) uint64 {
	if sh.version == promwrite.V1 {
		return uint64(r.Weight)<<32 | uint64(r.Order)
	}
	return uint64(r.Order)
}

// cells returns the samples of a slot.
func (sh *sheet) cells(b *column.Buffer, slot uint32) (cells []column.Sample) {
	first, end := int(sh.begins[slot]), int(sh.begins[slot+1])
	if !sh.inOrder {
		return sh.sorted[first:end]
	}
	cells, sh.sorted = b.Samples.Some(sh.sorted, first, end)
	return cells
}

// cell returns the first sample of a slot.
func (sh *sheet) cell(b *column.Buffer, slot uint32) *column.Sample {
	if !sh.inOrder {
		return &sh.sorted[sh.begins[slot]]
	}
	return b.Samples.At(int(sh.begins[slot]))
}

// ordered reports whether the samples are sorted already.
func (sh *sheet) ordered(b *column.Buffer) bool {
	slot, place := uint32(0), uint32(0)
	for i := range b.Batches {
		for j := b.Batches[i].First; j < b.End(i); j++ {
			s := b.Samples.At(int(j))
			if s.Of < slot || s.Of == slot && sh.places[i] < place {
				return false
			}
			slot, place = s.Of, sh.places[i]
		}
	}
	return true
}

func (sh *sheet) sort(b *column.Buffer) {
	sh.offsets = append(sh.offsets[:0], sh.begins[:len(b.Series)]...)
	sh.sorted = slices.Grow(sh.sorted[:0], b.Samples.Len())[:b.Samples.Len()]
	for _, i := range sh.sources {
		place, end := sh.places[i], int(b.End(int(i)))
		for first := int(b.Batches[i].First); first < end; {
			some := b.Samples.Together(first, end)
			for j := range some {
				s := &some[j]
				at := &sh.offsets[s.Of]
				to := &sh.sorted[*at]
				to.Of, to.Extra, to.Time, to.Bits = place, s.Extra, s.Time, s.Bits
				*at++
			}
			first += len(some)
		}
	}
}

// single reports whether a slot has one number, and no exemplar.
func (sh *sheet) single(b *column.Buffer, slot uint32) bool {
	return b.Counts[slot] == 1 && sh.cell(b, slot).Extra&column.IsHistogram == 0 && !sh.hasExemplars(slot)
}

// hasExemplars reports whether a slot, or one before it, has exemplars that are not written yet.
func (sh *sheet) hasExemplars(slot uint32) bool {
	return len(sh.exemplars) > 0 && sh.position[sh.exemplars[0].Slot] <= sh.position[slot]
}

// exemplarsOf removes and returns those of a series and a resource; they come in the order of runs.
func (sh *sheet) exemplarsOf(slot uint32, r *cache.ResourceLabels) []column.Exemplar {
	if !sh.hasExemplars(slot) {
		return nil
	}
	before := func(x *column.Exemplar) bool {
		return sh.position[x.Slot] < sh.position[slot] || x.Slot == slot && sh.rank(x.Labels) < sh.rank(r)
	}
	i := 0
	for i < len(sh.exemplars) && before(&sh.exemplars[i]) {
		i++
	}
	n := i
	for n < len(sh.exemplars) && sh.exemplars[n].Slot == slot && sh.exemplars[n].Labels == r {
		n++
	}
	own := sh.exemplars[i:n]
	sh.exemplars = sh.exemplars[n:]
	return own
}

// release drops references to the cache, and frees memory that was much too large for a while.
func (sh *sheet) release() {
	sh.exemplars = nil
	clear(sh.resources)
	u := &sh.usually
	u.sorted, u.series = max(len(sh.sorted), u.sorted-u.sorted/16), max(len(sh.order), u.series-u.series/16)
	if cap(sh.sorted) > 2*u.sorted+column.FewSamples {
		sh.sorted = nil
	}
	sh.arrangement.release(u.series)
}
