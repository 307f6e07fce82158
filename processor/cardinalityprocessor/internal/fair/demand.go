// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package fair

import (
	"math"
	"math/bits"
	"sync/atomic"

	"github.com/godwit-otel/godwit/processor/cardinalityprocessor/internal/ident"
)

// Demand estimates how many distinct series a rule rejected lately, in 8 KiB for any number of them. Admitted series
// are counted exactly; rejected ones are not remembered anywhere else.
//
// It has two HyperLogLog sketches, of the current period and the last one, so that a steady explosion is visible as
// long as it lasts, and forgotten when it is over. The standard error is 1.04/√4096 = 1.6 %. It needs no lock.
type Demand struct {
	Now, Before atomic.Pointer[sketch]

	Points atomic.Int64 // since the start
	Last   atomic.Int64 // time of the last point
}

const (
	sketchBits  = 12
	sketchCells = 1 << sketchBits
)

// sketch has one byte for each cell, four in a word.
type sketch [sketchCells / 4]atomic.Uint32

// Add counts a rejected series.
func (d *Demand) Add(fp uint64) {
	s := d.Now.Load()
	for fresh := (*sketch)(nil); s == nil; s = d.Now.Load() {
		if fresh == nil {
			fresh = new(sketch)
		}
		d.Now.CompareAndSwap(nil, fresh)
	}
	s.add(ident.Mix(fp, ident.TagEmpty)) // hashed again, since shards use the bits that choose cells
}

// Turn begins a new period.
func (d *Demand) Turn() {
	d.Before.Store(d.Now.Swap(nil))
}

// Estimate returns the estimated number of series.
func (d *Demand) Estimate() float64 {
	now, before := d.Now.Load(), d.Before.Load()
	if now == nil && before == nil { // as for nearly all rules
		return 0
	}
	var both [sketchCells]uint8
	for _, s := range [...]*sketch{now, before} {
		if s != nil {
			s.mergeInto(&both)
		}
	}
	return estimate(both[:])
}

// estimate is the number of distinct hashes that leave these ranks in the cells.
func estimate(cells []uint8) float64 {
	sum, empty := 0.0, 0
	for _, rank := range cells {
		sum += math.Ldexp(1, -int(rank))
		if rank == 0 {
			empty++
		}
	}
	m := float64(len(cells))
	estimate := 0.7213 / (1 + 1.079/m) * m * m / sum
	if estimate < 2.5*m && empty > 0 { // for few hashes, counting empty cells is more accurate
		return m * math.Log(m/float64(empty))
	}
	return estimate
}

func (s *sketch) add(hash uint64) {
	cell := hash >> (64 - sketchBits)
	rank := uint32(bits.LeadingZeros64(hash<<sketchBits|1<<(sketchBits-1))) + 1
	word, shift := &s[cell/4], cell%4*8
	for {
		before := word.Load()
		if before>>shift&0xff >= rank {
			return
		}
		if word.CompareAndSwap(before, before&^(0xff<<shift)|rank<<shift) {
			return
		}
	}
}

func (s *sketch) mergeInto(cells *[sketchCells]uint8) {
	for i := range cells {
		cells[i] = max(cells[i], uint8(s[i/4].Load()>>(i%4*8)))
	}
}
