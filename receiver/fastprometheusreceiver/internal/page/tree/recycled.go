// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package tree

import (
	"container/list"
	"math"
	"slices"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/godwit-otel/godwit/receiver/fastprometheusreceiver/internal/page/plan"
)

// recycled are points of a large page's parts that were consumed, for the parts to come. Of the same metric, most of what
// they are made of is right already. Of other metrics, but about the same, they have values of attributes to give: setting
// one takes an allocation, moving one does not. A page may have about as many metrics as points, so nothing is looked for
// among all of them.
type recycled struct {
	metric int32                     // that is being made
	used   list.List                 // of *used, the first to have come at the front
	of     map[int32][]*list.Element // the same, by metric
	givers []*used                   // the last to have come at the end
	turn   int                       // of a metric
	kept   int                       // points
	full   bool                      // there are enough for all metrics of a round
}

type used struct {
	metric int32
	points pmetric.NumberDataPointSlice
	about  []int32 // what the points are about, or aboutNothing for those that have given
	left   int     // that may give
	next   int     // of them to look at, in this turn
	turn   int
}

const (
	fewUsed   = 64 // are compared for their size
	fewGivers = 64 // are asked
)

// put takes the points out of a part's metrics. It keeps the last, up to a number, and is full from another on.
func (r *recycled) put(part []given, enough, most int) {
	if r.of == nil {
		r.of = map[int32][]*list.Element{}
	}
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
		u := &used{metric: g.number, points: points, about: g.about, left: len(g.about)}
		r.of[u.metric] = append(r.of[u.metric], r.used.PushBack(u))
		r.givers = append(r.givers, u)
		r.kept += points.Len()
	}
	r.full = r.kept >= enough
	for r.kept > most {
		r.full = true
		r.remove(r.used.Front())
	}
	r.givers = slices.DeleteFunc(r.givers, func(u *used) bool { return u.left == 0 })
}

func (r *recycled) remove(e *list.Element) {
	u := r.used.Remove(e).(*used)
	u.left = 0
	r.kept -= u.points.Len()
	if others := r.of[u.metric]; len(others) > 1 {
		r.of[u.metric] = slices.DeleteFunc(others, func(other *list.Element) bool { return other == e })
	} else {
		delete(r.of, u.metric)
	}
}

// take moves up to n points to dst, which is empty, and returns how many: of the same metric, or else, when there are
// enough, of those whose numbers are nearest.
func (r *recycled) take(n int, dst pmetric.NumberDataPointSlice) int {
	if r.used.Len() == 0 {
		return 0 // nor is dst empty, maybe: a tree's points are kept
	}
	r.turn++
	for dst.Len() < n {
		left := n - dst.Len()
		e := r.best(left)
		if e == nil {
			break
		}
		u := e.Value.(*used)
		if u.points.Len() > left {
			rest := divide(u.points, left)
			r.kept -= u.points.Len()
			u.points.MoveAndAppendTo(dst)
			u.points, u.left = rest, 0
			break
		}
		r.remove(e)
		u.points.MoveAndAppendTo(dst)
		if u.metric == r.metric && n-dst.Len() <= n/8 {
			break // for the few that are left others would have to be divided
		}
	}
	return dst.Len()
}

// best returns what suits a metric that wants n points: its own, or those among the first of which there are about as many.
func (r *recycled) best(n int) (best *list.Element) {
	if own := r.of[r.metric]; len(own) > 0 {
		return own[0]
	}
	if !r.full {
		return nil
	}
	off := math.MaxInt
	for i, e := 0, r.used.Front(); i < fewUsed && e != nil; i, e = i+1, e.Next() {
		has := e.Value.(*used).points.Len()
		if d := max(has-n, n-has); d < off {
			best, off = e, d
		}
	}
	return best
}

// giver returns the attributes of a point about something, once, or else none; the last to have come is asked first.
// Those who ask want things in the order in which points are about them.
func (r *recycled) giver(about int32) pcommon.Map {
	for i := len(r.givers) - 1; i >= max(0, len(r.givers)-fewGivers) && about >= 0; i-- {
		u := r.givers[i]
		if u.left == 0 {
			r.givers = slices.Delete(r.givers, i, i+1)
			continue
		}
		if u.turn != r.turn {
			u.turn, u.next = r.turn, 0
		}
		for u.next < len(u.about) && u.about[u.next] < about {
			u.next++
		}
		if u.next < len(u.about) && u.about[u.next] == about {
			u.about[u.next] = plan.AboutNothing
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
