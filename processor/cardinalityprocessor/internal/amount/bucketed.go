// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package amount

import (
	"math"

	"go.opentelemetry.io/collector/pdata/pmetric"
)

// Bucketed is the value of a histogram, with its original bounds.
type Bucketed struct {
	Value

	Bounds *Bounds
}

// Read determines the bounds of a value, and whether it can be added to others with known bounds. It reports whether
// its sum cannot be used.
func (v *Bucketed) Read(m pmetric.Metric, i int, known *Bounds) (partial bool, lost Loss) {
	switch v.Shape {
	case ShapeHistogram:
		of, ok := BoundsOf(m.Histogram().DataPoints().At(i), known)
		if !ok || known != nil && known.Common(of) == nil {
			return false, LossBounds
		}
		v.Bounds = of
	case shapeExponential:
		in := v.buckets()
		if !Finite(in.zeroThreshold) || in.zeroThreshold < 0 {
			return false, LossNotFinite
		}
		if in.scale < minScale || in.scale > maxScale || !in.positive.numbered() || !in.negative.numbered() {
			return false, LossBounds
		}
	default:
	}
	if !v.countable() {
		return false, LossNotFinite
	}
	if v.HasSum && !Finite(v.Sum) {
		v.Sum, v.HasSum, partial = 0, false, true
	}
	return partial, LossNone
}

// mostCounted is more than anybody counts, and the limit of exact integers for those who store counts as floats. A
// program that subtracts too much from a count that cannot be negative reports nearly 2^64.
const mostCounted = 1 << 53

// countable reports whether all counts of a value are possible.
func (v *Value) countable() bool {
	in := v.buckets()
	all := in.zero
	for _, counts := range [...][]uint64{v.Cells, in.positive.Counts, in.negative.Counts} {
		for _, n := range counts {
			if all += n; n > mostCounted || all > mostCounted {
				return false
			}
		}
	}
	return all <= mostCounted && v.Count <= mostCounted
}

// At scales below, all values are in the two buckets around 1; above, buckets are narrower than the distance of
// numbers.
const minScale, maxScale = -32, 64

// Usable reports whether a number can be part of a sum. A gauge may be any number if it is not added up.
func Usable(n float64, c Class, mode GaugeMode) bool {
	switch {
	case c != ClassGauge || mode == GaugeMean:
		return Finite(n)
	case mode == GaugeLast:
		return true
	default:
		return !math.IsNaN(n) // which is neither more nor less
	}
}

// None returns a value of the same shape with nothing in it, to announce what will come.
func (v *Value) None() Value {
	w := Value{Shape: v.Shape, HasSum: v.HasSum, Cells: make([]uint64, len(v.Cells))}
	if v.exponential != nil {
		w.exponential = &exponential{scale: v.exponential.scale, zeroThreshold: v.exponential.zeroThreshold}
	}
	return w
}

// Bring merges a value into fewer bounds.
func (v *Bucketed) Bring(to *Bounds) {
	v.Cells, v.Bounds = v.Bounds.Coarsen(v.Cells, to), to
}

// Scalar is the number that shows whether a counter has restarted.
func (v *Value) Scalar() Value {
	w := *v
	w.Cells, w.exponential = nil, nil
	return w
}

// Fell reports whether a counter is less than before.
func (v *Value) Fell(last *Value) bool {
	if v.Shape == ShapeNumber {
		return v.Below(&last.Numeric)
	}
	return v.Count < last.Count
}

// BucketCost is the memory of one bucket.
const BucketCost = 8

// exponentialCost is the memory of the part that only exponential histograms have, without buckets.
const exponentialCost = 96

// Cost is the memory of a value's buckets.
func (v *Value) Cost() int64 {
	n := BucketCost * int64(len(v.Cells))
	if v.exponential != nil {
		n += exponentialCost + BucketCost*int64(len(v.exponential.positive.Counts)+len(v.exponential.negative.Counts))
	}
	return n
}
