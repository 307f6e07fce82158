// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package stats

import "math"

// In a flood of rejected series, only some are examined, but all are counted. So the factor is known by which a metric
// has more series than those in which its labels were counted.

// times returns the label with its counts multiplied, for that many times the series.
func (l WithoutLabel) times(factor float64) WithoutLabel {
	if factor <= 1 || l.Series == 0 {
		return l
	}
	n := l.Series
	l.Series *= factor
	l.Error = SampledError
	l.Values, l.Without = extrapolate(l.Values, n, l.Series), extrapolate(l.Without, n, l.Series)
	return l
}

// extrapolate estimates how many distinct things there are in series if found of them were found in a part, assuming
// that all are equally frequent. If they are not, the estimate is rather too low than too high.
func extrapolate(found, in, series float64) float64 {
	if found >= (1-3*math.Sqrt2*StandardError)*in { // as far as two estimates can tell, each series has its own
		return found * series / in
	}
	met := func(all, series float64) float64 { return all * -math.Expm1(-series/all) }
	low, high := found, 16*in
	for range 50 {
		if all := (low + high) / 2; met(all, in) < found {
			low = all
		} else {
			high = all
		}
	}
	return met(high, series)
}

// unseen is the difference between labels in all series of their metrics and in the examined ones.
type unseen map[uint64]WithoutLabel

// of returns the labels of a metric. All reports whether all of its series are known to have been counted; otherwise
// missing is how many may not have been, because the metric was not ranked.
func (u unseen) of(m *metric, all bool, missing float64) (labels []WithoutLabel) {
	missing += float64(min(m.earlier, max(0, m.seen[0]+m.seen[1]-m.noted[0]-m.noted[1])))
	series := m.series.estimate()
	factor := (series + m.rejected.estimate()) / max(series+m.observed.estimate(), 1)
	for i := range m.labels {
		seen, label := m.labels[i].snapshot(m.noted, all && m.noted == m.seen), m.labels[i].hash
		times := seen.times(factor)
		times.Missing = missing
		more := u[label]
		more.Series += times.Series - seen.Series
		more.Without += times.Without - seen.Without
		more.Values = max(more.Values, times.Values-seen.Values) // they may be the same in all metrics
		u[label] = more
		labels = append(labels, times)
	}
	return labels
}

func (u unseen) and(label uint64, seen WithoutLabel) WithoutLabel {
	more := u[label]
	if more.Series > 0 {
		seen.Error = SampledError
	}
	seen.Series += more.Series
	seen.Values += more.Values
	seen.Without += more.Without
	return seen
}
