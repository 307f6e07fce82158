// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package overflow

import (
	"slices"
	"time"

	"github.com/godwit-otel/godwit/processor/cardinalityprocessor/internal/amount"
)

// Silent members rest: they are not counted among the present ones, and are remembered as long as their memory is not
// needed, for the shortest time in the account that has most of it. A shard's lock is held in all that follows.

// silent has the resting members of one account, the longest-resting first.
type silent struct {
	queue  []resting
	rested int64 // memory they take
}

// resting is a member that has been silent since an epoch. If it has come since, it no longer rests.
type resting struct {
	fp     uint64
	member *Member
	since  uint32
}

func (r *resting) still() bool { return r.member.rests && r.member.Seen == r.since }

// rest puts a silent member to rest. What a counter has added stays counted, so its last value must be known when it
// comes back; the value of a sum that is not monotonic goes with its member.
func (sh *overflowShard) rest(fp uint64, m *Member) {
	if m.Output.Class == amount.ClassUpDown {
		sh.forget(fp, m)
		return
	}
	m.rests = true
	p := m.Output.subtotal(sh.number)
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
	sh.restMore(of, m.Cost)
	sh.forgetOldest(sh.Rested - sh.memory.Budget/sh.restPart)
}

func (sh *overflowShard) restMore(of *usage, n int64) {
	sh.Rested += n
	if s := sh.Silent[of]; s != nil {
		s.rested += n
	}
	sh.memory.rests(of, n)
}

func (sh *overflowShard) wake(m *Member) {
	m.rests = false
	p := m.Output.subtotal(sh.number)
	p.Members++
	p.resting--
	if m.own != nil {
		sh.owning++
	}
	sh.Asleep--
	sh.restMore(m.Output.account, -m.Cost)
}

// forgetOldest forgets the longest-resting members of the account that has most of that memory, until n bytes are free
// or none is left. Members with points in flight stay.
func (sh *overflowShard) forgetOldest(n int64) {
	for n > 0 {
		var most *silent
		var of *usage
		for p, s := range sh.Silent {
			if most == nil || s.rested > most.rested {
				most, of = s, p
			}
		}
		if most == nil {
			break
		}
		until := most.rested / 2 // and then of the account that has most by then
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
				sh.lose(r.fp, r.member)
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

// lose forgets a member that may come back soon: one that has just sent its end need not be silent for long. From then
// on no series that began no later than it did is counted from its beginning.
func (sh *overflowShard) lose(fp uint64, m *Member) {
	if m.Start < m.Time && time.Duration(m.Time-m.Start) < sh.idleAfter { // otherwise not all of it would count anyway
		m.Output.subtotal(sh.number).doubt(m)
	}
	sh.forget(fp, m)
}

// mostAhead is the largest number of inputs with a beginning in the future whose beginnings are remembered one by one.
const mostAhead = 16

// doubt records that a member was forgotten. One whose clock is ahead says nothing about others that began before it
// did by its own clock: it has the same beginning when it comes back.
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

// makeRoom forgets resting members until what batches were promised is free. No lock is held.
func (o *Overflow) makeRoom() {
	for i := range o.Shards {
		n := o.All.Used.Load() + o.All.Staged.Load() - o.Budget
		if n <= 0 {
			return
		}
		sh := &o.Shards[i]
		sh.Mu.Lock()
		sh.forgetOldest(n)
		sh.Mu.Unlock()
	}
}

// forget ends a membership.
func (sh *overflowShard) forget(fp uint64, m *Member) {
	if m.rests {
		sh.wake(m) // so that the queue does not have it any more
	}
	of := m.Output.subtotal(sh.number)
	if m.Output.Class == amount.ClassUpDown {
		of.total.Add(m.Last.Opposite())
	}
	of.Members--
	sh.disown(m)
	m.gone = true
	sh.memory.shrink(m.Output.account, m.Cost)
	sh.remove(fp)
}

// overlook forgets resting members whose output is gone: they have nothing left to continue.
func (sh *overflowShard) overlook() {
	for of, s := range sh.Silent {
		kept := s.queue[:0]
		for _, r := range s.queue {
			switch {
			case !r.still():
			case r.member.Output.gone.Load():
				sh.forget(r.fp, r.member)
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
