// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package runtimeprofileextension

import (
	"math"
	"time"
)

// thriftiness is what a profile that looks for the least memory pays for it.
type thriftiness struct {
	ladder []int         // values of GOGC to move between
	begins int           // the one of them until a collection has shown what it takes
	ratio  float64       // the share of the process's CPU that collection may take where GOGC is below the highest; 0 where room has a price
	room   float64       // what a heap may grow by between two collections, however small it is
	much   int64         // of room is given back at once where that is worth it, so that GOGC is to be beyond
	every  time.Duration // how often GOGC is looked at
}

var (
	// minimalThrift is for many small processes, each of which has little to do.
	minimalThrift = thriftiness{
		ladder: []int{15, 20, 25, 30, 35, 40, 45, 50},
		begins: 50,
		room:   12 << 20, // to save some of that is to save nothing
		much:   12 << 20,
		every:  15 * time.Second,
	}
	// leanThrift is for one that may be nearly idle, and may have all the work that there is.
	leanThrift = thriftiness{
		ladder: []int{15, 20, 25, 30, 40, 50, 75, 100, 150, 200},
		begins: 25,
		ratio:  0.04,
		room:   2 << 20,
		much:   math.MaxInt64,
		every:  5 * time.Second, // what a gateway is sent changes faster than what a node has
	}
)

// thrifty returns what a profile pays, if it is of that kind.
func (p Profile) thrifty() (t thriftiness, ok bool) {
	switch p {
	case ProfileMinimal:
		return minimalThrift, true
	case ProfileLean:
		return leanThrift, true
	default:
		return t, false
	}
}

// thrift chooses the GOGC of minimal and lean. A process that leaves little garbage collects seldom, and holds room for garbage all the
// same, half of its live heap at GOGC 50: of a large heap that is much memory for little CPU. The less collection takes, the less room
// it gets.
//
// Minimal pays for room what emptyRoom does: CPU that is taken by collecting is worth the room that it spares. With constant garbage the
// two come to the least where collecting takes as much as the room is worth. There emptyRoom gives it back, and the runtime is to collect
// what comes faster than is looked.
//
// How much it takes is reckoned from what a cycle took and how much garbage there is. To wait for cycles would take minutes where they
// are far apart, which is where there is most to save.
type thrift struct {
	thriftiness

	gogc int
	last sample
	// cycle is what one took, in CPU seconds: the last ones.
	cycle float64
	// garbage is how much was allocated, in bytes, and used how many CPU seconds, of late: what was a look ago counts half.
	garbage, used float64
}

func newThrift(p Profile) thrift {
	of, _ := p.thrifty()
	return thrift{thriftiness: of, gogc: of.begins}
}

func (t *thrift) choose(s sample) int {
	heap := float64(s.live + s.roots)
	if n := s.cycles - t.last.cycles; n > 0 {
		t.cycle = (s.gcSeconds - t.last.gcSeconds) / float64(n)
		if t.ratio == 0 { // the runtime counts by the clock, and where others are in its way a cycle looks several times as dear
			t.cycle = min(t.cycle, usualCost*float64(s.live))
		}
	}
	const fading = 0.5
	t.garbage = fading*t.garbage + float64(s.allocated-t.last.allocated)
	t.used = fading*t.used + s.used - t.last.used
	t.last = s
	if heap <= 0 || t.used <= 0 || t.cycle <= 0 {
		return t.gogc // there was no cycle yet
	}
	// A GOGC of 100 has a cycle when there is as much garbage as heap.
	ratio := t.cycle * t.garbage / heap / t.used
	need := 100 * max(t.beyond(t.worthwhile(ratio)), t.room/heap)
	if need > float64(t.gogc) {
		t.gogc = t.atLeast(need)
	} else {
		t.gogc = min(t.gogc, t.atLeast(margin*need))
	}
	return t.gogc
}

// worthwhile is the room that is to be had, as a part of the heap, where collecting takes a share of the CPU when there is room for as much
// garbage as heap. What emptyRoom gives back is empty again at first, and half as large in the mean.
func (t *thriftiness) worthwhile(ratio float64) float64 {
	if t.ratio > 0 {
		return ratio / t.ratio
	}
	return math.Sqrt(2 * ratio / worth)
}

// beyond is where the runtime is to collect so that emptyRoom comes before it, which gives back what it collects.
func (t *thriftiness) beyond(room float64) float64 {
	if t.ratio > 0 {
		return room
	}
	return margin * room
}

// atLeast is the lowest rung that is not below a value, or the highest.
func (t *thriftiness) atLeast(gogc float64) int {
	for _, rung := range t.ladder {
		if float64(rung) >= gogc {
			return rung
		}
	}
	return t.ladder[len(t.ladder)-1]
}
