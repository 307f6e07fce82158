// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package series

import (
	"math/bits"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/godwit-otel/godwit/processor/cardinalityprocessor/internal/moment"
)

// A Table holds fingerprints, and for each the id of the set of groups it is counted in, the epoch it was inserted in and
// the one it was last seen in: 12 bytes in slots that are 73 to 88 % full. Looking up and touching takes no lock;
// inserting, expiring and resizing take the lock of one of the shards.
//
//	fps   |fp|fp|  |fp|....   0 = free, 1 = was taken once, look on
//	words |w |w |0 |w |....   set<<12 | born<<5 | seen; 0 = nobody is here: look again under the lock
//
// A reader trusts a slot when its word is not 0 and the fingerprint is still there after the word was read. Expiry and
// resizing swap the word for 0 first, so a touch either comes before and is kept, or fails and looks again.
//
// No operation covers the whole table. There are so many shards that each has no more than a few thousand slots when
// the table is full, and they grow in small steps. So nobody waits for more than one pass over one shard, and hardly
// more memory is taken than is used, whatever the number of entries.
//
// A table for many entries that has few would spread them over all of its shards, and each look-up would miss the
// cache. So neighbouring shards begin as one, in the first of them, and separate in halves as these fill up,
// permanently.
type Table struct {
	Shards []shard
	Widths []atomic.Uint32 // by shard: it is united with those whose numbers differ only in this many last bits
	Shift  uint            // the bits of a fingerprint above these choose its shard
}

type shard struct {
	Slots atomic.Pointer[slots]

	Mu   sync.Mutex
	live int // number of entries
	used int // entries and slots that were used once
	_    [32]byte
}

type slots struct {
	Fps   []uint64
	Words []uint32
}

// Layout of shards and words.
const (
	ShardEntries = 2048 // at most, when a table is full
	MinShardBits = 7
	MinShards    = 1 << MinShardBits
	maxShardBits = 16

	lineSlots = 8 // fingerprints in a cache line
	vacated   = 1

	// Only the last digits of epochs are stored. An entry that was not seen for so long that they repeat has expired
	// long before.
	seenBits = 5
	bornBits = 7
	setShift = seenBits + bornBits
	SeenMask = 1<<seenBits - 1
	bornMask = 1<<setShift - 1 - SeenMask
	maxSets  = 1<<(32-setShift) - 1

	births = 1<<bornBits - 1 // digits, in addition to 0 for long ago
	oldAge = 120             // in epochs; all older ones have this age
)

var noSlots slots

// NewTable returns a table for about n entries.
func NewTable(n int) *Table {
	shardBits := min(max(bits.Len(uint(n/ShardEntries)), MinShardBits), maxShardBits)
	t := &Table{
		Shards: make([]shard, 1<<shardBits), Widths: make([]atomic.Uint32, 1<<shardBits), Shift: uint(64 - shardBits),
	}
	for i := range t.Shards {
		t.Shards[i].Slots.Store(&noSlots)
		t.Widths[i].Store(uint32(shardBits))
	}
	return t
}

// shard is where fp belongs. Use Lock to lock it.
func (t *Table) shard(fp uint64) *shard {
	i := fp >> (t.Shift & 63)
	width := t.Widths[i].Load() & 63
	return &t.Shards[i>>width<<width]
}

// Lock locks the shard of fp, and makes room for one more.
func (t *Table) Lock(fp uint64) *shard {
	for {
		sh := t.shard(fp)
		sh.Mu.Lock()
		if i := fp >> (t.Shift & 63); sh != t.shard(fp) || sh.live >= ShardEntries && t.separate(i) {
			sh.Mu.Unlock()
			continue
		}
		return sh
	}
}

