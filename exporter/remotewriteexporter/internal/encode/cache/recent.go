// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package cache

import "github.com/godwit-otel/godwit/exporter/remotewriteexporter/internal/encode/store"

// recent are sets of values that points have which came not long before, a few of each of some hashes. Metrics tell of the same things one
// after the other, as all of a container do, so the next points with a set mostly come soon. It is forgotten when sets may be freed.
type recent []packed

// packed is a set of values by its number among those that have as many, and a part of its hash: one that is another mostly need not be
// looked at.
type packed struct {
	width, tag uint16
	number     uint32
}

// A table has a place for so many points each, so that what one page tells of fits in, within bounds.
const (
	pointsForSet = 2
	setsOfHash   = 4
	fewRecent    = 1 << 10
	mostRecent   = 1 << 16
)

// few are the sets among which one would be, the latest first, and what that would be. points says how many there are in all.
func (r *recent) few(values ids, points int) ([]packed, packed) {
	if n := len(*r); n == 0 || n < mostRecent && n < points/pointsForSet {
		*r = make(recent, max(fewRecent, 2*n))
	}
	h := uint64(len(values))
	for _, id := range values {
		h = store.Mix(h, uint64(id))
	}
	at := uint64(store.Fold(h)) * uint64(len(*r)/setsOfHash) >> 32 * setsOfHash
	return (*r)[at : at+setsOfHash], packed{width: uint16(len(values)), tag: uint16(h)}
}

// forget forgets all sets, and keeps the memory if as many points as there are would need it.
func (r *recent) forget(points int) {
	if len(*r) > max(fewRecent, 2*points/pointsForSet) {
		*r = nil
	}
	clear(*r)
}
