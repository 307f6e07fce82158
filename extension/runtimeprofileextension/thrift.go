// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package runtimeprofileextension

import "time"

// thriftLadder holds the values of GOGC that minimal moves between.
var thriftLadder = []int{15, 20, 25, 30, 40, 50}

const (
	// thriftRatio is the share of the process's CPU that collection may take where GOGC is below the highest.
	thriftRatio = 0.08
	// smallRoom is what a heap may grow by between two collections, however small it is: to save some of that is to save nothing.
	smallRoom = 12 << 20
	// thriftInterval is how often GOGC is looked at.
	thriftInterval = 15 * time.Second
)

// thrift chooses the GOGC of minimal. A process that leaves little garbage collects seldom, and holds room for garbage all the
// same, half of its live heap at GOGC 50: of a large heap that is much memory for little CPU. The less collection takes, the less room
// it gets.
type thrift struct {
	gogc int
	last sample // when a cycle had ended
}

func newThrift() thrift { return thrift{gogc: thriftLadder[len(thriftLadder)-1]} }

func (t *thrift) choose(s sample) int {
	if s.cycles == t.last.cycles || s.live+s.roots <= 0 {
		return t.gogc // CPU is accounted for when a cycle ends
	}
	ratio := s.gcRatioSince(t.last)
	t.last = s
	// Collection takes CPU in proportion to 1/GOGC.
	need := max(float64(t.gogc)*ratio/thriftRatio, 100*smallRoom/float64(s.live+s.roots))
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
