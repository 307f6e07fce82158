// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package histogram

import (
	"math"

	"github.com/godwit-otel/godwit/internal/promwrite"
)

// Explicit is the content of a histogram with explicit bounds.
type Explicit struct {
	Bounds []float64 // without +Inf
	Counts []uint64  // one more than bounds, or fewer if the last ones are empty
	Count  uint64
	Sum    float64
	HasSum bool
}

// FillCustom makes n a native histogram with these custom bounds. It returns false if that is impossible.
func (h *Explicit) FillCustom(n *promwrite.Histogram) bool {
	s := spans{spans: n.PositiveSpans, deltas: n.PositiveDeltas}
	pending, total := uint64(0), uint64(0) // pending: counts of repeated bounds, which belong to the next bucket
	for i, bound := range h.Bounds {
		if math.IsNaN(bound) || i > 0 && bound < h.Bounds[i-1] {
			return false
		}
		count := uint64(0)
		if i < len(h.Counts) {
			count = h.Counts[i]
		}
		total += count
		if i > 0 && bound == h.Bounds[i-1] {
			pending += count
			continue
		}
		s.add(int64(len(n.CustomValues)), count+pending)
		pending = 0
		n.CustomValues = append(n.CustomValues, bound)
	}
	// What the buckets do not account for is in the last one.
	for _, count := range h.Counts[min(len(h.Bounds), len(h.Counts)):] {
		pending += count
		total += count
	}
	if h.Count > total {
		pending += h.Count - total
		total = h.Count
	}
	s.add(int64(len(n.CustomValues)), pending)
	if s.invalid || total > math.MaxInt64 {
		return false
	}
	n.PositiveSpans, n.PositiveDeltas = s.spans, s.deltas
	n.Schema, n.Count.Int = promwrite.CustomBucketsSchema, total
	if h.HasSum {
		n.Sum = h.Sum
	}
	return true
}

// SameBounds compares bits, so that NaN equals itself.
func SameBounds(a, b []float64) bool {
	if len(a) != len(b) {
		return false
	}
	for i := range a {
		if math.Float64bits(a[i]) != math.Float64bits(b[i]) {
			return false
		}
	}
	return true
}
