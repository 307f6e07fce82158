// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package insight

import (
	"math"

	"github.com/godwit-otel/godwit/processor/cardinalityprocessor/internal/stats"
)

// Each series is of one metric, so all metrics together have no more series than there are. Estimates do not know that.

// whole is the number of series whose parts are shown: current ones, and those that statistics still count after they
// ended.
func (i inspection) whole(s *stats.Snapshot) float64 {
	return max(float64(i.Series()), float64(s.Sampled)*s.Factor)
}

// total is the same, but at least the sum of all metrics, as estimated.
func (i inspection) total(s *stats.Snapshot) float64 { return max(i.whole(s), together(s)) }

func together(s *stats.Snapshot) (sum float64) {
	for j := range s.Metrics {
		sum += math.Round(s.Metrics[j].Series)
	}
	return sum
}

// fit subtracts the excess of the metrics' sum over the whole from the largest, as far as that may be their error.
func fit(s *stats.Snapshot, whole float64) {
	excess := together(s) - whole
	for j := range s.Metrics {
		if excess <= 0 {
			break
		}
		m := &s.Metrics[j]
		n := math.Round(m.Series)
		less := min(excess, math.Floor(m.SeriesError))
		m.Series, excess = n-less, excess-less
	}
}
