// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package page

import (
	"math"
	"slices"
)

// bounds are those of buckets, and the quantiles of summaries. Nearly always there are few of them, however many lines: so a
// line has but the number of its bound, which stays what it is.
type bounds struct {
	common []float64
	rare   map[*line]float64 // of lines whose bound came when there were too many
}

// A boundNumber is that of a common bound, or rareBound.
type boundNumber uint8

const rareBound = math.MaxUint8

func (b *bounds) set(l *line, bound float64) {
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
		b.rare = map[*line]float64{}
	}
	l.bound = rareBound
	b.rare[l] = bound
}

// of returns the bound of a line that has one.
func (b *bounds) of(l *line) float64 {
	if l.bound == rareBound {
		return b.rare[l]
	}
	return b.common[l.bound]
}
