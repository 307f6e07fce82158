// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package page

import (
	"math"
	"slices"

	"go.opentelemetry.io/collector/pdata/pmetric"
)

// recycled are points of a large page's parts that were consumed, for the parts to come. Of the same metric, most of what
// they are made of is right already.
type recycled struct {
	metric int32 // that is being made
	used   []used
}

type used struct {
	metric int32
	points pmetric.NumberDataPointSlice
}

// put takes the points out of a part's metrics. It keeps the last, up to a number.
func (r *recycled) put(part []given, most int) {
	for _, g := range part {
		points := pmetric.NewNumberDataPointSlice()
		switch g.Type() {
		case pmetric.MetricTypeGauge:
			g.Gauge().DataPoints().MoveAndAppendTo(points)
		case pmetric.MetricTypeSum:
			g.Sum().DataPoints().MoveAndAppendTo(points)
		default:
			continue
		}
		r.used = append(r.used, used{g.number, points})
	}
	first := len(r.used)
	for first > 0 && most >= r.used[first-1].points.Len() {
		first--
		most -= r.used[first].points.Len()
	}
	r.used = slices.Delete(r.used, 0, first)
}

// take moves up to n points to dst, which is empty, and returns how many: of the same metric, or else of those whose
// numbers are nearest.
func (r *recycled) take(n int, dst pmetric.NumberDataPointSlice) int {
	if len(r.used) == 0 {
		return 0 // nor is dst empty, maybe: a tree's points are kept
	}
	for dst.Len() < n && len(r.used) > 0 {
		best, off := 0, math.MaxInt
		for i, u := range r.used {
			if u.metric == r.metric {
				best = i
				break
			}
			left := n - dst.Len()
			if d := max(u.points.Len()-left, left-u.points.Len()); d < off {
				best, off = i, d
			}
		}
		u := &r.used[best]
		if more := u.points.Len() + dst.Len() - n; more > 0 {
			rest := divide(u.points, u.points.Len()-more)
			u.points.MoveAndAppendTo(dst)
			u.points = rest
			break
		}
		isOwn := u.metric == r.metric
		u.points.MoveAndAppendTo(dst)
		if r.used = slices.Delete(r.used, best, best+1); isOwn && n-dst.Len() <= n/8 {
			break // for the few that are left others would have to be divided
		}
	}
	return dst.Len()
}

// divide leaves the first n points where they are, or as many, and returns the others. As few as can be are moved: each of
// those is allocated anew, though not what it refers to.
func divide(points pmetric.NumberDataPointSlice, n int) pmetric.NumberDataPointSlice {
	moved := pmetric.NewNumberDataPointSlice()
	i, most := 0, min(n, points.Len()-n)
	moved.EnsureCapacity(most)
	points.RemoveIf(func(dp pmetric.NumberDataPoint) bool {
		if i++; i <= most {
			dp.MoveTo(moved.AppendEmpty())
		}
		return i <= most
	})
	if most < n {
		return moved
	}
	rest := pmetric.NewNumberDataPointSlice()
	points.MoveAndAppendTo(rest)
	moved.MoveAndAppendTo(points)
	return rest
}
