// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package runtimeprofileextension

import "time"

// thriftLadder holds the values of GOGC that minimal moves between.
var thriftLadder = []int{15, 20, 25, 30, 40, 50}

const (
	// thriftRatio is the share of the process's CPU that collection may take where GOGC is below the highest.
	thriftRatio = 0.04
	// smallRoom is what a heap may grow by between two collections, however small it is: to save some of that is to save nothing.
	smallRoom = 12 << 20
	// thriftInterval is how often GOGC is looked at.
	thriftInterval = 15 * time.Second
)

// thrift chooses the GOGC of minimal. A process that leaves little garbage collects seldom, and holds room for garbage all the
// same, half of its live heap at GOGC 50: of a large heap that is much memory for little CPU. The less collection takes, the less room
// it gets.
//
// How much it takes is reckoned from what a cycle took and how much garbage there is. To wait for cycles would take minutes where they
// are far apart, which is where there is most to save.
type thrift struct {
	gogc int
	last sample
	// cycle is what one took, in CPU seconds: the last ones.
	cycle float64
	// garbage is how much was allocated, in bytes, and used how many CPU seconds, of late: what was a look ago counts half.
	garbage, used float64
}

func newThrift() thrift { return thrift{gogc: thriftLadder[len(thriftLadder)-1]} }

func (t *thrift) choose(s sample) int {
	heap := float64(s.live + s.roots)
	if n := s.cycles - t.last.cycles; n > 0 {
		t.cycle = (s.gcSeconds - t.last.gcSeconds) / float64(n)
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
	need := max(100*ratio/thriftRatio, 100*smallRoom/heap)
	if need > float64(t.gogc) {
		t.gogc = thriftAtLeast(need)
	} else {
		t.gogc = min(t.gogc, thriftAtLeast(margin*need))
	}
	return t.gogc
}

// thriftAtLeast is the lowest rung that is not below a value, or the highest.
func thriftAtLeast(gogc float64) int {
	for _, rung := range thriftLadder {
		if float64(rung) >= gogc {
			return rung
		}
	}
	return thriftLadder[len(thriftLadder)-1]
}
