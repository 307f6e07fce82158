// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package queue

import (
	"iter"
	"slices"
	"sync"
	"time"
)

// A destination is the queue of one endpoint. Queue.mu guards it.
type destination struct {
	wake         *sync.Cond
	policy       Policy
	tenantStates tenantStates
	fresh,
	late row // blocks that have waited so long that fresh ones go first
	bytes  int64
	items  int64 // samples and histograms in the blocks
	taken  int64 // all that were ever queued
	blocks int
	leased int // leased lanes
	held   int // leased blocks
	// refused is the size of the last block that was dropped because there was no room.
	refused int64
}

// A row is blocks in the order of their epochs.
type row struct {
	groups []*group // by epoch; for each tenant, blocks are leased from its first group only
}

// A group has the blocks of one epoch, in one lane for each shard and tenant with blocks.
type group struct {
	epoch uint32
	lanes []*lane
	byKey map[laneKey]*lane
	// mayMix says that entries may be added while older ones may still come back.
	mayMix bool
}

type laneKey struct {
	shard  uint16
	tenant uint32
}

// A lane has the blocks of one shard and tenant in order. The first ones may be leased.
type lane struct {
	of      *group
	key     laneKey
	at      int // index in the lanes of the group
	entries []*entry
	held    int

	unread time.Time // since when its first block could not be read; zero if it could
	until  time.Time // when that is tried again
}

func newDestination(wake *sync.Cond, policy Policy, states tenantStates) *destination {
	return &destination{wake: wake, policy: policy, tenantStates: states}
}

func (d *destination) push(e *entry) {
	l := d.fresh.last(e.epoch).lane(laneKey{e.shard, e.tenant})
	l.entries = append(l.entries, e)
	d.bytes += int64(e.size)
	d.items += e.items()
	d.tenantStates.charge(e.tenant, int64(e.size))
	d.blocks++
	d.wake.Signal()
}

// last returns the group of an epoch, not before that of the last group; it makes it if needed.
func (r *row) last(epoch uint32) *group {
	if n := len(r.groups); n == 0 || r.groups[n-1].epoch != epoch {
		r.groups = append(r.groups, newGroup(epoch))
	}
	return r.groups[len(r.groups)-1]
}

func newGroup(epoch uint32) *group { return &group{epoch: epoch, byKey: map[laneKey]*lane{}} }

// lane returns the lane of a key, which it makes if needed.
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

// lease takes the oldest block whose lane is free, and those after it in the lane as far as the bound allows; nil if
// there is none.
func (d *destination) lease(most Bound) (*lane, []*entry) {
	now := time.Now()
	d.age(now)
	mayProbe := d.tenantStates.mayProbe()
	free := func(l *lane) *entry {
		if l.held > 0 || now.Before(l.until) || d.tenantStates.waits(l.key.tenant, now, mayProbe) {
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
	d.tenantStates.probe(best.key.tenant, true)
	best.held = best.within(most)
	d.leased++
	d.held += best.held
	return best, slices.Clone(best.entries[:best.held])
}

// first returns the lane whose candidate is the oldest, nil if there is none: from the first epoch with a candidate,
// without lanes of tenants that have blocks of an earlier epoch. What holds up one tenant holds up no other.
func (r *row) first(candidate func(*lane) *entry) *lane {
	r.settle()
	var before map[uint32]bool // tenants with blocks of earlier epochs
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

// within is how many of a lane's blocks are leased together: at least the first.
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

// settle drops epochs that are done.
func (r *row) settle() {
	isDone := func(g *group) bool { return len(g.lanes) == 0 }
	if slices.ContainsFunc(r.groups, isDone) {
		r.groups = slices.DeleteFunc(r.groups, isDone)
	}
}

// release ends the lease of a lane's entries: if done, they leave the lane, else they may be leased again.
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
	d.tenantStates.probe(l.key.tenant, false)
	// A finished epoch may free every lane of the next.
	d.wake.Broadcast()
}

// shorten gives back all entries of a lease except the first n.
func (d *destination) shorten(l *lane, entries []*entry, n int) {
	l.held = n
	d.held -= len(entries) - n
	l.tidy()
}

// dropOldest removes the oldest block that is not leased and may be dropped, or returns nil.
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

// groups are all groups, the oldest first.
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

// entries are all entries, in no order.
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
	d.tenantStates.charge(e.tenant, -int64(e.size))
}

// oldest returns the lane whose candidate is the oldest, nil if there is none.
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

// oldest is the block that has waited longest: one that came back late is behind those leased.
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

// remove removes entry i; all before it are leased.
func (l *lane) remove(i int) {
	copy(l.entries[1:i+1], l.entries[:i])
	l.entries[0] = nil
	l.entries = l.entries[1:]
}
