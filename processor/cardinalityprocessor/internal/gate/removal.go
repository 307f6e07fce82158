// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package gate

import (
	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/godwit-otel/godwit/internal/slab"
)

// What is rejected or aggregated is removed from a batch in pieces as large as possible: a metric without remaining
// points is removed as a whole, a scope with all of its metrics, a resource with all of its scopes. If a rule
// aggregates all that a sender has, that is one step for each batch instead of one for each metric.

// removals is what is to be removed from a batch.
type removals struct {
	drop                       []bool    // points of the current metric
	resources, scopes, metrics remainder // parts of the batch, of the current resource and of the current scope
}

// again returns the memory for the next batch, if it is not too large.
func (t *removals) again() removals {
	if cap(t.drop) > maxRetained {
		t.drop = nil
	}
	return removals{drop: t.drop[:0], resources: t.resources.kept(), scopes: t.scopes.kept(), metrics: t.metrics.kept()}
}

// remainder records what is left of the parts of a whole.
type remainder struct {
	gone []bool // by part: nothing is left
	left int    // number of parts with something left
	lost bool   // something was removed
}

// begin starts with the parts of another whole.
func (l *remainder) begin() { *l = remainder{gone: l.gone[:0]} }

// add adds a part: whether it has something left, and whether it lost its last, rather than being empty from the start.
func (l *remainder) add(left, lost bool) {
	l.gone = append(l.gone, !left)
	if left {
		l.left++
	}
	l.lost = l.lost || lost
}

// all reports whether nothing is left: the whole is removed at once.
func (l *remainder) all() bool { return l.lost && l.left == 0 }

// some reports whether some parts are to be removed, and others stay.
func (l *remainder) some() bool { return l.lost && l.left > 0 }

// kept returns the memory for the next batch, if it is not too large.
func (l *remainder) kept() remainder {
	if cap(l.gone) > maxRetained {
		return remainder{}
	}
	return remainder{gone: l.gone[:0]}
}

// removePoints removes the points marked in drop, unless none would be left, and returns how many are.
func (b *Batch) removePoints(m pmetric.Metric, drop []bool) (left int) {
	for _, drops := range drop {
		if !drops {
			left++
		}
	}
	b.gone += int64(len(drop) - left)
	if left == 0 || left == len(drop) {
		return left
	}
	switch m.Type() {
	case pmetric.MetricTypeGauge:
		remove(&b.lending, m.Gauge().DataPoints(), pmetric.NewNumberDataPointSlice, drop)
	case pmetric.MetricTypeSum:
		remove(&b.lending, m.Sum().DataPoints(), pmetric.NewNumberDataPointSlice, drop)
	case pmetric.MetricTypeHistogram:
		remove(&b.lending, m.Histogram().DataPoints(), pmetric.NewHistogramDataPointSlice, drop)
	case pmetric.MetricTypeExponentialHistogram:
		remove(&b.lending, m.ExponentialHistogram().DataPoints(), pmetric.NewExponentialHistogramDataPointSlice, drop)
	default:
		remove(&b.lending, m.Summary().DataPoints(), pmetric.NewSummaryDataPointSlice, drop)
	}
	return left
}

// parts is a slice of pdata.
type parts[S, E any] interface {
	Len() int
	At(i int) E
	AppendEmpty() E
	EnsureCapacity(n int)
	MoveAndAppendTo(dest S)
	RemoveIf(f func(E) bool)
}

// remove removes parts of a slice. In lent data they are hidden instead, and put back later.
func remove[S parts[S, E], E interface{ MoveTo(dest E) }](l *lending, from S, empty func() S, gone []bool) {
	if l.lent {
		l.hidden = append(l.hidden, slab.Hide[S, E](from, empty, func(i int) bool { return gone[i] }))
		return
	}
	i := -1
	from.RemoveIf(func(E) bool {
		i++
		return gone[i]
	})
}
