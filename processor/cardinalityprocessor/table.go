// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package cardinalityprocessor

import (
	"math/bits"
	"slices"
	"sync"
	"sync/atomic"
)

// A table holds fingerprints, and for each the id of the set of groups it is counted in, the epoch it was inserted in and
// the one it was last seen in: 12 bytes in slots that are 73 to 88 % full. Looking up and touching takes no lock;
// inserting, expiring and resizing take the lock of one of the shards.
//
//	fps   |fp|fp|  |fp|....   0 = free, 1 = was taken once, look on
//	words |w |w |0 |w |....   set<<12 | born<<5 | seen; 0 = nobody is here: look again under the lock
//
// A reader trusts a slot when its word is not 0 and the fingerprint is still there after the word was read. Expiry and
// resizing swap the word for 0 first, so a touch either comes before and is kept, or fails and looks again.
//
// Nothing is ever done to the table as a whole. There are so many shards that one has no more than a few thousand slots
// when the table is as full as it was made for, and they grow by small steps: so nobody waits for more than one pass over
// one of them, and hardly more memory is taken than is used, whatever the number of entries.
//
// A table that is made for many and has few would spread them over all of its shards, and each look-up would find its
// memory cold. So neighbours begin as one, in the first of them, and separate in halves as these fill up, for good.
type table struct {
	shards []shard
	widths []atomic.Uint32 // by shard: it is one with those whose numbers differ in no more than so many of the last bits
	shift  uint            // what is above are the bits of a fingerprint that choose its shard
}

type shard struct {
	slots atomic.Pointer[slots]

	mu   sync.Mutex
	live int // entries
	used int // entries and slots that were taken once
	_    [32]byte
}

type slots struct {
	fps   []uint64
	words []uint32
}

const (
	shardEntries = 2048 // at most, when a table is full
	minShardBits = 7
	minShards    = 1 << minShardBits
	maxShardBits = 16

	lineSlots = 8 // the fingerprints of a cache line
	vacated   = 1

	// Only the last digits of epochs are kept. An entry that was not seen for so long that they would begin again has
	// expired long before.
	seenBits = 5
	bornBits = 7
	setShift = seenBits + bornBits
	seenMask = 1<<seenBits - 1
	bornMask = 1<<setShift - 1 - seenMask
	maxSets  = 1<<(32-setShift) - 1

	births = 1<<bornBits - 1 // digits, beside 0 for long ago
	oldAge = 120             // in epochs; all that are older are of one age
)

var noSlots slots

// newTable returns a table for about n entries.
func newTable(n int) *table {
	shardBits := min(max(bits.Len(uint(n/shardEntries)), minShardBits), maxShardBits)
	t := &table{
		shards: make([]shard, 1<<shardBits), widths: make([]atomic.Uint32, 1<<shardBits), shift: uint(64 - shardBits),
	}
	for i := range t.shards {
		t.shards[i].slots.Store(&noSlots)
		t.widths[i].Store(uint32(shardBits))
	}
	return t
}

// shard is where fp belongs. Who needs its lock calls lock.
func (t *table) shard(fp uint64) *shard {
	i := fp >> (t.shift & 63)
	width := t.widths[i].Load() & 63
	return &t.shards[i>>width<<width]
}

// lock locks the shard of fp, which has room for one more then.
func (t *table) lock(fp uint64) *shard {
	for {
		sh := t.shard(fp)
		sh.mu.Lock()
		if i := fp >> (t.shift & 63); sh != t.shard(fp) || sh.live >= shardEntries && t.separate(i) {
			sh.mu.Unlock()
			continue
		}
		return sh
	}
}

// separate parts the shards that are one with a shard in halves, and gives the second half what is theirs. It says whether
// there were any. The lock of the first of them is held; that of the other one nobody has for long.
func (t *table) separate(i uint64) bool {
	width := t.widths[i].Load() & 63
	if width == 0 {
		return false
	}
	width--
	half := uint64(1) << width
	begin := i &^ (2*half - 1)
	first, second := &t.shards[begin], &t.shards[begin+half]
	second.mu.Lock()
	defer second.mu.Unlock()
	from := first.slots.Load()
	moves := func(slot int) bool { return from.fps[slot]>>(t.shift&63)&half != 0 }
	for slot := range from.words {
		if moves(slot) && atomic.LoadUint32(&from.words[slot]) != 0 {
			second.live++
		}
	}
	to := newSlots(second.live)
	for slot := range from.words {
		if moves(slot) {
			if word := atomic.SwapUint32(&from.words[slot], 0); word != 0 {
				to.place(from.fps[slot], word)
			}
		}
	}
	second.used = second.live
	second.slots.Store(to)
	for i := range 2 * half { // before they are gone from the first: see absent
		t.widths[begin+i].Store(width)
	}
	first.live -= second.live
	first.resize(first.live)
	return true
}

