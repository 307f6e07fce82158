// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package aggregate

import (
	"math"
	"math/bits"
	"sync"
	"sync/atomic"

	"go.opentelemetry.io/collector/pdata/pcommon"

	"github.com/godwit-otel/godwit/processor/cardinalityprocessor/internal/amount"
)

// feeder is a series that comes in and is aggregated: what it said last, and the portion that it is part of. Of a
// histogram it says where that is.
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
)

// histogramFeeder is the last value of a feeder that is no number. Its slices are never written to.
type histogramFeeder struct {
	last   amount.Value
	bounds *amount.Bounds
	cost   int64
}

// feederShard has the feeders of a part of all keys, and what these have added up since the last flush. Nothing that a
// known feeder says takes another lock than that of its shard.
//
//	heads    |k e|k e|   |k e|...   key, 0 = free; and the epoch in which it last came. At most four in five are taken
//	feeders  | f | f |   | f |...
//
// Whether a key is there is found out without the lock. Who finds it not has to look again under the lock: it may be moving.
type feederShard struct {
	slots atomic.Pointer[feederSlots]

	mu         sync.Mutex
	live       int
	portions   []portion
	spare      []uint32 // free portions
	histograms []histogramFeeder
	spares     []uint32 // free histograms
	_          [24]byte
}

type feederSlots struct {
	heads   []feederHead
	feeders []feeder // under the lock
}

// feederHead is what is looked at without the lock.
type feederHead struct {
	key  atomic.Uint64
	seen atomic.Uint32
}

// portion is what the feeders of one shard add to one aggregate.
type portion struct {
	of        *Aggregate       // nil: it is free
	sum       amount.Numeric   // since the last flush
	histogram *amount.Bucketed // the same of histograms, in the aggregate's bounds or earlier ones
	points    uint32           // since the last flush
	feeders   uint32
	awake     uint32 // of these, not resting
}

const minFeederSlots = 64

func newFeederShards(n int) []feederShard {
	shards := make([]feederShard, n)
	for i := range shards {
		shards[i].slots.Store(&feederSlots{})
	}
	return shards
}

// home is where a key belongs. The first bits of keys have chosen the shard.
func (s *feederSlots) home(key uint64) int {
	hi, _ := bits.Mul64(key<<maxFeederShardBits, uint64(len(s.heads)))
	return int(hi)
}

// find returns where a key is, -1 if nowhere.
func (s *feederSlots) find(key uint64) int {
	if len(s.heads) == 0 {
		return -1
	}
	for i := s.home(key); ; {
		switch s.heads[i].key.Load() {
		case key:
			return i
		case 0:
			return -1
		}
		if i++; i == len(s.heads) {
			i = 0
		}
	}
}

// warm reads where a key begins to be looked for.
func (s *feederSlots) warm(key uint64) {
	if len(s.heads) > 0 {
		s.heads[s.home(key)].key.Load()
	}
}

// warmFeeder reads the feeder of a key.
func (s *feederSlots) warmFeeder(key uint64) {
	if i := s.find(key); i >= 0 {
		atomic.LoadUint64(&s.feeders[i].bits)
	}
}

// knows says whether a key is there, and sees to it that it stays while its batch is on its way.
func (s *feederShard) knows(key uint64, epoch uint32) bool {
	slots := s.slots.Load()
	if i := slots.find(key); i >= 0 && slots.heads[i].seen.Load() == epoch { // fast path: it came in this epoch
		return true
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	slots = s.slots.Load()
	i := slots.find(key)
	if i < 0 {
		return false
	}
	slots.heads[i].seen.Store(epoch)
	return true
}

// insert adds a key that is not there. The lock is held, here and below.
func (s *feederShard) insert(key uint64, f feeder, epoch uint32) (slots *feederSlots, at int) {
	slots = s.slots.Load()
	if (s.live+1)*5 > len(slots.heads)*4 {
		slots = s.resize(max(minFeederSlots, len(slots.heads)*3/2))
	}
	s.live++
	return slots, slots.put(key, f, epoch)
}

func (s *feederSlots) put(key uint64, f feeder, epoch uint32) int {
	i := s.home(key)
	for s.heads[i].key.Load() != 0 {
		if i++; i == len(s.heads) {
			i = 0
		}
	}
	s.feeders[i] = f
	s.heads[i].seen.Store(epoch)
	s.heads[i].key.Store(key)
	return i
}

func (s *feederShard) resize(n int) *feederSlots {
	old := s.slots.Load()
	slots := &feederSlots{heads: make([]feederHead, n), feeders: make([]feeder, n)}
	for i := range old.heads {
		if key := old.heads[i].key.Load(); key != 0 {
			slots.put(key, old.feeders[i], old.heads[i].seen.Load())
		}
	}
	s.slots.Store(slots)
	return slots
}

// remove takes out what is in a slot, and moves those up that have it in their way.
func (s *feederShard) remove(i int) {
	slots := s.slots.Load()
	s.live--
	n := len(slots.heads)
	for j := i; ; {
		if j++; j == n {
			j = 0
		}
		key := slots.heads[j].key.Load()
		if key == 0 {
			break
		}
		if home := slots.home(key); (j-home+n)%n >= (j-i+n)%n { // i is between its home and where it is
			slots.feeders[i] = slots.feeders[j]
			slots.heads[i].seen.Store(slots.heads[j].seen.Load())
			slots.heads[i].key.Store(key)
			i = j
		}
	}
	slots.heads[i].key.Store(0)
	slots.feeders[i] = feeder{}
}

// shrink gives memory back when little of it is used.
func (s *feederShard) shrink() {
	if n := len(s.slots.Load().heads); n > minFeederSlots && s.live*3 < n {
		s.resize(max(minFeederSlots, s.live*8/5))
	}
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
	s.portions[at] = portion{of: g}
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
