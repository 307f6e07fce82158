// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package gate

import (
	"slices"
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"

	"github.com/godwit-otel/godwit/processor/cardinalityprocessor/internal/amount"
)

// A series that had a place of its own when a rule began to aggregate it gets a stale marker, so that nobody continues
// with its last value or has the same data twice. A gauge is marked at the current point, whose value is the
// aggregate's. A counter passes its current value once more, from which on the aggregate counts it, with the marker
// right after it.

// endsAfter is the time between a counter's last value and its stale marker: the shortest time that all storages
// distinguish.
const endsAfter = time.Millisecond

// leave adds stale markers for the series that end with the current metric.
func (b *Batch) leave(dropped bool) {
	m := b.at.m
	class := amount.ClassOf(m)
	slices.Sort(b.gathered.Leaving) // several rules may have found the same series
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