// absent says for certain that fp is not there. It takes no lock: entries do not move within their slots, and where they move to others
// their fingerprints stay for who looks at the old ones.
func (t *table) absent(fp uint64) bool {
	sh := t.shard(fp)
	s := sh.slots.Load()
	return s.find(fp) < 0 && t.shard(fp) == sh && sh.slots.Load() == s
}

// find returns the slot of fp, or -1.
func (s *slots) find(fp uint64) int {
	i := s.home(fp)
	for range s.fps {
		switch atomic.LoadUint64(&s.fps[i]) {
		case fp:
			return i
		case 0:
			return -1
		}
		if i++; i == len(s.fps) {
			i = 0
		}
	}
	return -1
}

// home is where the search begins: at a cache line. The bits above choose the shard.
func (s *slots) home(fp uint64) int {
	line, _ := bits.Mul64(fp<<maxShardBits, uint64(len(s.fps)/lineSlots))
	return int(line) * lineSlots
}

// warm reads where entries begin to be looked for, all at once, so that the look-ups that follow do not wait for memory
// one after the other.
func (t *table) warm(fps []uint64) {
	for _, fp := range fps {
		if s := t.shard(fp).slots.Load(); len(s.fps) > 0 {
			i := s.home(fp)
			atomic.LoadUint64(&s.fps[i])
			atomic.LoadUint32(&s.words[i])
		}
	}
}

// touch says that fp was seen in this epoch of its own and returns its set, 0 if it is not known or has to be looked for under the
// shard's lock. since is how many epochs ago it was seen last.
func (t *table) touch(fp uint64, now moment) (set, since uint32) {
	return t.shard(fp).touch(fp, now)
}

func (sh *shard) touch(fp uint64, now moment) (set, since uint32) {
	s := sh.slots.Load()
	i := s.find(fp)
	if i < 0 {
		return 0, 0
	}
	epoch := now.epochOf(fp)
	for {
		word := atomic.LoadUint32(&s.words[i])
		if word == 0 {
			return 0, 0
		}
		if since = (epoch - word) & seenMask; since != 0 {
			if !atomic.CompareAndSwapUint32(&s.words[i], word, word&^seenMask|epoch&seenMask) {
				continue
			}
		}
		if atomic.LoadUint64(&s.fps[i]) != fp {
			return 0, 0
		}
		return word >> setShift, since
	}
}

// peek returns the set of fp without touching it.
func (t *table) peek(fp uint64) uint32 {
	sh := t.lock(fp)
	defer sh.mu.Unlock()
	s := sh.slots.Load()
	if i := s.find(fp); i >= 0 {
		return atomic.LoadUint32(&s.words[i]) >> setShift
	}
	return 0
}

// has looks without touching.
func (t *table) has(fp uint64) bool {
	sh := t.lock(fp)
	defer sh.mu.Unlock()
	return sh.slots.Load().find(fp) >= 0
}

// insert adds what touch did not find under the same lock. The shard's lock is held.
func (sh *shard) insert(fp uint64, set uint32, now moment) {
	s := sh.slots.Load()
	if (sh.used+1)*8 > len(s.fps)*7 {
		s = sh.resize(sh.live + 1)
	}
	if s.place(fp, set<<setShift|(now.epoch()%births+1)<<seenBits|now.epochOf(fp)&seenMask) {
		sh.used++
	}
	sh.live++
}

// age is how many epochs ago the entry of a word was inserted.
func age(word, epoch uint32) uint32 {
	born := word & bornMask >> seenBits
	if born == 0 {
		return oldAge
	}
	return min((epoch%births+births+1-born)%births, oldAge)
}

