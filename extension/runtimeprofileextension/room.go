// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package runtimeprofileextension

import "time"

const (
	// checkInterval is how often the empty heap memory is checked, and minCheckInterval the shortest interval when a cycle is almost due.
	checkInterval    = 2 * time.Second
	minCheckInterval = 50 * time.Millisecond
	// minPause is the least time between a cycle and one that returns less than returnAtOnce.
	minPause = 10 * time.Second
	// minEmpty is never worth a cycle.
	minEmpty = 4 << 20
	// emptyPrice is the share of the CPU that as much empty memory as live memory is priced at; less in proportion. In minimal it is also the
	// price of room for garbage.
	emptyPrice = 0.5
	// usualCost is the assumed cost of a cycle for each live byte, until one was measured: a second for a GB.
	usualCost = 1e-9
	// costSmoothing is in how many cycles a higher cost is mostly adopted; a lower one counts at once.
	costSmoothing = 8
	// pageReturnCost is the CPU seconds to get a byte back from the system: a page takes a microsecond.
	pageReturnCost = 0.25e-9
)

// emptyRoom decides when to return the heap's empty memory to the system: room for garbage, and what a burst has left. The runtime
// keeps what a cycle frees, and a tenth more than the heap had before it, so all of the room is resident, but needed only at the end
// of a cycle: half of it on average. Only a whole collection returns it. One is due when the empty memory since
// the last has cost, by emptyPrice, more CPU than a cycle.
type emptyRoom struct {
	last         sample
	returnAtOnce int64         // bytes that are returned even soon after a cycle
	rested       time.Duration // since the last cycle
	wait         time.Duration // until the next check
	cycle        float64       // CPU seconds of a cycle, by the runtime's account
	cost         float64       // and by the system's, for each live byte
	emptyTime    float64       // CPU seconds since the last cycle, each weighted by the empty memory as a multiple of the live memory
	growth       float64       // recent growth of the empty memory, in bytes a second
	cpuRate      float64       // recent CPU seconds used in a second
}

func newEmptyRoom(now sample, returnAtOnce int64) emptyRoom {
	return emptyRoom{last: now, returnAtOnce: returnAtOnce, cost: usualCost, wait: checkInterval}
}

// empty is the heap memory beyond what the last cycle found live.
func (s sample) empty() int64 { return s.free + s.objects - s.live }

func (r *emptyRoom) isDue(now sample) bool {
	was, elapsed, used := r.last.empty(), now.at.Sub(r.last.at), now.used-r.last.used
	empty := now.empty()
	r.rested += elapsed
	if seconds := elapsed.Seconds(); seconds > 0 {
		r.cpuRate = used / seconds
	}
	if n := now.cycles - r.last.cycles; n > 0 {
		r.cycle = (now.gcSeconds - r.last.gcSeconds) / float64(n)
		r.rested, r.emptyTime = 0, 0
		was = empty
	} else if seconds := elapsed.Seconds(); seconds > 0 {
		r.growth = max(0, float64(empty-was)/seconds)
	}
	r.last = now
	r.wait = checkInterval
	if now.knobs.gogc < 0 || now.live <= 0 || r.cycle <= 0 {
		return false
	}
	r.emptyTime += used * float64(was+empty) / 2 / float64(now.live)
	if r.isWorth(0) {
		return true
	}
	for r.wait = minCheckInterval; r.wait < checkInterval && !r.isWorth(r.wait); {
		r.wait = min(r.wait+r.wait/8, checkInterval)
	}
	return false
}

// isWorth reports whether, after a time at the recent rates, the empty memory will have cost more than returning it.
func (r *emptyRoom) isWorth(in time.Duration) bool {
	seconds, live := in.Seconds(), float64(r.last.live)
	empty := float64(r.last.empty()) + r.growth*seconds
	if empty < float64(r.returnAtOnce) && (empty < minEmpty || r.rested+in < minPause) {
		return false
	}
	emptyTime := r.emptyTime + r.cpuRate*seconds*(empty-r.growth*seconds/2)/live
	return emptyPrice*emptyTime >= min(r.cycle, r.cost*live)+pageReturnCost*empty
}

// gave records a cycle that has returned memory, and the CPU used meanwhile, less what would have been used anyway. Work that came just
// then makes a cycle look more expensive, so a lower cost counts at once, and a higher one gradually. The runtime measures its workers by
// wall clock: on a loaded machine a cycle looks several times as expensive.
func (r *emptyRoom) gave(now sample) {
	used := now.used - r.last.used
	if anyway := r.cpuRate * now.at.Sub(r.last.at).Seconds(); now.live > 0 {
		cost := max(used-anyway, used*2/3) / float64(now.live) // on a loaded machine much other work was done meanwhile
		r.cost = min(cost, r.cost+(cost-r.cost)/costSmoothing)
	}
	cpuRate := r.cpuRate
	r.isDue(now)
	r.cpuRate = cpuRate
}
