// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package amount

import (
	"math"
	"slices"

	"go.opentelemetry.io/collector/pdata/pmetric"
)

// buckets are counts, starting with the bucket at offset.
type buckets struct {
	offset int64
	Counts []uint64
}

func bucketsIn(arena *Arena, from pmetric.ExponentialHistogramDataPointBuckets) buckets {
	return buckets{offset: int64(from.Offset()), Counts: arena.read(from.BucketCounts())}
}

func (b *buckets) downscale(by int64) {
	if len(b.Counts) == 0 {
		return
	}
	by = min(by, 63)
	first, last := b.offset>>by, (b.offset+int64(len(b.Counts))-1)>>by
	counts := make([]uint64, last-first+1)
	for i, n := range b.Counts {
		counts[(b.offset+int64(i))>>by-first] += n
	}
	b.offset, b.Counts = first, counts
}

// trim removes the empty buckets at both ends, and copies the rest unless it is in an arena.
func (b *buckets) trim(arena *Arena) {
	first, last := 0, len(b.Counts)
	for last > 0 && b.Counts[last-1] == 0 {
		last--
	}
	for first < last && b.Counts[first] == 0 {
		first++
	}
	if last-first == len(b.Counts) {
		return
	}
	if b.offset, b.Counts = b.offset+int64(first), b.Counts[first:last]; arena == nil {
		b.Counts = slices.Clone(b.Counts)
	}
}

// width is how many buckets both span together.
func (b *buckets) width(o *buckets) int64 {
	switch {
	case len(o.Counts) == 0:
		return int64(len(b.Counts))
	case len(b.Counts) == 0:
		return int64(len(o.Counts))
	}
	return max(b.end(), o.end()) - min(b.offset, o.offset)
}

// numbered reports whether the numbers of all buckets are such as can be said.
func (b *buckets) numbered() bool {
	return len(b.Counts) == 0 || b.offset >= math.MinInt32 && b.end()-1 <= math.MaxInt32
}

func (b *buckets) end() int64 { return b.offset + int64(len(b.Counts)) }

// add adds buckets of the same scale.
func (b *buckets) add(o *buckets) {
	if len(o.Counts) == 0 {
		return
	}
	if len(b.Counts) == 0 {
		b.offset, b.Counts = o.offset, slices.Clone(o.Counts)
		return
	}
	if first, n := min(b.offset, o.offset), b.width(o); n > int64(len(b.Counts)) {
		counts := make([]uint64, n)
		copy(counts[b.offset-first:], b.Counts)
		b.offset, b.Counts = first, counts
	}
	for i, n := range o.Counts {
		b.Counts[o.offset-b.offset+int64(i)] += n
	}
}

// sub subtracts buckets of the same scale, and reports whether that was possible.
func (b *buckets) sub(o *buckets) bool {
	for i, n := range o.Counts {
		if n == 0 {
			continue
		}
		at := o.offset - b.offset + int64(i)
		if at < 0 || at >= int64(len(b.Counts)) || b.Counts[at] < n {
			return false
		}
		b.Counts[at] -= n
	}
	return true
}
