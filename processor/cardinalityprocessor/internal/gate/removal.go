// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package gate

import (
	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/godwit-otel/godwit/internal/slab"
)

// What is rejected or aggregated is taken out of a batch in pieces as large as they can be: a metric of which no point is left
// goes with its points, a scope with its metrics, a resource with its scopes. Where a rule aggregates all that a sender has,
// that is one step for each batch and not one for each metric.

// thinning is what is taken out of a batch.
type thinning struct {
	drop                       []bool   // points of the metric at hand
	resources, scopes, metrics leavings // of the batch, the resource and the scope at hand
}

// again is for the next batch: the memory, if that is not too much.
func (t *thinning) again() thinning {
	if cap(t.drop) > maxRetained {
		t.drop = nil
	}
	return thinning{drop: t.drop[:0], resources: t.resources.kept(), scopes: t.scopes.kept(), metrics: t.metrics.kept()}
}

// leavings is what is left of the parts of a whole.
type leavings struct {
	gone []bool // by part: it has nothing
	left int    // parts that have something
	lost bool   // some had, and it was taken out
}

// begin begins with the parts of another whole.
func (l *leavings) begin() { *l = leavings{gone: l.gone[:0]} }

// add adds a part: it has something left, or has lost its last, or never had anything.
func (l *leavings) add(left, lost bool) {
	l.gone = append(l.gone, !left)
	if left {
		l.left++
	}
	l.lost = l.lost || lost
}

// all says whether nothing is left of the whole: it is taken out as one.
func (l *leavings) all() bool { return l.lost && l.left == 0 }

// some says whether parts are to be taken out, and others stay.
func (l *leavings) some() bool { return l.lost && l.left > 0 }

// kept is for the next batch: the memory, if that is not too much.
func (l *leavings) kept() leavings {
	if cap(l.gone) > maxRetained {
		return leavings{}
	}
	return leavings{gone: l.gone[:0]}
}

// removePoints removes the points that drop says, unless no other is left, and returns how many are.
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

// parts is a slice of pdata's.
type parts[S, E any] interface {
	Len() int
	At(i int) E
	AppendEmpty() E
	EnsureCapacity(n int)
	MoveAndAppendTo(dest S)
	RemoveIf(f func(E) bool)
}

// remove takes parts out of a slice. Those of what is lent are hidden, and put back later.
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
