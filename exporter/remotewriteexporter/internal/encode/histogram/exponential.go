// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package histogram

import (
	"math"

	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/godwit-otel/godwit/internal/promwrite"
)

// The schemas of native histograms.
const (
	MinScale = -4
	MaxScale = 8
)

const (
	// leastZero replaces the width of a zero bucket without one.
	leastZero = 1e-128
	// maxBuckets limits the buckets of a sum; beyond that it is made coarser.
	maxBuckets = 1024
	// leastExponent and endExponent are the range of a float64's exponents.
	leastExponent, endExponent = -1075, 1024
)

// Exponential is the content of an exponential histogram.
type Exponential struct {
	Scale     int32
	ZeroCount uint64
	Threshold float64
	Positive  []Bucket
	Negative  []Bucket
	Count     uint64
	Sum       float64
}

// Bucket is a bucket that is not empty, by its OTLP index. Buckets are sorted.
type Bucket struct {
	Index int64
	Count uint64
}

// Read reads a point, reduced to the finest schema of native histograms, into the memory of x.
func (x *Exponential) Read(dp pmetric.ExponentialHistogramDataPoint) {
	scale := min(dp.Scale(), MaxScale)
	shift := uint32(dp.Scale() - scale)
	*x = Exponential{
		Scale: scale, ZeroCount: dp.ZeroCount(), Threshold: dp.ZeroThreshold(), Count: dp.Count(),
		Positive: appendBuckets(x.Positive[:0], dp.Positive(), shift),
		Negative: appendBuckets(x.Negative[:0], dp.Negative(), shift),
	}
	if dp.HasSum() {
		x.Sum = dp.Sum()
	}
}

// Add adds y, which has the same threshold. Both get the coarser of their scales.
func (x *Exponential) Add(y *Exponential) {
	scale := min(x.Scale, y.Scale)
	x.rescale(scale)
	y.rescale(scale)
	x.Positive = merge(make([]Bucket, 0, len(x.Positive)+len(y.Positive)), x.Positive, y.Positive)
	x.Negative = merge(make([]Bucket, 0, len(x.Negative)+len(y.Negative)), x.Negative, y.Negative)
	for len(x.Positive)+len(x.Negative) > maxBuckets && x.Scale > MinScale {
		x.rescale(x.Scale - 1)
	}
	x.ZeroCount += y.ZeroCount
	x.Count += y.Count
	x.Sum += y.Sum
}

// CopyOf makes x a copy of y in the memory that it has.
func (x *Exponential) CopyOf(y *Exponential) {
	x.Positive = append(x.Positive[:0], y.Positive...)
	x.Negative = append(x.Negative[:0], y.Negative...)
	positive, negative := x.Positive, x.Negative
	*x = *y
	x.Positive, x.Negative = positive, negative
}

// IsPossible reports whether all buckets are within the range of a float64. Others cannot hold observations, and a sum
// of them would have as many buckets as there are indexes, however coarse it was made.
func (x *Exponential) IsPossible() bool {
	least, end := int64(leastExponent), int64(endExponent)
	if x.Scale >= 0 {
		least, end = least<<x.Scale, end<<x.Scale
	} else {
		least, end = least>>-x.Scale, end>>-x.Scale
	}
	for _, buckets := range [...][]Bucket{x.Positive, x.Negative} {
		if n := len(buckets); n > 0 && (buckets[0].Index < least || buckets[n-1].Index >= end) {
			return false
		}
	}
	return true
}

func (x *Exponential) rescale(scale int32) {
	shift := uint32(x.Scale - scale)
	x.Positive, x.Negative, x.Scale = coarsen(x.Positive, shift), coarsen(x.Negative, shift), scale
}

// Fill makes n the same native histogram. It returns false if that is impossible.
func (x *Exponential) Fill(n *promwrite.Histogram) bool {
	total := x.ZeroCount
	positive := spans{spans: n.PositiveSpans, deltas: n.PositiveDeltas}
	for _, b := range x.Positive {
		positive.add(b.Index+1, b.Count) // OTLP names a bucket by its lower bound, Prometheus by its upper one
		total += b.Count
	}
	negative := spans{spans: n.NegativeSpans, deltas: n.NegativeDeltas}
	for _, b := range x.Negative {
		negative.add(b.Index+1, b.Count)
		total += b.Count
	}
	// Prometheus refuses the whole request if a histogram's buckets do not add up to its count.
	switch {
	case positive.invalid, negative.invalid, total > x.Count, total < x.Count && !math.IsNaN(x.Sum):
		return false
	}
	n.PositiveSpans, n.PositiveDeltas = positive.spans, positive.deltas
	n.NegativeSpans, n.NegativeDeltas = negative.spans, negative.deltas
	n.Schema, n.Count.Int, n.Sum, n.ZeroCount.Int = x.Scale, x.Count, x.Sum, x.ZeroCount
	n.ZeroThreshold = x.Threshold
	if n.ZeroThreshold == 0 {
		n.ZeroThreshold = leastZero
	}
	return true
}

// appendBuckets appends the buckets that are not empty, each merged from 2^shift.
func appendBuckets(dst []Bucket, b pmetric.ExponentialHistogramDataPointBuckets, shift uint32) []Bucket {
	counts, offset := b.BucketCounts(), int64(b.Offset())
	for i := range counts.Len() {
		if count := counts.At(i); count != 0 {
			dst = appendBucket(dst, Bucket{(int64(i) + offset) >> shift, count})
		}
	}
	return dst
}

// appendBucket adds to the last bucket or appends another.
func appendBucket(dst []Bucket, b Bucket) []Bucket {
	if n := len(dst); n > 0 && dst[n-1].Index == b.Index {
		dst[n-1].Count += b.Count
		return dst
	}
	return append(dst, b)
}

// coarsen merges 2^shift buckets into one, in place.
func coarsen(buckets []Bucket, shift uint32) []Bucket {
	out := buckets[:0]
	for _, b := range buckets {
		out = appendBucket(out, Bucket{b.Index >> shift, b.Count})
	}
	return out
}

// merge appends the sum of a and b to dst.
func merge(dst, a, b []Bucket) []Bucket {
	for len(a) > 0 || len(b) > 0 {
		if len(b) == 0 || len(a) > 0 && a[0].Index <= b[0].Index {
			dst = appendBucket(dst, a[0])
			a = a[1:]
		} else {
			dst = appendBucket(dst, b[0])
			b = b[1:]
		}
	}
	return dst
}
