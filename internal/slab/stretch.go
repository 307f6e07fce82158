// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package slab

import (
	"slices"

	"go.opentelemetry.io/collector/pdata/pmetric"
)

// Stretch is adjacent metrics with numbers, and their points.
type Stretch struct {
	Metrics []*Metric
	Points  []*Number // of all metrics
	Ends    []int     // where each metric's points end
	// Floats are the values for the points, in order, that Settle sets.
	Floats   []Float
	Deferred bool
	// Stand is a gauge with all the points, which is placed instead of the metrics while their values are left out:
	// counting points then takes one metric.
	Stand *Metric

	stands bool                // it is in place of the metrics
	in     pmetric.MetricSlice // the slice that it is in
}

// Float is a value, its time in milliseconds, and its start time, 0 if not known.
type Float struct {
	Value     float64
	At, Start int64
}

// Place appends the metrics to others, or Stand while their values are left out.
func (s *Stretch) Place(to pmetric.MetricSlice) {
	if s.stands = s.Deferred && s.Stand != nil; s.stands {
		s.in = to
		placeMetric(to, s.Stand)
	} else {
		placeMetrics(to, s.Metrics)
	}
}

// StandsAt reports whether a metric stands for these.
func (s *Stretch) StandsAt(m *Metric) bool { return s.stands && m == s.Stand }

// Unfold replaces Stand by the metrics. It must be called before metrics are read.
func (s *Stretch) Unfold() {
	if s.stands {
		s.stands = false
		replaceMetric(s.in, s.Stand, s.Metrics)
	}
}

// Settle sets the values that were left out, and replaces Stand by the metrics. It must be called before points are
// read.
func (s *Stretch) Settle() {
	s.Unfold()
	if s.Deferred {
		s.Deferred = false
		s.Fill(s.Floats)
	}
}

// Fill sets the values of the points.
func (s *Stretch) Fill(floats []Float) {
	for i, p := range s.Points {
		f := &floats[i]
		p.Refill(f.Value, uint64(f.At)*nanosOfMilli, uint64(f.Start)*nanosOfMilli)
	}
}

const nanosOfMilli = 1e6

// Begins reports whether metrics begin with these, and these have their points and no others.
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
