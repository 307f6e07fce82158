// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package tree

import (
	"github.com/godwit-otel/godwit/internal/slab"
	"github.com/godwit-otel/godwit/receiver/fastprometheusreceiver/internal/page/plan"
)

// A cursor fills the points of a layout, and those added by a variation.
type cursor struct {
	*View
	*plan.Layout

	broken       broken // counts histograms that were left out
	seen         []bool
	fresh        []int32
	slabs        *slab.Slabs // memory for metrics that are made anew
	rebuilt      bool        // a point has other attributes than before
	moved        bool        // a point has the same attributes as before, in other memory
	nextExemplar int         // exemplars attached so far
	stowed       *int        // counts points that are kept for pages with more; nil if all points are new
}

// point returns a point by its number: those of the variation come after those of the layout.
func (c *cursor) point(i int32) plan.PlacedPoint {
	if int(i) < len(c.Points) {
		return c.Placed(int(i))
	}
	return c.Extra.Placed(int(i) - len(c.Points))
}

func (c *cursor) group(i int32) *plan.Group {
	if int(i) < len(c.Groups) {
		return &c.Groups[i]
	}
	return &c.Extra.Groups[int(i)-len(c.Groups)]
}

func (c *cursor) isAbsent(point int32) bool {
	return c.Absent.Has(c.Anchor(point))
}

// ownerOf returns the target whose values a point has, by the point's number.
func (c *cursor) ownerOf(at int32) *Owner {
	if c.Before != nil && int(at) >= len(c.Points) {
		return c.Before
	}
	return c.Owner
}
