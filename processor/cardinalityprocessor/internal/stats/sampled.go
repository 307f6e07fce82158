// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package stats

import (
	"math"
	"strings"
)

// A name that is not among the most frequent ones is not counted, and one that returns to them lacks what came before.
// How much that is, the sample knows, as the counts of its series do not depend on names. The weight of a name is an
// upper bound in any case.

// sampled are the series of the sample by metric and by label.
type sampled struct {
	metrics, labels map[string]int
	factor          float64
	whole           bool // no labels were left out
}

func (s *sampled) add(t text) {
	s.metrics[t.metric()]++
	s.whole = s.whole && len(t) <= maxDescription
	t.labels(func(key, _ string) { s.labels[key]++ })
}

// of returns how many series n sampled ones stand for, with the standard error.
func (s *sampled) of(n int) (series, deviation float64) {
	if s.factor <= 1 {
		return float64(n), 0
	}
	return float64(n) * s.factor, (math.Sqrt(float64(n+1)) + 0.5) * s.factor // that of a number of which n was met
}

// missing is about how many series with a place of a metric are not among those that were counted, at most.
func (s *sampled) missing(name string, late uint8, lost uint64, counted float64) float64 {
	if late == 0 {
		return 0
	}
	most := float64(lost)
	if n, e := s.of(s.metrics[clean(name)]); !isCut(name) {
		most = min(most, max(0, n-counted)+e)
	}
	return most
}

// missingLabel is the same for a label, and includes rejected series.
func (s *sampled) missingLabel(r *ranked[label], rejected float64) float64 {
	if r.late == 0 {
		return 0
	}
	most := float64(r.lost)
	if n, e := s.of(s.labels[clean(r.name)]); s.whole && !isCut(r.name) {
		most = min(most, max(0, n-r.of.series.estimate())+e+rejected)
	}
	return most
}

// isCut reports whether a name was too long, so that others may be the same.
func isCut(name string) bool { return strings.HasSuffix(name, "…") }

// Estimate is a number with its standard error.
type Estimate struct{ Value, Error float64 }

// Distinct estimates the number of distinct things from how often each was met in a sample of one in factor (Chao's
// estimator): those met once indicate how many were not met. It is exact for a factor of 1, and otherwise rather too
// low than too high: things that were not met have as many members as those met once stand for, but if these are many
// things with one member each or a few with many, a sample cannot tell. So twice the error includes both.
func Distinct(met map[string]int, factor float64) Estimate {
	var all, once, twice float64
	for _, n := range met {
		all += float64(n)
		switch n {
		case 1:
			once++
		case 2:
			twice++
		}
	}
	d := float64(len(met))
	if factor <= 1 {
		return Estimate{Value: d}
	}
	r, most := once/max(twice, 1), d+(factor-1)*(once+2*math.Sqrt(once))
	e := Estimate{
		Value: min(d+once*max(once-1, 0)/(2*(twice+1)), most),
		Error: min(math.Sqrt(max(twice, 1)*(r*r/2+r*r*r+r*r*r*r/4)), (most-d)/2),
	}
	e.Error = max(e.Error, (most-e.Value)/2)
	return e
}
