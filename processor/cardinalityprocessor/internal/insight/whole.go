// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package insight

import (
	"math"

	"github.com/godwit-otel/godwit/processor/cardinalityprocessor/internal/stats"
)

// Each series is of one metric, so all metrics together are no more than all series. Estimates know nothing of that.

// whole is how many series there are of which parts are shown: those of now, and what statistics still count that ended a while ago.
func (i inspection) whole(s *stats.Snapshot) float64 {
	return max(float64(i.Series()), float64(s.Sampled)*s.Factor)
}

// total is the same, and no less than all metrics together, whatever they are estimated at.
func (i inspection) total(s *stats.Snapshot) float64 { return max(i.whole(s), together(s)) }

func together(s *stats.Snapshot) (sum float64) {
	for j := range s.Metrics {
		sum += math.Round(s.Metrics[j].Series)
	}
	return sum
}

// fit takes what metrics are together more than the whole from the largest, as far as that may be an error.
func fit(s *stats.Snapshot, whole float64) {
	excess := together(s) - whole
	for j := range s.Metrics {
		if excess <= 0 {
			break
		}
		m := &s.Metrics[j]
		n := math.Round(m.Series)
		less := min(excess, math.Floor(n*stats.StandardError))
		m.Series, excess = n-less, excess-less
	}
}
