// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package slab

import "go.opentelemetry.io/collector/pdata/pmetric"

// Point is what can be stowed.
type Point interface {
	pmetric.NumberDataPoint | pmetric.HistogramDataPoint | pmetric.ExponentialHistogramDataPoint | pmetric.SummaryDataPoint
}

// points is a slice of them.
type points[P Point] interface{ RemoveIf(f func(P) bool) }

// Stow takes points out of a slice and keeps them, with all they hold, behind its end, where Unstow finds them. The others stay in
// their order. The slice is the caller's alone: whoever else adds to it may write over what is stowed. It returns how many it
// keeps: none where pdata's types are not as they are known, and the points are removed.
func Stow[S points[P], P Point](from S, out []bool) (kept int) {
	if kept, done := stow(from, out); done {
		return kept
	}
	i := -1
	from.RemoveIf(func(P) bool {
		i++
		return out[i]
	})
	return 0
}

// Unstow puts points that are stowed at the end of a slice, until it has n or there are no more. It returns how many: they hold what
// they held when they were stowed.
func Unstow[S points[P], P Point](to S, n int) (found int) { return unstow(to, n) }
