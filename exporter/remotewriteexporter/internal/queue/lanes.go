// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package queue

import (
	"iter"
	"slices"
	"sync"
	"time"
)

// A destination is one endpoint's view of the blocks. Queue.mu guards it.
type destination struct {
	wake     *sync.Cond
	policy   Policy
	standing standing
	fresh,
	late row // what has waited for so long that fresh blocks go first
	bytes  int64
	items  int64 // samples and histograms in the blocks
	taken  int64 // those that were ever queued
	blocks int
	leased int // lanes
	held   int // blocks with senders
	// refused is the size of the block that was last left out because there was no room.
	refused int64
}

// A row is blocks that go in the order of their epochs.
type row struct {
	groups []*group // by epoch; of each tenant blocks are leased from the first only
}

// A group holds the blocks of one epoch, in a lane for each shard of each tenant, while there are blocks in it.
type group struct {
	epoch uint32
	lanes []*lane
	byKey map[laneKey]*lane
	// mayMix says that entries may come while older ones are yet to come back.
	mayMix bool
}

type laneKey struct {
	shard  uint16
	tenant uint32
}

// A lane holds the blocks of one shard and tenant in order. The first of them, while leased, are with a sender.
type lane struct {
	of      *group
	key     laneKey
	at      int // in the lanes of the group
	entries []*entry
	held    int

	unread time.Time // since when its first block could not be read; zero if it could
	until  time.Time // when that is tried again
}

func newDestination(wake *sync.Cond, policy Policy, standing standing) *destination {
	return &destination{wake: wake, policy: policy, standing: standing}
}

func (d *destination) push(e *entry) {
	l := d.fresh.last(e.epoch).lane(laneKey{e.shard, e.tenant})
	l.entries = append(l.entries, e)
	d.bytes += int64(e.size)
	d.items += e.items()
	d.standing.charge(e.tenant, int64(e.size))
	d.blocks++
	d.wake.Signal()
}

// last finds or makes the group of an epoch that is none before the last.
func (r *row) last(epoch uint32) *group {
	if n := len(r.groups); n == 0 || r.groups[n-1].epoch != epoch {
		r.groups = append(r.groups, newGroup(epoch))
	}
	return r.groups[len(r.groups)-1]
}

func newGroup(epoch uint32) *group { return &group{epoch: epoch, byKey: map[laneKey]*lane{}} }

// lane finds or makes a lane.
func (g *group) lane(key laneKey) *lane {
	l := g.byKey[key]
	if l == nil {
		l = &lane{of: g, key: key, at: len(g.lanes)}
		g.byKey[key] = l
		g.lanes = append(g.lanes, l)
	}
	return l
}

// leave removes a lane that has become empty.
func (g *group) leave(l *lane) {
	if len(l.entries) > 0 {
		return
	}
	last := len(g.lanes) - 1
	g.lanes[l.at] = g.lanes[last]
	g.lanes[l.at].at = l.at
	g.lanes[last] = nil
	g.lanes = g.lanes[:last]
	delete(g.byKey, l.key)
}

// lease takes the oldest block whose lane is free, and those that follow it there as far as the bound allows; nil without
// one.
func (d *destination) lease(most Bound) (*lane, []*entry) {
	now := time.Now()
	d.age(now)
	mayProbe := d.standing.mayProbe()
	free := func(l *lane) *entry {
		if l.held > 0 || now.Before(l.until) || d.standing.waits(l.key.tenant, now, mayProbe) {
			return nil
		}
		return l.entry(0)
	}
	best := d.fresh.first(free)
	if best == nil {
		best = d.late.first(free)
	}
	if best == nil {
		return nil, nil
	}
	d.standing.probe(best.key.tenant, true)
	best.held = best.within(most)
	d.leased++
	d.held += best.held
	return best, slices.Clone(best.entries[:best.held])
}

// first is the lane whose candidate came first, or nil without a candidate: of the first epoch that has one, beside the lanes of tenants that
// have blocks of an epoch before. What holds up one tenant holds up no other.
func (r *row) first(candidate func(*lane) *entry) *lane {
	r.settle()
	var before map[uint32]bool // tenants that have
	for i, g := range r.groups {
		best := g.oldest(func(l *lane) *entry {
			if before[l.key.tenant] {
				return nil
			}
			return candidate(l)
		})
		if best != nil || i == len(r.groups)-1 {
			return best
		}
		if before == nil {
			before = map[uint32]bool{}
		}
		for _, l := range g.lanes {
			before[l.key.tenant] = true
		}
	}
	return nil
}

