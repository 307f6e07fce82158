// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package amount

import (
	"slices"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"
)

// Bounds are the bounds of a histogram's buckets. They never change, so many values share them; nil is none.
//
// Histograms with different bounds are added in buckets that end at bounds which all of them have. Counts up to such a
// bound are known exactly, so all that is lost is how counts are distributed in between.
type Bounds struct{ Upper []float64 }

// BoundsOf returns the bounds of a point, or false if they are not ascending or the number of counts is wrong. It
// returns known if they are equal.
func BoundsOf(dp pmetric.HistogramDataPoint, known *Bounds) (*Bounds, bool) {
	upper, counts := dp.ExplicitBounds(), dp.BucketCounts().Len()
	n := upper.Len()
	if n == 0 {
		return nil, counts <= 1
	}
	if counts != n+1 {
		return nil, false
	}
	if known.are(upper) {
		return known, true
	}
	for i := range n {
		at := upper.At(i)
		if i > 0 && !(at > upper.At(i-1)) || at != at { // NaN is not ordered
			return nil, false
		}
	}
	return &Bounds{Upper: upper.AsRaw()}, true
}

// are reports whether these are the bounds of a point.
func (b *Bounds) are(upper pcommon.Float64Slice) bool {
	if b == nil || len(b.Upper) != upper.Len() {
		return false
	}
	for i, at := range b.Upper {
		if upper.At(i) != at {
			return false
		}
	}
	return true
}

// Common returns the bounds that both have, nil if there are none, and b itself if all of its bounds are.
func (b *Bounds) Common(o *Bounds) *Bounds {
	if b == o || b == nil || o == nil {
		if b == o {
			return b
		}
		return nil
	}
	both := make([]float64, 0, min(len(b.Upper), len(o.Upper)))
	for i, j := 0, 0; i < len(b.Upper) && j < len(o.Upper); {
		switch x, y := b.Upper[i], o.Upper[j]; {
		case x < y:
			i++
		case y < x:
			j++
		default:
			both = append(both, x)
			i, j = i+1, j+1
		}
	}
	switch len(both) {
	case 0:
		return nil
	case len(b.Upper):
		return b
	case len(o.Upper):
		return o
	default:
		return &Bounds{Upper: slices.Clip(both)}
	}
}

// Coarsen merges counts into the buckets of to, whose bounds b has, too.
func (b *Bounds) Coarsen(cells []uint64, to *Bounds) []uint64 {
	if b == to || len(cells) == 0 {
		return cells
	}
	if to == nil {
		return nil
	}
	coarse := make([]uint64, len(to.Upper)+1)
	at := 0
	for i, n := range cells {
		coarse[at] += n
		if i < len(b.Upper) && at < len(to.Upper) && b.Upper[i] == to.Upper[at] {
			at++
		}
	}
	return coarse
}

// SetBounds sets the bounds of a metric's point, if there are any.
func SetBounds(m pmetric.Metric, b *Bounds) {
	if b != nil {
		m.Histogram().DataPoints().At(0).ExplicitBounds().FromRaw(b.Upper)
	}
}
