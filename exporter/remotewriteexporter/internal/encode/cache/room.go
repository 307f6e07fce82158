// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package cache

import "sync/atomic"

// manyAttributes is from how many attributes on a point takes more than one place, one for each placeAttributes: whoever sends the same
// tens of thousands in another order each time would have as many copies of them kept as there are places. Such points together
// have one of wideShare places: the others are those of series as destinations take them.
const (
	manyAttributes  = 64
	placeAttributes = 8
	wideShare       = 8
)

// placesOf returns how many places a point of n attributes takes.
func placesOf(n int) int {
	if n < manyAttributes {
		return 1
	}
	return n / placeAttributes
}

// room is how many points and resources there may be, and how much of that is taken. What gets none is translated each time it comes.
type room struct {
	most      int
	points    int // places of them
	wide      int // of those of many attributes
	resources int
	overflow  atomic.Int64 // places that there were not, since the last sweep
}

// isFull says whether there is none for a point.
func (r *room) isFull() bool { return r.points >= r.most }

// addPoint counts a point that has its room.
func (r *room) addPoint(attributes int) {
	places := placesOf(attributes)
	if r.points += places; places > 1 {
		r.wide += places
	}
}

// takePoint is addPoint if there is room.
func (r *room) takePoint(attributes int) bool {
	places := placesOf(attributes)
	if r.points+places > r.most || places > 1 && r.wide+places > r.most/wideShare {
		r.overflow.Add(int64(places))
		return false
	}
	r.addPoint(attributes)
	return true
}

// takeResource counts a resource if there is room.
func (r *room) takeResource() bool {
	if r.resources >= r.most {
		r.overflow.Add(1)
		return false
	}
	r.resources++
	return true
}

// empty says that nothing is there, for a sweep to count what is.
func (r *room) empty() { r.points, r.wide, r.resources = 0, 0, 0 }
