// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package gate

import (
	"slices"
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"

	"github.com/godwit-otel/godwit/processor/cardinalityprocessor/internal/amount"
)

// A series that had a place of its own when a rule began to aggregate it says that it ends, so that nobody goes on with its last
// value, nor has the same twice. A gauge does so with the point at hand, whose value is the aggregate's. A counter says its
// value once more, from which it is counted in the aggregate, and its end right after it.

// endsAfter is how long after its last value a counter ends: the shortest time that all who store series tell apart.
const endsAfter = time.Millisecond

// leave has the series that end with the metric at hand say so.
func (b *Batch) leave(dropped bool) {
	m := b.at.m
	class := amount.ClassOf(m)
	slices.Sort(b.gathered.Leaving) // several rules may have found the same
	for _, i := range slices.Compact(b.gathered.Leaving) {
		b.ends(b.fps[i], b.at.scope, class)
		if b.g.DryRun || dropped && b.drop[i] {
			continue
		}
		b.marked++
		if class != amount.ClassCumulative {
			amount.Silence(m, i)
			continue
		}
		at := b.append(m, i)
		b.added++
		amount.SetTimesAt(m, at, amount.WhenAt(m, i).Start, amount.WhenAt(m, i).Time+pcommon.Timestamp(endsAfter))
		amount.Silence(m, at)
		if dropped {
			b.drop = append(b.drop, false)
		}
	}
	b.gathered.Leaving = b.gathered.Leaving[:0]
}
