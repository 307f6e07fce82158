// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package gate

import (
	"github.com/godwit-otel/godwit/processor/cardinalityprocessor/internal/amount"
	"github.com/godwit-otel/godwit/processor/cardinalityprocessor/internal/series"
)

// A series that ends, with a stale marker, no longer needs its place: others may have it as soon as the batch with the
// marker is accepted. So the pods of a new version find the places of the old one's. If the series comes back, because
// only a scrape had failed, it asks for a place as others do, and as one whose last value is known.

// end finds the series of the current metric that end with the batch. A series with a value after the marker does not
// end.
func (b *Batch) end(dropped bool) {
	at := 0
	class := amount.ClassOf(b.at.m)
	for i, fp := range b.fps {
		if at == len(b.marks) || b.marks[at] != i {
			delete(b.ending, fp)
			continue
		}
		at++
		if dropped && b.drop[i] {
			continue
		}
		b.ends(fp, b.at.scope, class)
	}
}

// part records a step, for the rest of the batch and for when it is accepted.
func (b *Batch) part(fp uint64, s series.Step) {
	if s == (series.Step{}) {
		return
	}
	if b.Parted == nil {
		b.Parted = map[uint64]uint32{}
	}
	b.Parted[fp] = uint32(s.To)
	b.departures = append(b.departures, series.Departure{FP: fp, Step: s})
}
