// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package slab

import "slices"

// Stretch is metrics with numbers that are side by side, and their points: which ones, not what they say.
type Stretch struct {
	Metrics []*Metric
	Points  []*Number // of all metrics
	Ends    []int     // of each metric's points
}

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
