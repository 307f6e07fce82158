// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package gate

import (
	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/godwit-otel/godwit/processor/cardinalityprocessor/internal/amount"
	"github.com/godwit-otel/godwit/processor/cardinalityprocessor/internal/series"
)

// ahead looks up several metrics at once before any of them is decided about. Most metrics have one or two points: one
// by one, their look-ups would wait for memory one after the other.
type ahead struct {
	begin, end int // range of these metrics in their scope
	metrics    []aheadMetric
	fps        []uint64
	lines      []int32 // of the table, for the points that were read ahead
	marks      []int
}

type aheadMetric struct {
	hash       uint64
	fps, marks int             // offsets of their points
	plain      bool            // nothing is to be decided about it
	rejected   *rejectedMetric // what it loses, the same as last time
}

// warmed is how many look-ups are read ahead: what easily fits into the first-level cache.
const warmed = 64

// lookAhead computes the fingerprints of metrics, from first on, as long as their points are few enough together, or of
// one metric with more, and prefetches their table entries.
func (b *Batch) lookAhead(of pmetric.MetricSlice, first int, scope uint64) {
	a := &b.ahead
	a.begin, a.end, a.metrics, a.fps, a.lines, a.marks = first, first, a.metrics[:0], a.fps[:0], a.lines[:0], a.marks[:0]
	for points := 0; a.end < of.Len(); a.end++ {
		m := of.At(a.end)
		next := aheadMetric{fps: len(a.fps), marks: len(a.marks)}
		b.Owner.Metric = m.Name()
		passes := b.passes()
		if !passes {
			next.rejected = b.page.nextRejected(b.page.next)
		}
		if next.plain = next.rejected != nil || !passes && b.page.isNextPlain(); next.plain {
			b.hinted.Skip()
		} else if points += amount.PointCount(m); points > warmed && a.end > first {
			break
		}
		if !passes {
			b.page.next++
		}
		if !passes && !next.plain {
			next.hash = b.hinted.MetricHash(b.Hash, scope, m)
			a.fps, a.marks = b.recall.Fingerprints(b.Hash, &b.hinted, a.fps, a.marks, next.hash, m)
		}
		a.metrics = append(a.metrics, next)
	}
	a.metrics = append(a.metrics, aheadMetric{fps: len(a.fps), marks: len(a.marks)})
	if len(a.fps) <= warmed && !b.taking { // metrics that are being aggregated likely still are
		a.lines = b.g.Limiter.Series.Warm(a.fps, a.lines)
	}
}

// rejected returns what a metric loses, if that is the same as last time.
func (a *ahead) rejected(i int) *rejectedMetric { return a.metrics[i-a.begin].rejected }

// lookAgain looks ahead once more from a metric on, when points may be rejected otherwise than last time.
func (b *Batch) lookAgain(of pmetric.MetricSlice, i int, scope uint64) {
	a := &b.page
	a.repeated, a.next = nil, len(a.plain)
	if b.hinted.Hints != nil {
		b.hinted.Return(b.hinted.After(a.from, a.next))
	}
	b.lookAhead(of, i, scope)
}

// isPlain reports whether nothing must be decided about a metric.
func (a *ahead) isPlain(i int) bool { return a.metrics[i-a.begin].plain }

// linesOf returns the table lines of a metric's points, if they were read ahead.
func (a *ahead) linesOf(i int) []int32 {
	if len(a.lines) < len(a.fps) {
		return nil
	}
	return a.lines[a.metrics[i-a.begin].fps:]
}

// warm prefetches for points of a metric that has more than are read at once, from the n-th on. No other metric has
// points then.
func (a *ahead) warm(t *series.Table, n int) []int32 {
	a.lines = t.Warm(a.fps[n:min(n+warmed, len(a.fps))], a.lines[:n])
	return a.lines
}

// metric returns the looked-up data of a metric.
func (a *ahead) metric(i int) (hash uint64, fps []uint64, marks []int) {
	m, next := &a.metrics[i-a.begin], &a.metrics[i-a.begin+1]
	return m.hash, a.fps[m.fps:next.fps], a.marks[m.marks:next.marks]
}