// separate halves a union of shards, and moves the entries of the second half. It reports whether it was a union. The
// caller holds the lock of its first shard; nobody holds that of the other one for long.
func (t *Table) separate(i uint64) bool {
	width := t.Widths[i].Load() & 63
	if width == 0 {
		return false
	}
	width--
	half := uint64(1) << width
	begin := i &^ (2*half - 1)
	first, second := &t.Shards[begin], &t.Shards[begin+half]
	second.Mu.Lock()
	defer second.Mu.Unlock()
	from := first.Slots.Load()
	moves := func(slot int) bool { return from.Fps[slot]>>(t.Shift&63)&half != 0 }
	for slot := range from.Words {
		if moves(slot) && atomic.LoadUint32(&from.Words[slot]) != 0 {
			second.live++
		}
	}
	to := newSlots(second.live)
	for slot := range from.Words {
		if moves(slot) {
			if word := atomic.SwapUint32(&from.Words[slot], 0); word != 0 {
				to.place(from.Fps[slot], word)
			}
		}
	}
	second.used = second.live
	second.Slots.Store(to)
	for i := range 2 * half { // before they are gone from the first: see absent
		t.Widths[begin+i].Store(width)
	}
	first.live -= second.live
	first.resize(first.live)
	return true
}

// absent reports that fp is certainly not there. It takes no lock: entries do not move within their slots, and when
// they move to other slots their fingerprints stay in the old ones for those who look there.
func (t *Table) absent(fp uint64) bool {
	sh := t.shard(fp)
	s := sh.Slots.Load()
	return s.find(fp) < 0 && t.shard(fp) == sh && sh.Slots.Load() == s
}

// find returns the slot of fp, or -1.
func (s *slots) find(fp uint64) int {
	i := s.home(fp)
	if at := s.inLine(fp, i); at >= 0 { // fast path
		return at
	}
	for range s.Fps {
		switch atomic.LoadUint64(&s.Fps[i]) {
		case fp:
			return i
		case 0:
			return -1
		}
		if i++; i == len(s.Fps) {
			i = 0
		}
	}
	return -1
}

// inLine returns the slot of fp if it is in a line, or -1. It compares all slots without branches, since the match is
// unpredictable and a wrong prediction costs more.
func (s *slots) inLine(fp uint64, begin int) int {
	if begin < 0 || begin+lineSlots > len(s.Fps) {
		return -1
	}
	line := (*[lineSlots]uint64)(s.Fps[begin:])
	at := -1 - begin
	if atomic.LoadUint64(&line[0]) == fp {
		at = 0
	}
	if atomic.LoadUint64(&line[1]) == fp {
		at = 1
	}
	if atomic.LoadUint64(&line[2]) == fp {
		at = 2
	}
	if atomic.LoadUint64(&line[3]) == fp {
		at = 3
	}
	if atomic.LoadUint64(&line[4]) == fp {
		at = 4
	}
	if atomic.LoadUint64(&line[5]) == fp {
		at = 5
	}
	if atomic.LoadUint64(&line[6]) == fp {
		at = 6
	}
	if atomic.LoadUint64(&line[7]) == fp {
		at = 7
	}
	return begin + at
}

// home is where the search begins: at a cache line. The bits above choose the shard.
func (s *slots) home(fp uint64) int {
	line, _ := bits.Mul64(fp<<maxShardBits, uint64(len(s.Fps)/lineSlots))
	return int(line) * lineSlots
}

// Warm prefetches the first cache line of each search, all at once, so that the look-ups that follow do not wait for
// memory one after the other. It does nothing else, since more work would leave fewer loads in flight. It appends the
// line of each for TouchAt.
func (t *Table) Warm(fps []uint64, dst []int32) []int32 {
	for _, fp := range fps {
		i := Nowhere
		if s := t.shard(fp).Slots.Load(); len(s.Fps) > 0 {
			i = s.home(fp)
			atomic.LoadUint64(&s.Fps[i])
			atomic.LoadUint32(&s.Words[i])
		}
		dst = append(dst, int32(i))
	}
	return dst
}

// Nowhere is the line of what was not prefetched.
const Nowhere = -1

// Touch records that fp was seen in its current epoch and returns its set, 0 if it is not known or must be looked for
// under the shard's lock. since is how many epochs ago it was last seen.
func (t *Table) Touch(fp uint64, now moment.Moment) (set, since uint32) {
	return t.shard(fp).touch(fp, Nowhere, now.EpochOf(fp))
}

// TouchAt is Touch for an epoch, and for what began to be looked for at a line a moment ago, if it was.
func (t *Table) TouchAt(fp uint64, line int32, epoch uint32) (set, since uint32) {
	return t.shard(fp).touch(fp, line, epoch)
}

