// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package catalog

import (
	"math"
	"slices"
)

// Bounds are the bounds of buckets and the quantiles of summaries. Nearly always there are few, however many lines: so
// a line stores only the number of its bound, which never changes.
type Bounds struct {
	common []float64
	rare   map[*Line]float64 // bounds of lines that came when there were too many for a number
}

// A boundNumber is the number of a common bound, or rareBound.
type boundNumber uint8

const rareBound = math.MaxUint8

func (b *Bounds) set(l *Line, bound float64) {
	bits := math.Float64bits(bound)
	i := slices.IndexFunc(b.common, func(f float64) bool { return math.Float64bits(f) == bits })
	if i < 0 && len(b.common) < rareBound {
		i = len(b.common)
		b.common = append(b.common, bound)
	}
	if i >= 0 {
		l.bound = boundNumber(i)
		return
	}
	if b.rare == nil {
		b.rare = map[*Line]float64{}
	}
	l.bound = rareBound
	b.rare[l] = bound
}

// Of returns the bound of a line.
func (b *Bounds) Of(l *Line) float64 {
	if l.bound == rareBound {
		return b.rare[l]
	}
	return b.common[l.bound]
}
