// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package aggregate

import (
	"math"
	"sync"
	"sync/atomic"

	"go.opentelemetry.io/collector/pdata/pcommon"

	"github.com/godwit-otel/godwit/processor/cardinalityprocessor/internal/amount"
)

// feeder is what is known of a series that comes in and is aggregated: what it said last, and the portion that it is part of. Of a
// histogram it says where that is. It is kept in a row.
type feeder struct {
	start, time pcommon.Timestamp
	bits        uint64 // of the last number, or where in the shard's histograms the last value is
	portion     uint32
	flags       feederFlags
}

type feederFlags uint8

const (
	feederFloat   feederFlags = 1 << iota // the last number was one
	feederResting                         // it was silent, or said its end, and is no part of what there is now
	feederBegun                           // it has said something

	feederFlagBits = 3
)

// histogramFeeder is the last value of a feeder that is no number. Its slices are never written to.
type histogramFeeder struct {
	last   amount.Value
	bounds *amount.Bounds
	cost   int64
}

// feederShard has the feeders of a part of all keys, and what these have added up since the last flush. Nothing that a
// known feeder says takes another lock than that of its shard.
type feederShard struct {
	rows atomic.Pointer[feederRows]

	mu         sync.Mutex
	live       int
	used       uint32   // rows that are or were taken
	spareRows  []uint32 // of these, those that are free
	portions   []portion
	spare      []uint32 // free portions
	histograms []histogramFeeder
	spares     []uint32 // free histograms
	_          [56]byte
}

// portion is what the feeders of one shard add to one aggregate.
type portion struct {
	of        *Aggregate       // nil: it is free
	sum       amount.Numeric   // since the last flush
	histogram *amount.Bucketed // the same of histograms, in the aggregate's bounds or earlier ones
	points    uint32           // since the last flush
	feeders   uint32
	awake     uint32 // of these, not resting
	class     amount.Class
	form      amount.Shape // both of them the aggregate's, which would have to be looked at for each point
}

func newFeederShards(n int) []feederShard {
	shards := make([]feederShard, n)
	for i := range shards {
		shards[i].rows.Store(&feederRows{})
	}
	return shards
}

// Trail is, by shard, the row after that which was found last. Senders say their series in the same order again, so it is mostly that
// of the next one.
type Trail [1 << maxFeederShardBits]uint32

// knows returns the row of a key, noRow if there is none, and sees to it that it stays while its batch is on its way.
func (s *feederShard) knows(key uint64, epoch, guess uint32) uint32 {
	rows, row := s.rows.Load(), guess
	if !rows.is(row, key) {
		row = rows.find(key)
	}
	if row != noRow && rows.row(row).seen.Load() == epoch { // fast path: it came in this epoch
		return row
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if row = s.rows.Load().find(key); row != noRow {
		s.rows.Load().row(row).seen.Store(epoch)
	}
	return row
}

// portionOf returns the number of an aggregate's portion, and whether it is new.
func (s *feederShard) portionOf(g *Aggregate, shard int) (at uint32, fresh bool) {
	if at := g.portions[shard]; at > 0 {
		return at - 1, false
	}
	if n := len(s.spare); n > 0 {
		at, s.spare = s.spare[n-1], s.spare[:n-1]
	} else {
		at = uint32(len(s.portions))
		s.portions = append(s.portions, portion{})
	}
	s.portions[at] = portion{of: g, class: g.Class, form: g.form}
	g.portions[shard] = at + 1
	return at, true
}

// keep gives a feeder memory for a value that is no number.
func (s *feederShard) keep() (at uint32) {
	if n := len(s.spares); n > 0 {
		at, s.spares = s.spares[n-1], s.spares[:n-1]
		return at
	}
	s.histograms = append(s.histograms, histogramFeeder{})
	return uint32(len(s.histograms) - 1)
}

func (f *feeder) number() amount.Numeric { return amount.NumberOf(f.bits, f.flags&feederFloat != 0) }

func (f *feeder) remember(n amount.Numeric) {
	f.flags = f.flags&^feederFloat | feederBegun
	if f.bits = uint64(n.Integer); n.IsFloat {
		f.bits, f.flags = math.Float64bits(n.Number()), f.flags|feederFloat
	}
}

// wake is for a feeder that has something to say.
func (p *portion) wake(f *feeder) {
	if f.flags&feederResting != 0 {
		f.flags &^= feederResting
		p.awake++
	}
}

func (p *portion) rest(f *feeder) {
	if f.flags&feederResting == 0 {
		f.flags |= feederResting
		p.awake--
	}
}