// place puts an entry into the first slot that is not taken, and says whether that was never taken before. The
// fingerprint comes before the word: see the type's comment.
func (s *slots) place(fp uint64, word uint32) (fresh bool) {
	i := s.home(fp)
	for s.fps[i] > vacated {
		if i++; i == len(s.fps) {
			i = 0
		}
	}
	fresh = s.fps[i] == 0
	atomic.StoreUint64(&s.fps[i], fp)
	atomic.StoreUint32(&s.words[i], word)
	return fresh
}

// newSlots returns slots with room for a fifth more than n entries, and in what the allocator would round that up to.
func newSlots(n int) *slots {
	if n == 0 {
		return &noSlots
	}
	fps := slices.Grow([]uint64(nil), (n+n/5+lineSlots-1)/lineSlots*lineSlots)
	fps = fps[:cap(fps)/lineSlots*lineSlots]
	return &slots{fps: fps, words: make([]uint32, len(fps))}
}

// resize moves the entries to slots that suit n. The shard's lock is held.
func (sh *shard) resize(n int) *slots {
	from, to := sh.slots.Load(), newSlots(n)
	for i := range from.words {
		if word := atomic.SwapUint32(&from.words[i], 0); word != 0 {
			to.place(from.fps[i], word)
		}
	}
	sh.used = sh.live
	sh.slots.Store(to)
	return to
}

// assign moves an entry to another set. The shard's lock is held.
func (sh *shard) assign(fp uint64, set uint32) {
	s := sh.slots.Load()
	i := s.find(fp)
	for {
		word := atomic.LoadUint32(&s.words[i])
		if atomic.CompareAndSwapUint32(&s.words[i], word, set<<setShift|word&(seenMask|bornMask)) {
			return
		}
	}
}

// remove takes an entry out. The shard's lock is held.
func (sh *shard) remove(fp uint64) {
	s := sh.slots.Load()
	i := s.find(fp)
	atomic.StoreUint32(&s.words[i], 0)
	sh.vacate(s, i)
}

// vacate frees a slot whose word is 0.
func (sh *shard) vacate(s *slots, i int) {
	sh.live--
	if next := (i + 1) % len(s.fps); s.fps[next] == 0 { // nothing lies beyond
		atomic.StoreUint64(&s.fps[i], 0)
		sh.used--
	} else {
		atomic.StoreUint64(&s.fps[i], vacated)
	}
}

// expire takes all out that was not seen for more than the given number of epochs, and appends the sets it was counted
// in. The first ones that had a place, as many as there is room for, are kept for another time among those who left. Some
// may have been seen in the next epoch, which began early for them.
func (sh *shard) expire(epoch, keep uint32, room int, gone []uint32) (all []uint32, kept int) {
	sh.mu.Lock()
	defer sh.mu.Unlock()
	s := sh.slots.Load()
	for i := range s.words {
		word := atomic.LoadUint32(&s.words[i])
		if word == 0 {
			continue
		}
		if (epoch+1-word)&seenMask <= keep+1 {
			if word&bornMask != 0 && age(word, epoch) == oldAge { // if it is touched just now, then the next time
				atomic.CompareAndSwapUint32(&s.words[i], word, word&^bornMask)
			}
			continue
		}
		after := uint32(0)
		if kept < room && word>>setShift > leftLast {
			after = leftIdle<<setShift | epoch&seenMask
		}
		if !atomic.CompareAndSwapUint32(&s.words[i], word, after) {
			continue
		}
		gone = append(gone, word>>setShift)
		if after == 0 {
			sh.vacate(s, i)
		} else {
			kept++
		}
	}
	if (sh.used-sh.live)*8 > len(s.fps) || sh.live*2 < len(s.fps) && len(s.fps) > lineSlots {
		sh.resize(sh.live)
	}
	return gone, kept
}

// size is how many slots the shard has.
func (sh *shard) size() int { return len(sh.slots.Load().words) }

// each calls f for the entries of one shard, under its lock.
func (sh *shard) each(f func(fp uint64, set uint32)) {
	sh.mu.Lock()
	defer sh.mu.Unlock()
	s := sh.slots.Load()
	for i := range s.words {
		if word := atomic.LoadUint32(&s.words[i]); word != 0 {
			f(s.fps[i], word>>setShift)
		}
	}
}

// bytes is the memory of the slots.
func (t *table) bytes() int64 {
	var n int64
	for i := range t.shards {
		n += 12 * int64(len(t.shards[i].slots.Load().fps))
	}
	return n
}
