// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package cardinalityprocessor

import (
	"slices"
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"
)

// A series that had a place of its own when a rule began to aggregate it says goodbye, so that nobody goes on with its last
// value, nor has the same twice. A gauge does so with the point at hand, whose value is the aggregate's. A counter says its
// value once more, from which it is counted in the aggregate, and its end right after it.

// endsAfter is how long after its last value a counter ends: the shortest time that all who store series tell apart.
const endsAfter = time.Millisecond

// leave has the series say goodbye that end with the metric at hand.
func (b *batch) leave(dropped bool) {
	m := b.at.m
	class := classOf(m)
	if b.ending == nil {
		b.ending = map[uint64]uint32{}
	}
	slices.Sort(b.gathered.leaving) // several rules may have found the same
	for _, i := range slices.Compact(b.gathered.leaving) {
		b.ending[b.fps[i]] = 0
		if class == classCumulative {
			b.ending[b.fps[i]] = leftIdle // what it has said must not be counted again
		}
		if b.p.dryRun || dropped && b.drop[i] {
			continue
		}
		b.marked++
		if class != classCumulative {
			silence(m, i)
			continue
		}
		at := appendCopy(m, i)
		setTimesAt(m, at, whenAt(m, i).start, whenAt(m, i).time+pcommon.Timestamp(endsAfter))
		silence(m, at)
		if dropped {
			b.drop = append(b.drop, false)
		}
	}
	b.gathered.leaving = b.gathered.leaving[:0]
}

// appendCopy appends a copy of a point, and returns where.
func appendCopy(m pmetric.Metric, i int) (at int) {
	at = pointCount(m)
	switch m.Type() {
	case pmetric.MetricTypeGauge:
		copyPoint(m.Gauge().DataPoints(), i)
	case pmetric.MetricTypeSum:
		copyPoint(m.Sum().DataPoints(), i)
	case pmetric.MetricTypeHistogram:
		copyPoint(m.Histogram().DataPoints(), i)
	case pmetric.MetricTypeExponentialHistogram:
		copyPoint(m.ExponentialHistogram().DataPoints(), i)
	default:
		copyPoint(m.Summary().DataPoints(), i)
	}
	return at
}

func copyPoint[P interface{ CopyTo(P) }](points interface {
	At(i int) P
	AppendEmpty() P
}, i int,
) {
	to := points.AppendEmpty()
	points.At(i).CopyTo(to)
}
