// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package cardinalityprocessor

import (
	"slices"

	"go.opentelemetry.io/collector/pdata/pmetric"
)

// bounds are those of a histogram's buckets. They never change, so many values share them; nil are none.
//
// Histograms of different bounds come together in buckets that end where those of all end. What was counted up to such a
// bound is known exactly for each of them, so all that is lost is how counts are distributed in between.
type bounds struct{ upper []float64 }

// boundsOf returns those of a point, or false if they are not in order or there are not as many counts as they need. It
// returns the given ones if they are the same.
func boundsOf(dp pmetric.HistogramDataPoint, known *bounds) (*bounds, bool) {
	upper, counts := dp.ExplicitBounds(), dp.BucketCounts().Len()
	n := upper.Len()
	if n == 0 {
		return nil, counts <= 1
	}
	if counts != n+1 {
		return nil, false
	}
	same := known != nil && n == len(known.upper)
	for i := range n {
		at := upper.At(i)
		if i > 0 && !(at > upper.At(i-1)) || at != at { // NaN is in no order
			return nil, false
		}
		same = same && at == known.upper[i]
	}
	if same {
		return known, true
	}
	return &bounds{upper: upper.AsRaw()}, true
}

// common returns the bounds that both have, nil if there are none, and b if it has no others.
func (b *bounds) common(o *bounds) *bounds {
	if b == o || b == nil || o == nil {
		if b == o {
			return b
		}
		return nil
	}
	both := make([]float64, 0, min(len(b.upper), len(o.upper)))
	for i, j := 0, 0; i < len(b.upper) && j < len(o.upper); {
		switch x, y := b.upper[i], o.upper[j]; {
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
	case len(b.upper):
		return b
	case len(o.upper):
		return o
	default:
		return &bounds{upper: slices.Clip(both)}
	}
}

// coarsen returns the counts between some of the bounds: to has no others.
func (b *bounds) coarsen(cells []uint64, to *bounds) []uint64 {
	if b == to || len(cells) == 0 {
		return cells
	}
	if to == nil {
		return nil
	}
	coarse := make([]uint64, len(to.upper)+1)
	at := 0
	for i, n := range cells {
		coarse[at] += n
		if i < len(b.upper) && at < len(to.upper) && b.upper[i] == to.upper[at] {
			at++
		}
	}
	return coarse
}
