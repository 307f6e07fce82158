// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package cache

import "github.com/godwit-otel/godwit/exporter/remotewriteexporter/internal/encode/store"

// recent has the sets of values of recent points, a few for each group of hashes. Consecutive metrics are often about
// the same things, as all metrics of a container, so the next points with the same set come soon. It is cleared when
// sets may be freed.
type recent []packed

// packed identifies a set of values by its number among sets of that size. Part of its hash rules out most others
// without a look at them.
type packed struct {
	width, tag uint16
	number     uint32
}

// The table has a place for this many points, within limits, so that the sets of one page fit.
const (
	pointsForSet = 2
	setsOfHash   = 4
	fewRecent    = 1 << 10
	mostRecent   = 1 << 16
)

// candidates returns the entries where the set may be, the latest first, and the entry that it would get. points is the number
// of all points.
func (r *recent) candidates(values ids, points int) ([]packed, packed) {
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

// forget clears all sets, and keeps the memory if that many points need it.
func (r *recent) forget(points int) {
	if len(*r) > max(fewRecent, 2*points/pointsForSet) {
		*r = nil
	}
	clear(*r)
}
