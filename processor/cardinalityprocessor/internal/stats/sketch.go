// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package stats

import (
	"math"
	"math/bits"
)

// StandardError is the relative standard error of all estimates of distinct things: 1.04/√1024.
const StandardError = 0.0325

// SampledError is the relative standard error for labels of a metric of which, because of many rejected series, only
// some were examined: that of three estimates together. It is larger for values that occur a few times each.
const SampledError = 0.056

const (
	sketchBits  = 10
	sketchCells = 1 << sketchBits
)

// sketch is a HyperLogLog.
type sketch [sketchCells]uint8

// mark is the part of a hash that a sketch uses.
type mark struct {
	cell uint16
	rank uint8
}

func markOf(hash uint64) mark {
	return mark{
		cell: uint16(hash >> (64 - sketchBits)),
		rank: uint8(bits.LeadingZeros64(hash<<sketchBits|1<<(sketchBits-1))) + 1,
	}
}

func (s *sketch) add(m mark) {
	if cell := &s[m.cell%sketchCells]; *cell < m.rank {
		*cell = m.rank
	}
}

// estimate returns the number of distinct hashes. It counts the cells by rank first, since there are few ranks.
func (s *sketch) estimate() float64 { return estimate(s, s) }

func estimate(a, b *sketch) float64 {
	var cells [64]int // by rank
	for i, rank := range a {
		cells[max(rank, b[i])%64]++
	}
	sum := 0.0
	for rank, n := range cells {
		sum += math.Ldexp(float64(n), -rank)
	}
	const m = float64(sketchCells)
	estimate, empty := 0.7213/(1+1.079/m)*m*m/sum, cells[0]
	if estimate < 2.5*m && empty > 0 { // few: counting the empty cells is more exact
		return m * math.Log(m/float64(empty))
	}
	return estimate
}

// distinct counts distinct things in this window and the one before, so that what lasts is always included, and what is
// gone is forgotten. It takes no memory until it is used, and does not allocate while it is.
type distinct struct{ now, before, spare *sketch }

const sketchBytes = sketchCells

func (d *distinct) add(m mark) { d.open().add(m) }

func (d *distinct) addAll(all []mark) {
	s := d.open()
	for _, m := range all {
		s.add(m)
	}
}

// open returns the sketch of this window.
func (d *distinct) open() *sketch {
	if d.now == nil {
		if d.now, d.spare = d.spare, nil; d.now == nil {
			d.now = new(sketch)
		}
	}
	return d.now
}

// turn begins a new window. All sketches are needed at the beginning of a window, so the oldest one is cleared for it,
// unless nothing was added in the last window.
func (d *distinct) turn() {
	d.now, d.before, d.spare = nil, d.now, d.before
	if d.before == nil {
		d.spare = nil
	}
	if d.spare != nil {
		clear(d.spare[:])
	}
}

func (d *distinct) estimate() float64 { return union(d.now, d.before) }

// fresh estimates how many were not in the window before.
func (d *distinct) fresh() float64 { return max(0, union(d.now, d.before)-union(d.before, nil)) }

// gone estimates how many were in the window before but not in this one, which must be over, with the standard error.
func (d *distinct) gone() (n, deviation float64) {
	all := d.estimate()
	return max(0, all-union(d.now, nil)), StandardError * all
}

func (d *distinct) bytes() (n int) {
	for _, s := range []*sketch{d.now, d.before, d.spare} {
		if s != nil {
			n += sketchBytes
		}
	}
	return n
}

func union(a, b *sketch) float64 {
	switch {
	case a == nil && b == nil:
		return 0
	case a == nil:
		return b.estimate()
	case b == nil:
		return a.estimate()
	}
	return estimate(a, b)
}