func (sh *shard) touch(fp uint64, line int32, epoch uint32) (set, since uint32) {
	s := sh.Slots.Load()
	i := s.inLine(fp, int(line)) // fast path
	if i < 0 {
		if i = s.find(fp); i < 0 {
			return 0, 0
		}
	}
	for {
		word := atomic.LoadUint32(&s.Words[i])
		if word == 0 {
			return 0, 0
		}
		if since = (epoch - word) & SeenMask; since > SeenMask-moment.Ahead {
			since = 0 // it is noted to be seen later than that
		}
		if since != 0 {
			if !atomic.CompareAndSwapUint32(&s.Words[i], word, word&^SeenMask|epoch&SeenMask) {
				continue
			}
		}
		if atomic.LoadUint64(&s.Fps[i]) != fp {
			return 0, 0
		}
		return word >> setShift, since
	}
}

// Seen records that fp was seen at a past moment, unless it was seen since.
func (t *Table) Seen(fp uint64, at moment.Moment) {
	sh := t.Lock(fp)
	defer sh.Mu.Unlock()
	s := sh.Slots.Load()
	i := s.find(fp)
	if i < 0 {
		return
	}
	epoch := at.EpochOf(fp)
	for {
		word := atomic.LoadUint32(&s.Words[i])
		later := (epoch - word) & SeenMask
		if later == 0 || later > SeenMask/2 || atomic.CompareAndSwapUint32(&s.Words[i], word, word&^SeenMask|epoch&SeenMask) {
			return
		}
	}
}

// peek returns the set of fp without touching it.
func (t *Table) peek(fp uint64) uint32 {
	sh := t.Lock(fp)
	defer sh.Mu.Unlock()
	s := sh.Slots.Load()
	if i := s.find(fp); i >= 0 {
		return atomic.LoadUint32(&s.Words[i]) >> setShift
	}
	return 0
}

// Has reports whether fp is there, without touching it.
func (t *Table) Has(fp uint64) bool {
	sh := t.Lock(fp)
	defer sh.Mu.Unlock()
	return sh.Slots.Load().find(fp) >= 0
}

// Insert adds what Touch did not find under the same lock. The shard's lock is held.
func (sh *shard) Insert(fp uint64, set uint32, now moment.Moment) {
	sh.insert(fp, set, now, now.EpochOf(fp))
}

// insert is Insert for what is noted to be seen in an epoch.
func (sh *shard) insert(fp uint64, set uint32, now moment.Moment, seen uint32) {
	s := sh.Slots.Load()
	if (sh.used+1)*8 > len(s.Fps)*7 {
		s = sh.resize(sh.live + 1)
	}
	if s.place(fp, set<<setShift|(now.Epoch()%births+1)<<seenBits|seen&SeenMask) {
		sh.used++
	}
	sh.live++
}

// age is how many epochs ago an entry was inserted.
func age(word, epoch uint32) uint32 {
	born := word & bornMask >> seenBits
	if born == 0 {
		return oldAge
	}
	return min((epoch%births+births+1-born)%births, oldAge)
}

// place puts an entry into the first free slot, and reports whether that was never used before. The fingerprint is
// written before the word: see the type's comment.
func (s *slots) place(fp uint64, word uint32) (fresh bool) {
	i := s.home(fp)
	for s.Fps[i] > vacated {
		if i++; i == len(s.Fps) {
			i = 0
		}
	}
	fresh = s.Fps[i] == 0
	atomic.StoreUint64(&s.Fps[i], fp)
	atomic.StoreUint32(&s.Words[i], word)
	return fresh
}

// newSlots returns slots with room for a fifth more than n entries, rounded up to the allocator's size.
func newSlots(n int) *slots {
	if n == 0 {
		return &noSlots
	}
	fps := slices.Grow([]uint64(nil), (n+n/5+lineSlots-1)/lineSlots*lineSlots)
	fps = fps[:cap(fps)/lineSlots*lineSlots]
	return &slots{Fps: fps, Words: make([]uint32, len(fps))}
}

