// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package stats

import (
	"math"
	"math/bits"
)

// StandardError is that of every estimate of something distinct: 1.04/√1024.
const StandardError = 0.0325

// SampledError is that of the labels of a metric of which so many series were rejected that not all were looked at:
// that of three estimates together. For values that come a few times each it is more.
const SampledError = 0.056

const (
	sketchBits  = 10
	sketchCells = 1 << sketchBits
)

// sketch is a HyperLogLog.
type sketch [sketchCells]uint8

// mark is what a sketch sees of a hash.
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

// estimate is how many there were. Ranks are counted first: there are few of them.
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

// distinct counts what is distinct in this window and the one before, so that what lasts is always seen and what is gone
// is forgotten. It takes no memory until it is needed, and none anew while it is.
type distinct struct{ now, before, spare *sketch }

const sketchBytes = sketchCells

func (d *distinct) add(m mark) { d.open().add(m) }

func (d *distinct) addAll(all []mark) {
	s := d.open()
	for _, m := range all {
		s.add(m)
	}
}

// open is the sketch of this window.
func (d *distinct) open() *sketch {
	if d.now == nil {
		if d.now, d.spare = d.spare, nil; d.now == nil {
			d.now = new(sketch)
		}
	}
	return d.now
}

// turn begins a new window. All sketches are first needed at its beginning, so the one that is no more is cleared for that,
// unless the last window did without.
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

// fresh is how many were not there in the window before.
func (d *distinct) fresh() float64 { return max(0, union(d.now, d.before)-union(d.before, nil)) }

// gone is how many were there in the window before and did not come in this one, which is over, and its standard error.
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
