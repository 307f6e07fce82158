// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package page

import (
	"math"
	"slices"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"
)

// recycled are points of a large page's parts that were consumed, for the parts to come. Of the same metric, most of what
// they are made of is right already. Of other metrics, but about the same, they have values of attributes to give: setting
// one takes an allocation, moving one does not.
type recycled struct {
	metric int32 // that is being made
	used   []used
	full   bool // there are enough for all metrics of a round
}

type used struct {
	metric int32
	points pmetric.NumberDataPointSlice
	about  []int32 // what the points are about, or aboutNothing for those that have given
	next   int     // of them to look at
	left   int     // that may give
}

// put takes the points out of a part's metrics. It keeps the last, up to a number, and is full from another on.
func (r *recycled) put(part []given, enough, most int) {
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
		r.used = append(r.used, used{metric: g.number, points: points, about: g.about, left: len(g.about)})
	}
	first, kept := len(r.used), 0
	for first > 0 && kept+r.used[first-1].points.Len() <= most {
		first--
		kept += r.used[first].points.Len()
	}
	r.full = first > 0 || kept >= enough
	r.used = slices.Delete(r.used, 0, first)
}

// take moves up to n points to dst, which is empty, and returns how many: of the same metric, or else, when there are
// enough, of those whose numbers are nearest.
func (r *recycled) take(n int, dst pmetric.NumberDataPointSlice) int {
	if len(r.used) == 0 {
		return 0 // nor is dst empty, maybe: a tree's points are kept
	}
	for dst.Len() < n && len(r.used) > 0 {
		best, off := -1, math.MaxInt
		for i, u := range r.used {
			if u.metric == r.metric {
				best = i
				break
			}
			if !r.full {
				continue
			}
			left := n - dst.Len()
			if d := max(u.points.Len()-left, left-u.points.Len()); d < off {
				best, off = i, d
			}
		}
		if best < 0 {
			break
		}
		u := &r.used[best]
		if more := u.points.Len() + dst.Len() - n; more > 0 {
			rest := divide(u.points, u.points.Len()-more)
			u.points.MoveAndAppendTo(dst)
			u.points, u.about, u.left = rest, nil, 0
			break
		}
		isOwn := u.metric == r.metric
		u.points.MoveAndAppendTo(dst)
		if r.used = slices.Delete(r.used, best, best+1); isOwn && n-dst.Len() <= n/8 {
			break // for the few that are left others would have to be divided
		}
	}
	for i := range r.used {
		r.used[i].next = 0
	}
	return dst.Len()
}

// giver returns the attributes of a point about something, once, or else none; the last to have come is asked first.
// Those who ask want things in the order in which points are about them.
func (r *recycled) giver(about int32) pcommon.Map {
	for i := range r.used {
		u := &r.used[len(r.used)-1-i]
		if u.left == 0 || about < 0 {
			continue
		}
		for u.next < len(u.about) && u.about[u.next] < about {
			u.next++
		}
		if u.next < len(u.about) && u.about[u.next] == about {
			u.about[u.next] = aboutNothing
			u.left--
			return u.points.At(u.next).Attributes()
		}
	}
	return pcommon.Map{}
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
