// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package aggregate

import (
	"slices"

	"go.opentelemetry.io/collector/pdata/pcommon"

	"github.com/godwit-otel/godwit/processor/cardinalityprocessor/internal/amount"
)

// Gathered holds the points of a batch that are to be aggregated.
type Gathered struct {
	Intakes    []Intake
	Histograms []amount.Bucketed
	difference amount.Arena // buffer for a growth
	Births     []Birth
	byShard    []uint32 // indices of intakes, while they are settled
	Leaving    []int    // points of the current metric whose series ends here, and continues in an aggregate
	Counts     []gatheredCount
	Trail      Trail
}

// Intake is a point taken for aggregation.
type Intake struct {
	Key         uint64
	Bits        uint64 // bits of the number, or the index in histograms of a value that is not one
	Start, Time pcommon.Timestamp
	Rule        int32  // index of its aggregation
	Birth       int32  // index plus one of its birth, if its feeder did not exist
	row         uint32 // row of its feeder when the point was taken
	Flags       intakeFlags
}

type intakeFlags uint8

// Flags of an intake.
const (
	IntakeFloat   intakeFlags = 1 << iota
	IntakeNothing             // a stale marker, or a gauge that is no number
	IntakePartial             // its sum cannot be used
)

// Birth is a feeder that did not exist when its first point was taken.
type Birth struct {
	To     *Aggregate
	Cost   int64 // memory reserved for it
	Begun  *Begun
	Passes bool   // its first value is reported by a series of its own
	Whole  bool   // all of its first value is to be added
	Stays  bool   // the point itself stays, as the last one of that series
	Ousts  uint64 // fingerprint of a member of the overflow whose membership ends with it
}

// gatheredCount counts the points that a rule took, or could not take.
type gatheredCount struct {
	Taken int64
	Lost  [amount.Losses]int64
}

const (
	maxGathered           = 1 << 15
	maxGatheredHistograms = 1 << 13
)

// Reset empties it, and keeps some memory.
func (g *Gathered) Reset() {
	if cap(g.Intakes) > maxGathered {
		g.Intakes, g.byShard = nil, nil
	}
	if cap(g.Histograms) > maxGatheredHistograms {
		g.Histograms = nil
	}
	if cap(g.Births) > maxGathered {
		g.Births = nil
	}
	g.difference.Reset()
	clear(g.Histograms)
	clear(g.Births)
	clear(g.Counts)
	g.Counts = g.Counts[:0]
	g.Intakes, g.Histograms, g.Births, g.Leaving = g.Intakes[:0], g.Histograms[:0], g.Births[:0], g.Leaving[:0]
}

// Of returns the counts of a rule.
func (g *Gathered) Of(rule int) *gatheredCount {
	if n := rule + 1; len(g.Counts) < n {
		g.Counts = slices.Grow(g.Counts, n-len(g.Counts))[:n] // those beyond the length are all 0
	}
	return &g.Counts[rule]
}
