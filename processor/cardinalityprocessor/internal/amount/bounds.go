// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package amount

import (
	"slices"

	"go.opentelemetry.io/collector/pdata/pmetric"
)

// Bounds are those of a histogram's buckets. They never change, so many values share them; nil are none.
//
// Histograms of different bounds come together in buckets that end where those of all end. What was counted up to such a
// bound is known exactly for each of them, so all that is lost is how counts are distributed in between.
type Bounds struct{ Upper []float64 }

// BoundsOf returns those of a point, or false if they are not in order or there are not as many counts as they need. It
// returns the given ones if they are the same.
func BoundsOf(dp pmetric.HistogramDataPoint, known *Bounds) (*Bounds, bool) {
	upper, counts := dp.ExplicitBounds(), dp.BucketCounts().Len()
	n := upper.Len()
	if n == 0 {
		return nil, counts <= 1
	}
	if counts != n+1 {
		return nil, false
	}
	same := known != nil && n == len(known.Upper)
	for i := range n {
		at := upper.At(i)
		if i > 0 && !(at > upper.At(i-1)) || at != at { // NaN is in no order
			return nil, false
		}
		same = same && at == known.Upper[i]
	}
	if same {
		return known, true
	}
	return &Bounds{Upper: upper.AsRaw()}, true
}

// Common returns the bounds that both have, nil if there are none, and b if it has no others.
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

// Coarsen returns the counts between some of the bounds: to has no others.
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

// SetBounds gives a point the bounds of its value, if it has any.
func SetBounds(m pmetric.Metric, b *Bounds) {
	if b != nil {
		m.Histogram().DataPoints().At(0).ExplicitBounds().FromRaw(b.Upper)
	}
}
