// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package page

import (
	"github.com/prometheus/prometheus/model/labels"

	"github.com/godwit-otel/godwit/receiver/fastprometheusreceiver/internal/page/plan"
)

// samples are what the lines of a page say, by their numbers.
type samples struct {
	values    []float64
	times     []int64 // nil until a sample has one
	natives   map[int32]plan.NativeValue
	exemplars []plan.PlacedExemplar
	refused   int // samples that failed the page
	tooLarge  int // samples before the first histogram with too many buckets
	look      int // how many samples there are when it is time to look for repeats

	// Memory that is used again.
	spare   []int64 // for times
	builder labels.ScratchBuilder
}

// beginTimes has lines have times, of about some number of lines. Those before the last had none.
func (s *samples) beginTimes(lines int) {
	if s.spare == nil {
		s.spare = make([]int64, 0, max(lines, 64))
	}
	s.times = s.spare[:0]
	for len(s.times) < len(s.values)-1 {
		s.times = append(s.times, plan.NoTime)
	}
}

// passTime notes that a line has no time.
func (s *samples) passTime() {
	if s.times != nil {
		s.times = append(s.times, plan.NoTime)
	}
}

// passTimes notes that none of the last lines has a time.
func (s *samples) passTimes() {
	for s.times != nil && len(s.times) < len(s.values) {
		s.times = append(s.times, plan.NoTime)
	}
}
