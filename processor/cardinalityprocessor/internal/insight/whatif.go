// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package insight

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/godwit-otel/godwit/internal/inspect"
	"github.com/godwit-otel/godwit/processor/cardinalityprocessor/internal/stats"
)

// ErrNoStatistics is for what only statistics can answer.
var ErrNoStatistics = errors.New("cannot tell without `statistics::enabled`")

// WhatIf implements inspect.Cardinality. The loss of a single label is counted all the time; that of several together,
// or of a metric that is not among the largest, is estimated from the sample.
func (i inspection) WhatIf(change inspect.Change) (inspect.Projection, error) {
	if i.g.Book == nil {
		return inspect.Projection{}, ErrNoStatistics
	}
	s := i.snapshot()
	projection := inspect.Projection{Before: inspect.Estimate{Value: float64(i.Series())}}
	rejected := i.rejected()
	projection.Before = projection.Before.Plus(rejected)
	labels := i.counted(&s)
	if change.Metric != "" {
		at := slices.IndexFunc(s.Metrics, func(m stats.Metric) bool { return m.Name == change.Metric })
		if at < 0 {
			return projection, fmt.Errorf("cannot project metric %q: it has not been seen lately", change.Metric)
		}
		m := &s.Metrics[at]
		labels, rejected = m.Labels, give(m.Rejected, m.RejectedError)
		projection.Before = give(m.Series+m.Rejected, math.Hypot(m.SeriesError, m.RejectedError))
	}
	after := projection.Before
	switch at := slices.IndexFunc(labels, func(l stats.WithoutLabel) bool { return slices.Equal(change.Drop, []string{l.Name}) }); {
	case len(change.Drop) == 0 && len(change.Keep) == 0:
	case at >= 0 && len(change.Keep) == 0:
		after = without(&labels[at], after)
	default:
		after = i.fromSample(change, projection.Before, rejected.Value)
		projection.Note = "estimated from a sample of the series that have a place; likely too low where few series have most of the values"
	}
	after.Value = min(after.Value, projection.Before.Value)
	if change.Max > 0 && after.Value > float64(change.Max) {
		after = exactly(change.Max)
	}
	projection.After = after
	projection.Merged = inspect.Estimate{Value: projection.Before.Value - after.Value, Error: math.Hypot(projection.Before.Error, after.Error)}
	return projection, nil
}

// without is the number of series without a label. The series that do not have it are a difference, with the error of
// both numbers, unless there are none. Those that are missing from the label's numbers may have it.
func without(l *stats.WithoutLabel, before inspect.Estimate) inspect.Estimate {
	left := inspect.Estimate{Value: max(1, math.Round(l.Without)), Error: math.Round(l.Error * l.Without)}
	if l.All {
		return left
	}
	return left.Plus(inspect.Estimate{Value: max(0, before.Value-math.Round(l.Series)), Error: math.Hypot(before.Error, l.Error*l.Series) + l.Missing})
}

// counted returns the labels of all metrics.
func (i inspection) counted(s *stats.Snapshot) (all []stats.WithoutLabel) {
	for _, l := range s.Labels {
		all = append(all, l.WithoutLabel)
	}
	return all
}

// fromSample counts distinct series without the labels, and estimates what the sample has missed. Rejected series are
// not in it: they are as likely to be different from all others as the next series of the sample would be.
func (i inspection) fromSample(change inspect.Change, before inspect.Estimate, rejected float64) inspect.Estimate {
	all, factor := i.g.Book.Sample()
	counts := map[string]int{}
	n, alone := 0.0, 0.0
	for _, e := range all {
		if change.Metric != "" && e.Metric != change.Metric {
			continue
		}
		n++
		var left []string
		for _, l := range labelsOf(e) {
			if !slices.Contains(change.Drop, l.Name) && (len(change.Keep) == 0 || slices.Contains(change.Keep, l.Name)) {
				left = append(left, l.Name+"\xff"+l.Value)
			}
		}
		slices.Sort(left)
		counts[e.Metric+"\xff"+strings.Join(left, "\xff")]++
	}
	if n == 0 {
		return before
	}
	for _, members := range counts {
		if members == 1 {
			alone++
		}
	}
	distinct := stats.Distinct(counts, factor)
	return give(distinct.Value, distinct.Error+rejected*(alone+1)/(n+1))
}
