// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package aggregate

import (
	"slices"

	"go.opentelemetry.io/collector/pdata/pcommon"

	"github.com/godwit-otel/godwit/processor/cardinalityprocessor/internal/amount"
)

// Gathered are the points of a batch that are to be aggregated.
type Gathered struct {
	Intakes    []Intake
	Histograms []amount.Bucketed
	difference amount.Room // for what one has grown by
	Births     []Birth
	byShard    []uint32 // of intakes, when they are settled
	Leaving    []int    // points of the metric at hand whose series ends here, and goes on in an aggregate
	Counts     []gatheredCount
	Trail      Trail
}

// Intake is a point that was taken.
type Intake struct {
	Key         uint64
	Bits        uint64 // of the number, or where in histograms the value is that is none
	Start, Time pcommon.Timestamp
	Rule        int32  // its aggregation's index
	Birth       int32  // of a feeder that was not there, and one more
	row         uint32 // where its feeder was when the point was taken
	Flags       intakeFlags
}

type intakeFlags uint8

// What is said of an intake beside its value.
const (
	IntakeFloat   intakeFlags = 1 << iota
	IntakeNothing             // a stale marker, or a gauge that is no number
	IntakePartial             // its sum cannot be used
)

// Birth is a feeder that was not there when its first point was taken.
type Birth struct {
	To     *Aggregate
	Cost   int64 // that is reserved
	Begun  *Begun
	Passes bool   // its first value is said by a series of its own
	Whole  bool   // all of its first value is to be added
	Stays  bool   // the point does, as the last one of that series
	Ousts  uint64 // a member of the overflow that ends with it
}

// gatheredCount is how many points a rule took, or could not.
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
		g.Counts = slices.Grow(g.Counts, n-len(g.Counts))[:n] // all are 0
	}
	return &g.Counts[rule]
}