// resize moves the entries to slots for n entries. The shard's lock is held.
func (sh *shard) resize(n int) *slots {
	from, to := sh.Slots.Load(), newSlots(n)
	for i := range from.Words {
		if word := atomic.SwapUint32(&from.Words[i], 0); word != 0 {
			to.place(from.Fps[i], word)
		}
	}
	sh.used = sh.live
	sh.Slots.Store(to)
	return to
}

// assign moves an entry to another set. The shard's lock is held.
func (sh *shard) assign(fp uint64, set uint32) {
	s := sh.Slots.Load()
	i := s.find(fp)
	for {
		word := atomic.LoadUint32(&s.Words[i])
		if atomic.CompareAndSwapUint32(&s.Words[i], word, set<<setShift|word&(SeenMask|bornMask)) {
			return
		}
	}
}

// remove removes an entry. The shard's lock is held.
func (sh *shard) remove(fp uint64) {
	s := sh.Slots.Load()
	i := s.find(fp)
	atomic.StoreUint32(&s.Words[i], 0)
	sh.vacate(s, i)
}

// vacate frees a slot whose word is 0.
func (sh *shard) vacate(s *slots, i int) {
	sh.live--
	if next := (i + 1) % len(s.Fps); s.Fps[next] == 0 { // no search goes beyond it
		atomic.StoreUint64(&s.Fps[i], 0)
		sh.used--
	} else {
		atomic.StoreUint64(&s.Fps[i], vacated)
	}
}

// Expire takes all out that was not seen for more than the given number of epochs, and appends the sets it was counted
// in. The first ones that had a place, as many as there is room for, are kept for another time among those who left. Some
// may have been seen later than in this epoch, see moment.Ahead.
func (sh *shard) Expire(epoch, keep uint32, room int, gone []uint32) (all []uint32, kept int) {
	sh.Mu.Lock()
	defer sh.Mu.Unlock()
	s := sh.Slots.Load()
	for i := range s.Words {
		word := atomic.LoadUint32(&s.Words[i])
		if word == 0 {
			continue
		}
		if (epoch+moment.Ahead-word)&SeenMask <= keep+moment.Ahead {
			if word&bornMask != 0 && age(word, epoch) == oldAge { // if it is touched just now, then the next time
				atomic.CompareAndSwapUint32(&s.Words[i], word, word&^bornMask)
			}
			continue
		}
		after := uint32(0)
		if kept < room && word>>setShift > LeftLast {
			after = LeftIdle<<setShift | epoch&SeenMask
		}
		if !atomic.CompareAndSwapUint32(&s.Words[i], word, after) {
			continue
		}
		gone = append(gone, word>>setShift)
		if after == 0 {
			sh.vacate(s, i)
		} else {
			kept++
		}
	}
	if (sh.used-sh.live)*8 > len(s.Fps) || sh.live*2 < len(s.Fps) && len(s.Fps) > lineSlots {
		sh.resize(sh.live)
	}
	return gone, kept
}

// size is how many slots the shard has.
func (sh *shard) size() int { return len(sh.Slots.Load().Words) }

// Each calls f for the entries of one shard, under its lock.
func (sh *shard) Each(f func(fp uint64, set uint32)) {
	sh.Mu.Lock()
	defer sh.Mu.Unlock()
	s := sh.Slots.Load()
	for i := range s.Words {
		if word := atomic.LoadUint32(&s.Words[i]); word != 0 {
			f(s.Fps[i], word>>setShift)
		}
	}
}

// Bytes is the memory of the slots.
func (t *Table) Bytes() int64 {
	var n int64
	for i := range t.Shards {
		n += 12 * int64(len(t.Shards[i].Slots.Load().Fps))
	}
	return n
}

// Len is the number of entries. It goes through all of them.
func (t *Table) Len() int {
	n := 0
	for i := range t.Shards {
		t.Shards[i].Each(func(uint64, uint32) { n++ })
	}
	return n
}

// Separated is how many shards have entries of their own.
func (t *Table) Separated() (n int) {
	for i := range t.Shards {
		if width := t.Widths[i].Load(); i>>width<<width == i {
			n++
		}
	}
	return n
}
