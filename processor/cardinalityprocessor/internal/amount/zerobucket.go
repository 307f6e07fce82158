// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package amount

import (
	"math"
	"slices"
)

// level brings the zero buckets of two exponential histograms of one scale to the same width.
func (e *exponential) level(o *exponential) {
	for range 3 { // if a bucket contains the threshold, the other value must follow
		threshold := max(e.zeroThreshold, o.zeroThreshold)
		e.widen(threshold)
		o.widen(threshold)
		if e.zeroThreshold == o.zeroThreshold {
			return
		}
	}
}

// widen widens the zero bucket to a threshold, unless it is wider already. The counts of buckets below are added to it.
// If a bucket contains the threshold and is not empty, the threshold becomes its upper bound, as the data model says.
func (e *exponential) widen(threshold float64) {
	if threshold <= 0 {
		return
	}
	e.zeroThreshold = max(e.zeroThreshold, threshold)
	first := firstAbove(e.zeroThreshold, e.scale)
	fromPositive, lastPositive := e.positive.cut(first)
	fromNegative, lastNegative := e.negative.cut(first)
	e.zero += fromPositive + fromNegative
	if lastPositive+lastNegative > 0 {
		e.zeroThreshold = max(e.zeroThreshold, lowerBound(first, e.scale))
	}
}

// cut removes the buckets before first, and returns the sum of their counts, and the last of these counts.
func (b *buckets) cut(first int64) (all, last uint64) {
	n := min(max(first-b.offset, 0), int64(len(b.Counts)))
	if n == 0 {
		return 0, 0
	}
	for _, count := range b.Counts[:n] {
		all += count
	}
	if b.offset+n == first {
		last = b.Counts[n-1]
	}
	b.offset, b.Counts = b.offset+n, slices.Clone(b.Counts[n:]) // in memory of their own
	if len(b.Counts) == 0 {
		*b = buckets{}
	}
	return all, last
}

// firstAbove is the index of the first bucket whose lower bound is at least the threshold: the bounds of a scale are
// powers of 2^(2^-scale).
func firstAbove(threshold float64, scale int32) int64 {
	const most = 1 << 40 // indexes have 32 bits
	at := math.Ldexp(math.Log2(threshold), int(scale))
	if near := math.Round(at); math.Abs(at-near) <= 1e-9*math.Max(1, math.Abs(at)) && (near != 0 || threshold == 1) {
		at = near
	}
	return int64(min(max(math.Ceil(at), -most), most))
}

// lowerBound is the lower bound of a bucket.
func lowerBound(index int64, scale int32) float64 {
	return min(math.Exp2(math.Ldexp(float64(index), -int(scale))), math.MaxFloat64)
}
