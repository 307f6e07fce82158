// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package page

import (
	"slices"

	"go.opentelemetry.io/collector/pdata/pmetric"
)

// recycled are points of a large page's parts that were consumed, by metric, for the parts to come. Metrics that follow each
// other tend to be about the same things in the same order, so most attributes of such a point are right already.
type recycled []pmetric.NumberDataPointSlice

// put takes the points out of a part's metrics. It keeps the last, up to a number.
func (r *recycled) put(md pmetric.Metrics, most int) {
	for _, rm := range md.ResourceMetrics().All() {
		for _, sm := range rm.ScopeMetrics().All() {
			for _, m := range sm.Metrics().All() {
				points := pmetric.NewNumberDataPointSlice()
				switch m.Type() {
				case pmetric.MetricTypeGauge:
					m.Gauge().DataPoints().MoveAndAppendTo(points)
				case pmetric.MetricTypeSum:
					m.Sum().DataPoints().MoveAndAppendTo(points)
				default:
					continue
				}
				*r = append(*r, points)
			}
		}
	}
	first := len(*r)
	for first > 0 && most >= (*r)[first-1].Len() {
		first--
		most -= (*r)[first].Len()
	}
	*r = slices.Delete(*r, 0, first)
}

// take moves up to n points to dst, which is empty, and returns how many. It takes those of the metric whose number is
// nearest, since points cannot be parted without loss.
func (r *recycled) take(n int, dst pmetric.NumberDataPointSlice) int {
	best, off := -1, n
	for i, points := range *r {
		if d := max(points.Len()-n, n-points.Len()); d < off {
			best, off = i, d
		}
	}
	if best < 0 {
		return 0
	}
	(*r)[best].MoveAndAppendTo(dst)
	*r = slices.Delete(*r, best, best+1)
	if dst.Len() > n {
		i := 0
		dst.RemoveIf(func(pmetric.NumberDataPoint) bool {
			i++
			return i > n
		})
	}
	return dst.Len()
}
