// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package amount

import "math"

// Advance adds the growth of a counter from last to v to a total, and makes last a copy of v: in the memory that they
// have, and without temporary values. It does so only in the usual case: the shapes and buckets are the same, nothing
// went down, there is a sum, and the total can hold all of it. Otherwise it changes nothing, and returns false.
func (v *Value) Advance(last, total *Value) bool {
	cells := v.Cells
	if v.Shape != last.Shape || v.Shape != total.Shape || v.Shape == shapeExponential ||
		len(cells) != len(last.Cells) || len(cells) != len(total.Cells) {
		return false
	}
	if v.Shape == ShapeNumber {
		return v.advanceNumber(last, total)
	}
	sum := total.Sum + (v.Sum - last.Sum)
	if !v.HasSum || !last.HasSum || !Finite(sum) || v.Count < last.Count {
		return false
	}
	grown := v.Count - last.Count
	all := total.Count + grown
	before, sums := last.Cells[:len(cells)], total.Cells[:len(cells)]
	for i, n := range cells {
		if n < before[i] {
			return false
		}
		all |= sums[i] + (n - before[i])
	}
	if all > math.MaxInt64 {
		return false
	}
	for i, n := range cells {
		sums[i] += n - before[i]
		before[i] = n
	}
	total.Count += grown
	total.Sum, total.HasSum = sum, true
	last.Count, last.Sum = v.Count, v.Sum
	return true
}

// advanceNumber is Advance for numbers.
func (v *Value) advanceNumber(last, total *Value) bool {
	if v.Below(&last.Numeric) {
		return false
	}
	grown, sum := v.Numeric, total.Numeric
	grown.SubNumber(&last.Numeric)
	if !sum.AddNumber(&grown) {
		return false
	}
	last.Numeric, total.Numeric = v.Numeric, sum
	return true
}