// within is how many of a lane's blocks go together: at least the first.
func (l *lane) within(most Bound) int {
	n, samples, bytes := 0, 0, 0
	for _, e := range l.entries {
		samples += int(e.samples + e.histograms)
		bytes += int(e.size) - entryOverhead
		if n > 0 && (samples > most.Samples || bytes > most.Bytes || e.version != l.entries[0].version) {
			break
		}
		n++
	}
	return n
}

// settle leaves epochs behind that are done.
func (r *row) settle() {
	isDone := func(g *group) bool { return len(g.lanes) == 0 }
	if slices.ContainsFunc(r.groups, isDone) {
		r.groups = slices.DeleteFunc(r.groups, isDone)
	}
}

// release ends the lease of a lane's entries: done takes them out of it, else they are the next to be leased again.
func (d *destination) release(l *lane, entries []*entry, done bool) {
	d.leased--
	if done {
		d.held -= l.held
		l.held = 0
		l.unread = time.Time{}
		for _, e := range entries {
			l.remove(0)
			d.removed(e)
		}
		l.of.leave(l)
	} else {
		d.shorten(l, entries, 0)
	}
	d.standing.probe(l.key.tenant, false)
	// A finished epoch may free every lane of the next.
	d.wake.Broadcast()
}

// shorten gives back all but the first n entries of a lease.
func (d *destination) shorten(l *lane, entries []*entry, n int) {
	l.held = n
	d.held -= len(entries) - n
	l.tidy()
}

// dropOldest takes out the oldest block that is not leased, of those that may be dropped, or nil.
func (d *destination) dropOldest(may func(*entry) bool) *entry {
	for g := range d.groups() {
		l := g.oldest(func(l *lane) *entry {
			if e := l.entry(l.held); e != nil && may(e) {
				return e
			}
			return nil
		})
		if l == nil {
			continue
		}
		e := l.entries[l.held]
		l.remove(l.held)
		g.leave(l)
		d.removed(e)
		return e
	}
	return nil
}

// oldest is the block that has waited longest, leased or not.
func (d *destination) oldest() (first *entry) {
	for _, r := range []*row{&d.late, &d.fresh} {
		l := r.first((*lane).oldest)
		if l == nil {
			continue
		}
		if e := l.oldest(); first == nil || e.seq < first.seq {
			first = e
		}
	}
	return first
}

// groups are all there are, those first that came first.
func (d *destination) groups() iter.Seq[*group] {
	return func(yield func(*group) bool) {
		for _, r := range []*row{&d.late, &d.fresh} {
			r.settle()
			for _, g := range r.groups {
				if !yield(g) {
					return
				}
			}
		}
	}
}

// entries are all there are, in no order.
func (d *destination) entries() iter.Seq[*entry] {
	return func(yield func(*entry) bool) {
		for g := range d.groups() {
			for _, l := range g.lanes {
				for _, e := range l.entries {
					if !yield(e) {
						return
					}
				}
			}
		}
	}
}

func (d *destination) removed(e *entry) {
	d.bytes -= int64(e.size)
	d.items -= e.items()
	d.blocks--
	d.standing.charge(e.tenant, -int64(e.size))
}

// oldest is the lane whose candidate came first, or nil without a candidate.
func (g *group) oldest(candidate func(*lane) *entry) *lane {
	var best *lane
	var first *entry
	for _, l := range g.lanes {
		if e := candidate(l); e != nil && (first == nil || e.seq < first.seq) {
			best, first = l, e
		}
	}
	return best
}

// oldest is the block that has waited longest: what came back late is behind what is out.
func (l *lane) oldest() *entry {
	first, next := l.entry(0), l.entry(l.held)
	if next != nil && next.seq < first.seq {
		return next
	}
	return first
}

func (l *lane) entry(i int) *entry {
	if i < len(l.entries) {
		return l.entries[i]
	}
	return nil
}

// remove takes out the entry i, before which there are none but leased ones.
func (l *lane) remove(i int) {
	copy(l.entries[1:i+1], l.entries[:i])
	l.entries[0] = nil
	l.entries = l.entries[1:]
}
