// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package cache

import "sync/atomic"

// manyAttributes is the number of attributes from which on a point takes more than one place: one per placeAttributes.
// Otherwise a sender with the same tens of thousands of attributes in another order each time would fill all places
// with large copies. All such points together get one in wideShare places: the rest belongs to series as destinations
// accept them.
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

// room is the limit of points and resources, and how much of it is taken. Entries without room are translated each
// time.
type room struct {
	most      int
	memory    memory
	points    int // places that they take
	wide      int // places of points with many attributes
	resources int
	overflow  atomic.Int64 // places that were missing, since the last sweep
}

// isFull reports whether there is no room for a point.
func (r *room) isFull() bool { return r.points >= r.most || r.memory.isFull() }

// addPoint counts a point, whose room has been checked.
func (r *room) addPoint(attributes int) {
	places := placesOf(attributes)
	if r.points += places; places > 1 {
		r.wide += places
	}
}

// takePoint is addPoint if there is room.
func (r *room) takePoint(attributes int) bool {
	places := placesOf(attributes)
	if r.points+places > r.most || r.memory.isFull() || places > 1 && r.wide+places > r.most/wideShare {
		r.overflow.Add(int64(places))
		return false
	}
	r.addPoint(attributes)
	return true
}

// takeResource counts a resource if there is room.
func (r *room) takeResource() bool {
	if r.resources >= r.most || r.memory.isFull() {
		r.overflow.Add(1)
		return false
	}
	r.resources++
	return true
}

// empty resets the counts, for a sweep to count again.
func (r *room) empty() { r.points, r.wide, r.resources = 0, 0, 0 }
