// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package overflow

import (
	"slices"
	"time"

	"github.com/godwit-otel/godwit/processor/cardinalityprocessor/internal/amount"
)

// Members that are silent rest: they are no part of what there is now, and remembered as long as nobody needs their memory, those of
// whoever has most of it the shortest. A shard's lock is held in all that follows.

// silent are the members of one account that rest, the first for the longest time.
type silent struct {
	queue  []resting
	rested int64 // memory
}

// resting is a member that was silent since an epoch. If it was not, it has come back.
type resting struct {
	fp     uint64
	member *Member
	since  uint32
}

func (r *resting) still() bool { return r.member.rests && r.member.Seen == r.since }

// rest is for a member that is silent. What counts up stays counted, so its last value must be known when it comes back;
// what goes up and down is gone with its member.
func (o *Overflow) rest(sh *overflowShard, fp uint64, m *Member) {
	if m.Output.Class == amount.ClassUpDown {
		o.forget(sh, fp, m)
		return
	}
	m.rests = true
	p := m.Output.subtotal(o.shardOf(fp))
	p.Members--
	p.resting++
	if m.own != nil {
		sh.owning--
	}
	of := m.Output.account
	s := sh.Silent[of]
	if s == nil {
		s = &silent{}
		sh.Silent[of] = s
	}
	s.queue = append(s.queue, resting{fp: fp, member: m, since: m.Seen})
	sh.Asleep++
	o.restMore(sh, of, m.Cost)
	o.forgetOldest(sh, sh.Rested-o.Budget/int64(RestPart*len(o.Shards)))
}

func (o *Overflow) restMore(sh *overflowShard, of *purse, n int64) {
	sh.Rested += n
	if s := sh.Silent[of]; s != nil {
		s.rested += n
	}
	o.rests(of, n)
}

func (o *Overflow) wake(sh *overflowShard, fp uint64, m *Member) {
	m.rests = false
	p := m.Output.subtotal(o.shardOf(fp))
	p.Members++
	p.resting--
	if m.own != nil {
		sh.owning++
	}
	sh.Asleep--
	o.restMore(sh, m.Output.account, -m.Cost)
}

// forgetOldest forgets those who rest for the longest time, of the account that has most of that memory, until so many bytes are
// free or none is left. Those with points on their way stay.
func (o *Overflow) forgetOldest(sh *overflowShard, n int64) {
	for n > 0 {
		var most *silent
		var of *purse
		for p, s := range sh.Silent {
			if most == nil || s.rested > most.rested {
				most, of = s, p
			}
		}
		if most == nil {
			break
		}
		until := most.rested / 2 // and then whoever has most by then
		kept := most.queue[:0:0]
		for n > 0 && len(most.queue) > 0 && most.rested >= until {
			r := most.queue[0]
			most.queue[0] = resting{}
			most.queue = most.queue[1:]
			switch {
			case !r.still():
			case r.member.pins > 0:
				kept = append(kept, r)
			default:
				n -= r.member.Cost
				o.lose(sh, r.fp, r.member)
			}
		}
		stuck := len(kept) > 0 && len(most.queue) == 0
		most.queue = append(kept, most.queue...)
		if len(most.queue) == 0 {
			delete(sh.Silent, of)
		} else if stuck {
			break
		}
	}
}

// lose forgets a member that may come back soon: who has just said that it ends need not be silent for long. From then on nobody counts from
// its beginning that began no later than it did.
func (o *Overflow) lose(sh *overflowShard, fp uint64, m *Member) {
	if m.Start < m.Time && time.Duration(m.Time-m.Start) < o.Idle { // or all of it would not count anyway
		m.Output.subtotal(o.shardOf(fp)).doubt(m)
	}
	o.forget(sh, fp, m)
}

// mostAhead is of how many inputs that began in the future the beginnings are remembered one by one.
const mostAhead = 16

// doubt records that a member is not known any more. One whose clock is ahead says nothing about those who begin before it did by its own clock:
// it has the same beginning when it comes back.
func (p *subtotal) doubt(m *Member) {
	switch {
	case !m.ahead:
		p.certain = max(p.certain, m.Start+1)
	case !slices.Contains(p.ahead, m.Start):
		if len(p.ahead) == mostAhead {
			soonest := slices.Index(p.ahead, slices.Min(p.ahead))
			p.certain = max(p.certain, p.ahead[soonest]+1)
			p.ahead = slices.Delete(p.ahead, soonest, soonest+1)
		}
		p.ahead = append(p.ahead, m.Start)
	}
}

// makeRoom forgets who rests until what batches were promised is there. No lock is held.
func (o *Overflow) makeRoom() {
	for i := range o.Shards {
		n := o.All.Used.Load() + o.All.Staged.Load() - o.Budget
		if n <= 0 {
			return
		}
		sh := &o.Shards[i]
		sh.Mu.Lock()
		o.forgetOldest(sh, n)
		sh.Mu.Unlock()
	}
}

// forget ends a membership.
func (o *Overflow) forget(sh *overflowShard, fp uint64, m *Member) {
	if m.rests {
		o.wake(sh, fp, m) // so that the queue does not know it any more
	}
	of := m.Output.subtotal(o.shardOf(fp))
	if m.Output.Class == amount.ClassUpDown {
		of.total.Add(m.Last.Opposite())
	}
	of.Members--
	sh.disown(m)
	m.gone = true
	o.shrink(m.Output.account, m.Cost)
	sh.remove(fp)
}

// overlook forgets those who rest and were added to an output that is gone: there is nothing left to go on with.
func (o *Overflow) overlook(sh *overflowShard) {
	for of, s := range sh.Silent {
		kept := s.queue[:0]
		for _, r := range s.queue {
			switch {
			case !r.still():
			case r.member.Output.gone.Load():
				o.forget(sh, r.fp, r.member)
			default:
				kept = append(kept, r)
			}
		}
		clear(s.queue[len(kept):])
		if s.queue = kept; len(kept) == 0 {
			delete(sh.Silent, of)
		}
	}
}
