// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package page

import (
	"github.com/prometheus/prometheus/model/labels"

	"github.com/godwit-otel/godwit/receiver/fastprometheusreceiver/internal/page/plan"
)

// samples are the values of a page's lines, in the order of their numbers.
type samples struct {
	values    []float64
	times     []int64 // nil until a sample has a timestamp
	natives   map[int32]plan.NativeValue
	exemplars []plan.PlacedExemplar
	refused   int // samples at which the page failed
	tooLarge  int // samples before the first histogram with too many buckets
	look      int // number of samples at which to check for repeats next

	// Memory for later pages.
	spare   []int64 // for times
	builder labels.ScratchBuilder
}

// beginTimes makes the list of timestamps, for about the given number of lines. The lines up to the last have none.
func (s *samples) beginTimes(lines int) {
	if s.spare == nil {
		s.spare = make([]int64, 0, max(lines, 64))
	}
	s.times = s.spare[:0]
	for len(s.times) < len(s.values)-1 {
		s.times = append(s.times, plan.NoTime)
	}
}

// addNoTime records that a line has no timestamp.
func (s *samples) addNoTime() {
	if s.times != nil {
		s.times = append(s.times, plan.NoTime)
	}
}

// fillNoTimes records that no line since the last call has a timestamp.
func (s *samples) fillNoTimes() {
	for s.times != nil && len(s.times) < len(s.values) {
		s.times = append(s.times, plan.NoTime)
	}
}
