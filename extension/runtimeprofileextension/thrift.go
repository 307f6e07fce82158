// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package runtimeprofileextension

import (
	"math"
	"time"
)

// thriftSettings say how much CPU a profile may spend to save memory.
type thriftSettings struct {
	ladder       []int         // values of GOGC to move between
	initial      int           // the value until a collection has shown its cost
	ratio        float64       // the share of the process's CPU that collecting may take below the highest GOGC; 0 if emptyPrice decides
	room         float64       // bytes that a heap may always grow by between two collections
	returnAtOnce int64         // bytes of empty memory that are returned even soon after a cycle; GOGC is set beyond that
	interval     time.Duration // how often GOGC is set
}

var (
	// minimalThrift is for many small processes with little work each.
	minimalThrift = thriftSettings{
		ladder:       []int{15, 20, 25, 30, 35, 40, 45, 50},
		initial:      50,
		room:         12 << 20, // less is not worth saving
		returnAtOnce: 12 << 20,
		interval:     15 * time.Second,
	}
	// leanThrift is for a process that may be nearly idle or very busy.
	leanThrift = thriftSettings{
		ladder:       []int{15, 20, 25, 30, 40, 50, 75, 100, 150, 200},
		initial:      25,
		ratio:        0.04,
		room:         2 << 20,
		returnAtOnce: math.MaxInt64,
		interval:     5 * time.Second, // a gateway's load changes faster than a node's
	}
)

// thrifty returns the settings of a profile that saves memory.
func (p Profile) thrifty() (t thriftSettings, ok bool) {
	switch p {
	case ProfileMinimal:
		return minimalThrift, true
	case ProfileLean:
		return leanThrift, true
	default:
		return t, false
	}
}

// thrift chooses the GOGC of minimal and lean. A process with little garbage rarely collects, but still holds room for
// garbage, half of its live heap at GOGC 50: for a large heap, that is much memory for little CPU. The less collecting
// costs, the less room it gets.
//
// In minimal, room has the price of emptyRoom: collecting may cost as much CPU as the memory it saves is priced at.
// With constant garbage, the sum of both is least when they are equal. There, emptyRoom returns the memory, and GOGC is
// for garbage that comes faster than emptyRoom checks.
//
// The cost is computed from the duration of the last cycle and the rate of garbage. Waiting for cycles would take
// minutes when they are far apart, which is when there is most to save.
type thrift struct {
	thriftSettings

	gogc int
	last sample
	// cycle is the CPU seconds of one cycle, from the last ones.
	cycle float64
	// garbage is the bytes allocated recently, and used the CPU seconds; with each interval older values count half.
	garbage, used float64
}

func newThrift(p Profile) thrift {
	of, _ := p.thrifty()
	return thrift{thriftSettings: of, gogc: of.initial}
}

func (t *thrift) choose(s sample) int {
	heap := float64(s.live + s.roots)
	if n := s.cycles - t.last.cycles; n > 0 {
		t.cycle = (s.gcSeconds - t.last.gcSeconds) / float64(n)
		if t.ratio == 0 { // the runtime measures by wall clock: on a loaded machine a cycle looks several times as expensive
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
	// With a GOGC of 100 there is a cycle when there is as much garbage as heap.
	ratio := t.cycle * t.garbage / heap / t.used
	need := 100 * max(t.beyond(t.worthwhile(ratio)), t.room/heap)
	if need > float64(t.gogc) {
		t.gogc = t.atLeast(need)
	} else {
		t.gogc = min(t.gogc, t.atLeast(margin*need))
	}
	return t.gogc
}

// worthwhile is the best room as a fraction of the heap, if collecting takes the share ratio of the CPU with room for as much
// garbage as heap. Since emptyRoom returns it after each cycle, only half of it is resident on average.
func (t *thriftSettings) worthwhile(ratio float64) float64 {
	if t.ratio > 0 {
		return ratio / t.ratio
	}
	return math.Sqrt(2 * ratio / emptyPrice)
}

// beyond is where the runtime collects, later than emptyRoom, which also returns what it collects.
func (t *thriftSettings) beyond(room float64) float64 {
	if t.ratio > 0 {
		return room
	}
	return margin * room
}

// atLeast is the lowest rung not below a value, or the highest.
func (t *thriftSettings) atLeast(gogc float64) int {
	for _, rung := range t.ladder {
		if float64(rung) >= gogc {
			return rung
		}
	}
	return t.ladder[len(t.ladder)-1]
}
