// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package tree

import (
	"slices"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/godwit-otel/godwit/internal/slab"
)

type slice[P any] interface {
	At(i int) P
	AppendEmpty() P
	EnsureCapacity(n int)
	RemoveIf(f func(P) bool)
}

// prepare takes out the points that are not needed now, and makes room for new ones. Those taken out are kept for a
// page that has more points again: making points is most of the cost of filling a tree.
func prepare[P slab.Point, S slice[P]](c *cursor, dps S, k choice, forget func(P)) choice {
	if slices.Contains(k.drop, true) {
		for i, drops := range k.drop {
			if drops {
				forget(dps.At(i))
			}
		}
		kept := slab.Stow[S, P](dps, k.drop)
		if c.stowed != nil {
			*c.stowed += kept
		}
	}
	if k.kept < k.count {
		if c.stowed != nil && *c.stowed > 0 {
			k.unstowed = slab.Unstow[S, P](dps, k.count)
			k.kept += k.unstowed
			*c.stowed -= k.unstowed
		}
		dps.EnsureCapacity(k.count)
	}
	return k
}

// A stowed point has no text of a target, which may be gone before the point is used again.
func forgetNumber(dp pmetric.NumberDataPoint) {
	forgetTexts(dp.Attributes())
	forgetExemplars(dp.Exemplars())
}

func forgetHistogram(dp pmetric.HistogramDataPoint) {
	forgetTexts(dp.Attributes())
	forgetExemplars(dp.Exemplars())
}

func forgetExponential(dp pmetric.ExponentialHistogramDataPoint) {
	forgetTexts(dp.Attributes())
	forgetExemplars(dp.Exemplars())
}

func forgetSummary(dp pmetric.SummaryDataPoint) { forgetTexts(dp.Attributes()) }

func forgetTexts(m pcommon.Map) {
	for _, v := range m.All() {
		slab.ChangeStr(v, "")
	}
}

func forgetExemplars(s pmetric.ExemplarSlice) {
	for i := range s.Len() {
		if attrs := s.At(i).FilteredAttributes(); attrs.Len() > 0 {
			attrs.Clear()
		}
	}
}
