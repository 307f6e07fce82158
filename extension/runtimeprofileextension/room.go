// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package runtimeprofileextension

import "time"

const (
	// roomEvery is how often it is looked at how much of the heap stands empty, and roomSoon how often at most, where it will soon be enough.
	roomEvery = 2 * time.Second
	roomSoon  = 50 * time.Millisecond
	// roomRest is how long there is at least between a cycle and one that gives back less than much room.
	roomRest = 10 * time.Second
	// leastEmpty is not worth a cycle.
	leastEmpty = 4 << 20
	// worth is the share of the CPU that is paid for a heap whose resident memory is twice what is live, and so on: a twentieth for a tenth of
	// that. It is the price of room that stands empty, and in minimal of room for garbage.
	worth = 0.5
	// usualCost is what a cycle is taken to cost for each byte that is live, until one was watched: a second for a GB.
	usualCost = 1e-9
	// costlier is in how many cycles it is believed that they cost more than before, for the most part.
	costlier = 8
	// touching is what it costs to have a byte back from the system: a page's worth takes a microsecond.
	touching = 0.25e-9
)

// emptyRoom says when to give back to the system what the heap has beside what is live: room for garbage, and what a burst has left. The runtime
// keeps what a cycle frees, and a tenth more than the heap had before it, so a process has all of its room resident, and needs that at the end
// of a cycle only: half of it in the mean. Nothing but a whole collection gives it back. It is time for one when what stood empty since
// the last was worth more CPU than a cycle takes.
type emptyRoom struct {
	last   sample
	much   int64         // what is given back however short ago the last cycle was
	rested time.Duration // since the last cycle
	wait   time.Duration // until the next look
	cycle  float64       // what one took by the runtime's account, in CPU seconds
	cost   float64       // and by the system's, for each byte that is live
	stood  float64       // CPU seconds used since the last cycle, each times the heap that stood empty, of which one is what is live
	growth float64       // bytes by which what is empty grew in a second, of late
	pace   float64       // and the CPU seconds used in one
}

func newEmptyRoom(now sample, much int64) emptyRoom {
	return emptyRoom{last: now, much: much, cost: usualCost, wait: roomEvery}
}

// empty is what the heap has beside what the last cycle found live.
func (s sample) empty() int64 { return s.free + s.objects - s.live }

func (r *emptyRoom) isDue(now sample) bool {
	was, elapsed, used := r.last.empty(), now.at.Sub(r.last.at), now.used-r.last.used
	empty := now.empty()
	r.rested += elapsed
	if seconds := elapsed.Seconds(); seconds > 0 {
		r.pace = used / seconds
	}
	if n := now.cycles - r.last.cycles; n > 0 {
		r.cycle = (now.gcSeconds - r.last.gcSeconds) / float64(n)
		r.rested, r.stood = 0, 0
		was = empty
	} else if seconds := elapsed.Seconds(); seconds > 0 {
		r.growth = max(0, float64(empty-was)/seconds)
	}
	r.last = now
	r.wait = roomEvery
	if now.knobs.gogc < 0 || now.live <= 0 || r.cycle <= 0 {
		return false
	}
	r.stood += used * float64(was+empty) / 2 / float64(now.live)
	if r.isWorth(0) {
		return true
	}
	for r.wait = roomSoon; r.wait < roomEvery && !r.isWorth(r.wait); {
		r.wait = min(r.wait+r.wait/8, roomEvery)
	}
	return false
}

// isWorth tells whether what stood empty will have been worth more than it costs, if all goes on as of late.
func (r *emptyRoom) isWorth(in time.Duration) bool {
	seconds, live := in.Seconds(), float64(r.last.live)
	empty := float64(r.last.empty()) + r.growth*seconds
	if empty < float64(r.much) && (empty < leastEmpty || r.rested+in < roomRest) {
		return false
	}
	stood := r.stood + r.pace*seconds*(empty-r.growth*seconds/2)/live
	return worth*stood >= min(r.cycle, r.cost*live)+touching*empty
}

// gave notes that a cycle has given room back, and how much CPU was used meanwhile, less what would have been used anyway. Work that came just
// then makes a cycle look dearer than it is, so what it costs is less at once, and more only if it stays so. The runtime counts its workers by
// the clock: where other processes are in their way, a cycle looks several times as dear.
func (r *emptyRoom) gave(now sample) {
	used := now.used - r.last.used
	if anyway := r.pace * now.at.Sub(r.last.at).Seconds(); now.live > 0 {
		cost := max(used-anyway, used*2/3) / float64(now.live) // others may have been in its way, so that much else was done
		r.cost = min(cost, r.cost+(cost-r.cost)/costlier)
	}
	pace := r.pace
	r.isDue(now)
	r.pace = pace
}
