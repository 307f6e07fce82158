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

// feeder is the state of an incoming series that is aggregated: its last value, and the portion that it is part of. For
// a histogram it has the index of the value. It is kept in a row.
type feeder struct {
	start, time pcommon.Timestamp
	bits        uint64 // bits of the last number, or the index of the last value in the shard's histograms
	portion     uint32
	flags       feederFlags
}

type feederFlags uint8

const (
	feederFloat   feederFlags = 1 << iota // the last number was a float
	feederResting                         // it was silent, or has ended, and is not counted among the present ones
	feederBegun                           // it has had a value

	feederFlagBits = 3
)

// histogramFeeder is the last value, not a number, of a feeder. Its slices are never written to.
type histogramFeeder struct {
	last   amount.Value
	bounds *amount.Bounds
	cost   int64
}

// feederShard has the feeders of a part of all keys, and what these have added up since the last flush. Points of known
// feeders take no other lock than that of their shard.
type feederShard struct {
	rows atomic.Pointer[feederRows]

	mu         sync.Mutex
	live       int
	used       uint32   // rows that are or were taken
	spareRows  []uint32 // free rows among them
	portions   []portion
	spare      []uint32 // free portions
	histograms []histogramFeeder
	spares     []uint32 // free histograms
	_          [56]byte
}

// portion is what the feeders of one shard add to one aggregate.
type portion struct {
	of        *Aggregate       // nil if the portion is free
	sum       amount.Numeric   // since the last flush
	histogram *amount.Bucketed // the same for histograms, in the aggregate's bounds or earlier ones
	points    uint32           // since the last flush
	feeders   uint32
	awake     uint32 // feeders among these that are not resting
	class     amount.Class
	form      amount.Shape // copies of the aggregate's fields, which would otherwise have to be read for each point
}

func newFeederShards(n int) []feederShard {
	shards := make([]feederShard, n)
	for i := range shards {
		shards[i].rows.Store(&feederRows{})
	}
	return shards
}

// Trail has, for each shard, the row after the last one found. Senders repeat their series in the same order, so it is
// mostly the row of the next series.
type Trail [1 << maxFeederShardBits]uint32

// knows returns the row of a key, noRow if there is none, and ensures that it stays while its batch is in flight.
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

// portionOf returns the index of an aggregate's portion, and whether it is new.
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

// keep gives a feeder memory for a value that is not a number.
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

// wake counts a feeder among the present ones when it has a point.
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
