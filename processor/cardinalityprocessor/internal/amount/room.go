// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package amount

import (
	"slices"

	"go.opentelemetry.io/collector/pdata/pcommon"
)

// Room is memory for the counts of temporary values; Reset makes it available again. Without a room, each value has
// memory of its own.
type Room struct{ counts []uint64 }

// leastRoom is the initial number of counts.
const leastRoom = 256

// maxRoom is the number of counts for which memory is kept, 512 KiB.
const maxRoom = 1 << 16

// take returns memory for n counts, with unspecified content. Earlier results stay valid.
func (r *Room) take(n int) []uint64 {
	at := len(r.counts)
	if n > cap(r.counts)-at {
		at, r.counts = 0, make([]uint64, 0, max(leastRoom, n, 2*cap(r.counts)))
	}
	r.counts = r.counts[:at+n]
	return r.counts[at : at+n : at+n]
}

// Reset makes all memory available again.
func (r *Room) Reset() {
	if cap(r.counts) > maxRoom {
		r.counts = nil
	}
	r.counts = r.counts[:0]
}

// clone copies counts.
func (r *Room) clone(counts []uint64) []uint64 {
	if r == nil || len(counts) == 0 {
		return slices.Clone(counts)
	}
	to := r.take(len(counts))
	copy(to, counts)
	return to
}

// read copies counts of a point.
func (r *Room) read(from pcommon.UInt64Slice) []uint64 {
	n := from.Len()
	if r == nil || n == 0 {
		return from.AsRaw()
	}
	to := r.take(n)
	for i := range to {
		to[i] = from.At(i)
	}
	return to
}

// Keep makes v a copy of o. It reuses the memory of its counts if their number is equal, so nobody else may have them.
func (v *Value) Keep(o *Value) {
	cells, positive, negative := v.Cells, v.Positive.Counts, v.negative.Counts
	*v = *o
	v.Cells = keep(cells, o.Cells)
	v.Positive.Counts, v.negative.Counts = keep(positive, o.Positive.Counts), keep(negative, o.negative.Counts)
}

func keep(where, counts []uint64) []uint64 {
	if len(counts) == 0 {
		return nil // no memory for none
	}
	if len(where) != len(counts) {
		return slices.Clone(counts)
	}
	copy(where, counts)
	return where
}
