// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package runtimeprofileextension

import "time"

const (
	// roomEvery is how often it is looked at how much of the heap stands empty.
	roomEvery = 2 * time.Second
	// restLooks is how many looks there are at least between a cycle and one that gives room back.
	restLooks = 5
	// leastEmpty is not worth a cycle.
	leastEmpty = 4 << 20
	// worth is the share of the CPU that is paid for a heap whose resident memory is twice what is live, and so on: a twentieth for a tenth of
	// that. It is the price of room that stands empty, and in minimal of room for garbage.
	worth = 0.5
	// usualCost is what a cycle is taken to cost for each byte that is live, until one was watched: a second for a GB.
	usualCost = 1e-9
)

// emptyRoom says when to give back to the system what the heap has beside what is live: room for garbage, and what a burst has left. The runtime
// keeps what a cycle frees, and a tenth more than the heap had before it, so a process whose cycles are a minute apart has all of its room
// resident, and needs that at the end of the minute only. Nothing but a whole collection gives it back. It is time for one when what stood
// empty since the last was worth more CPU than a cycle takes.
type emptyRoom struct {
	last  sample
	looks int     // since the last cycle
	cycle float64 // what one took by the runtime's account, in CPU seconds
	cost  float64 // and by the system's, for each byte that is live
	stood float64 // CPU seconds used since the last cycle, each times the heap that stood empty, of which one is what is live
}

func newEmptyRoom(now sample) emptyRoom { return emptyRoom{last: now, cost: usualCost} }

func (r *emptyRoom) isDue(now sample) bool {
	r.looks++
	if n := now.cycles - r.last.cycles; n > 0 {
		r.cycle = (now.gcSeconds - r.last.gcSeconds) / float64(n)
		r.looks, r.stood = 0, 0
	}
	used := now.used - r.last.used
	r.last = now
	if now.knobs.gogc < 0 || now.live <= 0 || r.cycle <= 0 {
		return false
	}
	empty := now.free + now.objects - now.live
	r.stood += used * float64(empty) / float64(now.live)
	return r.looks >= restLooks && empty >= leastEmpty && worth*r.stood >= min(r.cycle, r.cost*float64(now.live))
}

// gave notes that a cycle has given room back, and how much CPU was used meanwhile. The runtime counts its workers by the clock: where other
// processes are in their way, a cycle looks several times as dear as it is.
func (r *emptyRoom) gave(now sample) {
	if used := now.used - r.last.used; now.live > 0 {
		r.cost = used / float64(now.live)
	}
	r.isDue(now)
}
