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

// Stow removes points from a slice and keeps them, with all their content, beyond its end, where Unstow finds them. The
// others stay in their order. The caller must own the slice: adding to it may overwrite what is stowed. It returns how
// many it keeps: none if pdata's types do not have the known layout; the points are then just removed.
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

// Unstow appends stowed points to a slice, until it has n or there are no more. It returns how many: they have the
// content that they had when they were stowed.
func Unstow[S points[P], P Point](to S, n int) (found int) { return unstow(to, n) }
