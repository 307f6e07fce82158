// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package aggregate

import (
	"math/bits"
	"sync/atomic"

	"go.opentelemetry.io/collector/pdata/pcommon"
)

// feederRows has the feeders of a shard, in the order in which they came: series that a sender sends one after the
// other lie next to each other, and are found in a row after the first.
//
//	places   |t 3|   |t 1|t 2|...   where keys belong: a part of the key, and the number of its row, from 1 on. At most four in five are taken
//	pieces   |row|row|...|          rows
//	starts   |time|time|...|        of the rows of a piece, when their feeders began
//
// A key is looked up without the lock. If it is not found, it must be looked up again under the lock: it may have been
// moving.
type feederRows struct {
	places []atomic.Uint32
	pieces []*[pieceRows]feederRow
	starts []*[pieceRows]pcommon.Timestamp // by piece; nil until a feeder has a start time, as is usual in remote write. Under the lock
}

// pieceRows is how many rows there are in a piece. More are added piece by piece, and none is moved for that. It has the size of what the
// allocator gives out, and no pointer that the garbage collector would have to look for.
const pieceRows = 64

// feederRow is a feeder: the fields read without the lock, and the rest.
type feederRow struct {
	key  atomic.Uint64 // 0 if the row is free
	seen atomic.Uint32 // epoch in which it last came
	// The fields below are guarded by the lock.
	of   uint32 // index of its portion, and flags
	time pcommon.Timestamp
	bits uint64
}

// noRow stands for a row that does not exist.
const noRow = ^uint32(0)

const minPlaces = 64

// rowBits is how many bits of a place hold the row number: no shard has more rows. The other bits hold a part of the
// key.
const rowBits = 26

// home returns where a key belongs. The first bits of keys have chosen the shard.
func (r *feederRows) home(key uint64) int {
	hi, _ := bits.Mul64(key<<maxFeederShardBits, uint64(len(r.places)))
	return int(hi)
}

// place returns the entry for a key in a row.
func place(key uint64, row uint32) uint32 { return uint32(key)<<rowBits | (row + 1) }

// rowAt returns the row of a place.
func rowAt(place uint32) uint32 { return place&(1<<rowBits-1) - 1 }

// is reports whether a row is that of a key. The row may be any number.
func (r *feederRows) is(row uint32, key uint64) bool {
	return int(row/pieceRows) < len(r.pieces) && r.row(row).key.Load() == key
}

func (r *feederRows) row(row uint32) *feederRow {
	return &r.pieces[row/pieceRows][row%pieceRows]
}

// feeder returns the feeder in a row. The lock is held, here and below.
func (r *feederRows) feeder(row uint32) feeder {
	of := r.row(row)
	f := feeder{time: of.time, bits: of.bits, portion: of.of >> feederFlagBits, flags: feederFlags(of.of & (1<<feederFlagBits - 1))}
	if starts := r.startsOf(row); starts != nil {
		f.start = starts[row%pieceRows]
	}
	return f
}

// put stores the feeder in a row.
func (r *feederRows) put(row uint32, f feeder) {
	of := r.row(row)
	of.of, of.time, of.bits = f.portion<<feederFlagBits|uint32(f.flags), f.time, f.bits
	starts := r.startsOf(row)
	if starts == nil && f.start != 0 {
		starts = new([pieceRows]pcommon.Timestamp)
		for len(r.starts) <= int(row/pieceRows) {
			r.starts = append(r.starts, nil)
		}
		r.starts[row/pieceRows] = starts
	}
	if starts != nil {
		starts[row%pieceRows] = f.start
	}
}

// startsOf returns the start times of a row's piece, or nil.
func (r *feederRows) startsOf(row uint32) *[pieceRows]pcommon.Timestamp {
	if piece := int(row / pieceRows); piece < len(r.starts) {
		return r.starts[piece]
	}
	return nil
}

// find returns the row of a key, noRow if there is none.
func (r *feederRows) find(key uint64) uint32 {
	if len(r.places) == 0 {
		return noRow
	}
	for i := r.home(key); ; {
		p := r.places[i].Load()
		if p == 0 {
			return noRow
		}
		if row := rowAt(p); p == place(key, row) && r.is(row, key) {
			return row
		}
		if i++; i == len(r.places) {
			i = 0
		}
	}
}

// index enters a key into the places. There is room.
func (r *feederRows) index(key uint64, row uint32) {
	i := r.home(key)
	for r.places[i].Load() != 0 {
		if i++; i == len(r.places) {
			i = 0
		}
	}
	r.places[i].Store(place(key, row))
}

// unindex removes a key that is in the places, and moves up those that were displaced by it.
func (r *feederRows) unindex(key uint64, row uint32) {
	i, n := r.home(key), len(r.places)
	for r.places[i].Load() != place(key, row) {
		if i++; i == n {
			i = 0
		}
	}
	for j := i; ; {
		if j++; j == n {
			j = 0
		}
		p := r.places[j].Load()
		if p == 0 {
			break
		}
		if home := r.home(r.row(rowAt(p)).key.Load()); (j-home+n)%n >= (j-i+n)%n { // i is between its home and where it is
			r.places[i].Store(p)
			i = j
		}
	}
	r.places[i].Store(0)
}

// row takes a free row, adding a piece if there is none.
func (s *feederShard) row() uint32 {
	if n := len(s.spareRows); n > 0 {
		row := s.spareRows[n-1]
		s.spareRows = s.spareRows[:n-1]
		return row
	}
	if was := s.rows.Load(); int(s.used/pieceRows) == len(was.pieces) {
		s.rows.Store(&feederRows{places: was.places, pieces: append(was.pieces, new([pieceRows]feederRow)), starts: was.starts})
	}
	s.used++
	return s.used - 1
}

// insert adds a key that is not there, and returns its row.
func (s *feederShard) insert(key uint64, f feeder, epoch uint32) uint32 {
	if n := len(s.rows.Load().places); (s.live+1)*5 > n*4 {
		s.reindex(max(minPlaces, n*3/2))
	}
	s.live++
	row := s.row()
	r := s.rows.Load()
	r.put(row, f)
	r.row(row).seen.Store(epoch)
	r.row(row).key.Store(key)
	r.index(key, row)
	return row
}

// reindex rebuilds the places with another size.
func (s *feederShard) reindex(n int) {
	was := s.rows.Load()
	r := &feederRows{places: make([]atomic.Uint32, n), pieces: was.pieces, starts: was.starts}
	for row := range s.used {
		if key := r.row(row).key.Load(); key != 0 {
			r.index(key, row)
		}
	}
	s.rows.Store(r)
}

// remove removes the feeder in a row.
func (s *feederShard) remove(row uint32) {
	r := s.rows.Load()
	r.unindex(r.row(row).key.Load(), row)
	r.row(row).key.Store(0)
	r.put(row, feeder{})
	s.spareRows = append(s.spareRows, row)
	s.live--
}

// shrink gives memory back when little of it is used: it moves all rows together.
func (s *feederShard) shrink() {
	if s.used <= pieceRows || s.live*3 >= int(s.used) {
		return
	}
	was, used := s.rows.Load(), s.used
	s.rows.Store(&feederRows{places: make([]atomic.Uint32, max(minPlaces, s.live*8/5))})
	s.used, s.live, s.spareRows = 0, 0, nil
	for row := range used {
		if of := was.row(row); of.key.Load() != 0 {
			s.insert(of.key.Load(), was.feeder(row), of.seen.Load())
		}
	}
}
