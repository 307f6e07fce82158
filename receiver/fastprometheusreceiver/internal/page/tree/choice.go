// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package tree

import (
	"github.com/godwit-otel/godwit/receiver/fastprometheusreceiver/internal/page/plan"
)

// A choice lists the points that a metric must have. The first ones exist already, after some were dropped and others
// renewed.
type choice struct {
	list     []int32 // numbers of points; nil means count points starting at first
	first    int32
	count    int
	kept     int
	drop     []bool
	renew    []bool // of the existing points: those that get another point's attributes
	allNew   bool   // all points are new
	unstowed int    // this many of the existing points, the last ones, were stowed, and get other attributes
}

// renews reports whether an existing point gets another point's attributes.
func (k choice) renews(i int) bool {
	return k.allNew || i >= k.kept-k.unstowed || i < len(k.renew) && k.renew[i]
}

func (k choice) at(i int) int32 {
	if k.list != nil {
		return k.list[i]
	}
	return k.first + int32(i)
}

// allOf chooses every point of a metric, which has all of them already or none.
func allOf(m *plan.PlacedMetric, there bool) choice {
	k := choice{first: m.First, count: int(m.Points)}
	if there {
		k.kept = k.count
	}
	return k
}

// choose finds the points of a metric that changes, or whose points differ from its layout. had are the points that it
// has, if there.
func (c *cursor) choose(m *plan.PlacedMetric, ch plan.Change, had []int32, there bool) choice {
	n := int(m.Points)
	if !there || had == nil {
		k := choice{list: make([]int32, 0, n+int(ch.Count))}
		if there && ch.Absent > 0 {
			k.drop = make([]bool, n)
		}
		for i := range n {
			if at := m.First + int32(i); ch.Absent == 0 || !c.isAbsent(at) {
				k.list = append(k.list, at)
			} else if k.drop != nil {
				k.drop[i] = true
			}
		}
		if there {
			k.kept = len(k.list)
		}
		return k.withExtra(c, ch)
	}
	c.seen = append(c.seen[:0], make([]bool, n)...)
	stays := func(at int32) bool {
		return at >= 0 && int(at) < len(c.Points) && (ch.Absent == 0 || !c.isAbsent(at))
	}
	for _, at := range had {
		if stays(at) {
			c.seen[at-m.First] = true
		}
	}
	fresh := choice{list: c.fresh[:0]}
	for i, seen := range c.seen {
		if at := m.First + int32(i); !seen && stays(at) {
			fresh.list = append(fresh.list, at)
		}
	}
	fresh = fresh.withExtra(c, ch)
	c.fresh = fresh.list
	k := choice{list: make([]int32, 0, n+int(ch.Count)), drop: make([]bool, len(had)), renew: make([]bool, len(had))}
	for i, at := range had {
		switch {
		case stays(at):
			k.list = append(k.list, at)
		case len(fresh.list) > 0:
			k.renew[len(k.list)] = true
			k.list = append(k.list, fresh.list[0])
			fresh.list = fresh.list[1:]
		default:
			k.drop[i] = true
		}
	}
	k.kept = len(k.list)
	k.list = append(k.list, fresh.list...)
	k.count = len(k.list)
	return k
}

// withExtra adds the extra points of a variation.
func (k choice) withExtra(c *cursor, ch plan.Change) choice {
	for i := range ch.Count {
		k.list = append(k.list, int32(len(c.Points))+ch.First+i)
	}
	k.count = len(k.list)
	return k
}

// reusing reuses as many existing points as there are for other points.
func (k choice) reusing(had int) choice {
	k.kept, k.allNew = min(had, k.count), true
	k.drop, k.renew = nil, nil
	if had > k.count {
		k.drop = make([]bool, had)
		for i := k.count; i < had; i++ {
			k.drop[i] = true
		}
	}
	return k
}

// split divides a choice of new points in two.
func (k choice) split(most int) (front, rest choice) {
	n := min(k.count, most)
	front, rest = choice{first: k.first, count: n}, choice{first: k.first + int32(n), count: k.count - n}
	if k.list != nil {
		front.list, rest.list = k.list[:n], k.list[n:]
	}
	return front, rest
}
