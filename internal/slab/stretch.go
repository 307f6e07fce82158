// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package slab

import (
	"slices"

	"go.opentelemetry.io/collector/pdata/pmetric"
)

// Stretch is metrics with numbers that are side by side, and their points.
type Stretch struct {
	Metrics []*Metric
	Points  []*Number // of all metrics
	Ends    []int     // of each metric's points
	// Floats are what the points are to say, in their order, where they do not say it: it is owed until somebody settles it.
	Floats []Float
	Owed   bool
	// Stand is a gauge of all the points, which is placed for the metrics while it is owed: who counts points reads one metric in place of these.
	Stand *Metric

	stands bool                // it is in the place of the metrics
	in     pmetric.MetricSlice // where that is
}

// Float is a value at a time in milliseconds, and when that began to count, 0 if it is not known.
type Float struct {
	Value     float64
	At, Start int64
}

// Place appends the metrics to others, or what stands for them while their points owe what they say.
func (s *Stretch) Place(to pmetric.MetricSlice) {
	if s.stands = s.Owed && s.Stand != nil; s.stands {
		s.in = to
		placeMetric(to, s.Stand)
	} else {
		placeMetrics(to, s.Metrics)
	}
}

// StandsAt reports whether a metric stands for these.
func (s *Stretch) StandsAt(m *Metric) bool { return s.stands && m == s.Stand }

// Unfold has the metrics be where it is that one stands for them. Whoever reads metrics does so before.
func (s *Stretch) Unfold() {
	if s.stands {
		s.stands = false
		replaceMetric(s.in, s.Stand, s.Metrics)
	}
}

// Settle has the points say what is owed, and the metrics be there. Whoever reads points does so before.
func (s *Stretch) Settle() {
	s.Unfold()
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

// Begins reports whether some metrics begin with these, and these have their points and no others.
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
