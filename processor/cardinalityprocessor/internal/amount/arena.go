// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package amount

import (
	"slices"

	"go.opentelemetry.io/collector/pdata/pcommon"
)

// Arena is memory for the counts of temporary values; Reset makes it available again. Without an arena, each value has
// memory of its own.
type Arena struct {
	counts       []uint64
	exponentials []*exponential // the first ones are in use
	used         int
}

// leastCounts is the initial number of counts.
const leastCounts = 256

// maxCounts is the number of counts for which memory is kept, 512 KiB.
const maxCounts = 1 << 16

// take returns memory for n counts, with unspecified content. Earlier results stay valid.
func (r *Arena) take(n int) []uint64 {
	at := len(r.counts)
	if n > cap(r.counts)-at {
		at, r.counts = 0, make([]uint64, 0, max(leastCounts, n, 2*cap(r.counts)))
	}
	r.counts = r.counts[:at+n]
	return r.counts[at : at+n : at+n]
}

// exponential returns memory for the part that only exponential histograms have, with unspecified content.
func (r *Arena) exponential() *exponential {
	if r == nil {
		return new(exponential)
	}
	if r.used == len(r.exponentials) {
		r.exponentials = append(r.exponentials, new(exponential))
	}
	r.used++
	return r.exponentials[r.used-1]
}

// Reset makes all memory available again.
func (r *Arena) Reset() {
	if cap(r.counts) > maxCounts {
		r.counts = nil
	}
	r.counts = r.counts[:0]
	if r.used = 0; len(r.exponentials) > maxCounts/16 {
		r.exponentials = nil
	}
}

// countsOfLine is the number of counts in a cache line.
const countsOfLine = 8

// alone returns memory for n counts that shares no cache line with others: the counts of totals are added to by several
// CPUs, each to its own. The allocator aligns whole lines.
func alone(n int) []uint64 {
	if n == 0 {
		return nil
	}
	return make([]uint64, 0, (n+countsOfLine-1)/countsOfLine*countsOfLine)
}

// clone copies counts.
func (r *Arena) clone(counts []uint64) []uint64 {
	if r == nil || len(counts) == 0 {
		return slices.Clone(counts)
	}
	to := r.take(len(counts))
	copy(to, counts)
	return to
}

// read copies counts of a point.
func (r *Arena) read(from pcommon.UInt64Slice) []uint64 {
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
	cells, e := v.Cells, v.exponential
	*v = *o
	v.Cells = keep(cells, o.Cells)
	if o.exponential == nil {
		return
	}
	if e == nil {
		e = new(exponential)
	}
	positive, negative := e.positive.Counts, e.negative.Counts
	*e = *o.exponential
	e.positive.Counts, e.negative.Counts = keep(positive, o.exponential.positive.Counts), keep(negative, o.exponential.negative.Counts)
	v.exponential = e
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
