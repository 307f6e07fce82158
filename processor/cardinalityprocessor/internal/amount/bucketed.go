// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package amount

import (
	"math"

	"go.opentelemetry.io/collector/pdata/pmetric"
)

// Bucketed is a value that is no number, with the bounds that it came in.
type Bucketed struct {
	Value

	Bounds *Bounds
}

// Read finds out in which bounds a value came, and whether it can be added to others that have known ones. It says whether
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
		if !Finite(v.zeroThreshold) || v.zeroThreshold < 0 {
			return false, LossNotFinite
		}
		if v.scale < minScale || v.scale > maxScale {
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

// mostCounted is more than anybody has counted, and as much as others can say exactly, who take counts for floats. A program that takes too much
// from what cannot be negative says that there are 2^64 of something, less a few.
const mostCounted = 1 << 53

// countable says whether there may have been so many of all that a value counts.
func (v *Value) countable() bool {
	all := v.Zero
	for _, counts := range [...][]uint64{v.Cells, v.Positive.Counts, v.negative.Counts} {
		for _, n := range counts {
			if all += n; n > mostCounted || all > mostCounted {
				return false
			}
		}
	}
	return all <= mostCounted && v.Count <= mostCounted
}

// At scales below, all that there is lies in the two buckets around 1; above, buckets are closer together than numbers.
const minScale, maxScale = -32, 64

// Usable says whether a number can be part of a sum. A gauge may be any number where numbers are not added up.
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

// None is a value of the same form with nothing in it: it makes known what there will be.
func (v *Value) None() Value {
	return Value{
		Shape: v.Shape, HasSum: v.HasSum, Cells: make([]uint64, len(v.Cells)), scale: v.scale, zeroThreshold: v.zeroThreshold,
	}
}

// Bring brings a value to fewer bounds.
func (v *Bucketed) Bring(to *Bounds) {
	v.Cells, v.Bounds = v.Bounds.Coarsen(v.Cells, to), to
}

// Scalar is what tells whether a counter began anew.
func (v *Value) Scalar() Value {
	w := *v
	w.Cells, w.Positive, w.negative = nil, buckets{}, buckets{}
	return w
}

// Fell says whether a counter has less than before.
func (v *Value) Fell(last *Value) bool {
	if v.Shape == ShapeNumber {
		return v.Below(&last.Numeric)
	}
	return v.Count < last.Count
}

// BucketCost is the memory of one.
const BucketCost = 8

// Cost is the memory of a value's buckets.
func (v *Value) Cost() int64 {
	return BucketCost * int64(len(v.Cells)+len(v.Positive.Counts)+len(v.negative.Counts))
}
