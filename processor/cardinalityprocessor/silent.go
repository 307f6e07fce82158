// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package cardinalityprocessor

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
	member *member
	since  uint32
}

func (r *resting) still() bool { return r.member.rests && r.member.seen == r.since }

// rest is for a member that is silent. What counts up stays counted, so its last value must be known when it comes back;
// what goes up and down is gone with its member.
func (o *overflow) rest(sh *overflowShard, fp uint64, m *member) {
	if m.output.class == classUpDown {
		o.forget(sh, fp, m)
		return
	}
	m.rests = true
	m.output.subtotal(o.shardOf(fp)).members--
	if m.own != nil {
		sh.owning--
	}
	of := m.output.account
	s := sh.silent[of]
	if s == nil {
		s = &silent{}
		sh.silent[of] = s
	}
	s.queue = append(s.queue, resting{fp: fp, member: m, since: m.seen})
	sh.asleep++
	o.restMore(sh, of, m.cost)
	o.forgetOldest(sh, sh.rested-o.budget/int64(restPart*len(o.shards)))
}

func (o *overflow) restMore(sh *overflowShard, of *purse, n int64) {
	sh.rested += n
	if s := sh.silent[of]; s != nil {
		s.rested += n
	}
	o.rests(of, n)
}

func (o *overflow) wake(sh *overflowShard, fp uint64, m *member) {
	m.rests = false
	m.output.subtotal(o.shardOf(fp)).members++
	if m.own != nil {
		sh.owning++
	}
	sh.asleep--
	o.restMore(sh, m.output.account, -m.cost)
}

// forgetOldest forgets those who rest for the longest time, of the account that has most of that memory, until so many bytes are
// free or none is left. Those with points on their way stay.
func (o *overflow) forgetOldest(sh *overflowShard, n int64) {
	for n > 0 {
		var most *silent
		var of *purse
		for p, s := range sh.silent {
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
				n -= r.member.cost
				o.forget(sh, r.fp, r.member)
			}
		}
		stuck := len(kept) > 0 && len(most.queue) == 0
		most.queue = append(kept, most.queue...)
		if len(most.queue) == 0 {
			delete(sh.silent, of)
		} else if stuck {
			break
		}
	}
}

// makeRoom forgets who rests until what batches were promised is there. No lock is held.
func (o *overflow) makeRoom() {
	for i := range o.shards {
		n := o.all.used.Load() + o.all.staged.Load() - o.budget
		if n <= 0 {
			return
		}
		sh := &o.shards[i]
		sh.mu.Lock()
		o.forgetOldest(sh, n)
		sh.mu.Unlock()
	}
}

// forget ends a membership.
func (o *overflow) forget(sh *overflowShard, fp uint64, m *member) {
	if m.rests {
		o.wake(sh, fp, m) // so that the queue does not know it any more
	}
	of := m.output.subtotal(o.shardOf(fp))
	if m.output.class == classUpDown {
		of.total.add(m.last.opposite())
	}
	of.members--
	sh.disown(m)
	m.gone = true
	o.shrink(m.output.account, m.cost)
	delete(sh.members, fp)
}

// overlook forgets those who rest and were added to an output that is gone: there is nothing left to go on with.
func (o *overflow) overlook(sh *overflowShard) {
	for of, s := range sh.silent {
		kept := s.queue[:0]
		for _, r := range s.queue {
			switch {
			case !r.still():
			case r.member.output.gone.Load():
				o.forget(sh, r.fp, r.member)
			default:
				kept = append(kept, r)
			}
		}
		clear(s.queue[len(kept):])
		if s.queue = kept; len(kept) == 0 {
			delete(sh.silent, of)
		}
	}
}
