// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package slab

import "slices"

// Stretch is metrics with numbers that are side by side, and their points.
type Stretch struct {
	Metrics []*Metric
	Points  []*Number // of all metrics
	Ends    []int     // of each metric's points
	// Floats are what the points are to say, in their order, where they do not say it: it is owed until somebody settles it.
	Floats []Float
	Owed   bool
}

// Float is a value at a time in milliseconds, and when that began to count, 0 if it is not known.
type Float struct {
	Value     float64
	At, Start int64
}

// Settle has the points say what is owed. Whoever reads points does so before.
func (s *Stretch) Settle() {
	if s.Owed {
		s.Owed = false
		s.Fill(s.Floats)
	}
}

// Fill has the points say these.
func (s *Stretch) Fill(floats []Float) {
	for i, p := range s.Points {
		f := &floats[i]
		p.Refill(f.Value, uint64(f.At)*nanosOfMilli, uint64(f.Start)*nanosOfMilli)
	}
}

const nanosOfMilli = 1e6

// Begins says whether some metrics begin with these, and these have their points and no others.
func (s *Stretch) Begins(metrics []*Metric) bool {
	if len(metrics) < len(s.Metrics) || !slices.Equal(metrics[:len(s.Metrics)], s.Metrics) {
		return false
	}
	first := 0
	for i, end := range s.Ends {
		points, ok := s.Metrics[i].Numbers()
		if !ok || !slices.Equal(points, s.Points[first:end]) {
			return false
		}
		first = end
	}
	return true
}
