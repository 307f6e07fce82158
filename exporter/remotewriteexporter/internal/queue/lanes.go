// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package queue

import (
	"slices"
	"sync"
	"time"
)

// A destination is one endpoint's view of the blocks. Queue.mu guards it.
type destination struct {
	wake   *sync.Cond
	groups []*group // by epoch; blocks are leased from the first only
	bytes  int64
	blocks int
	leased int // lanes
	held   int // blocks with senders
	// refused is the size of the block that was last left out for want of room.
	refused int64
	shares  map[uint32]int64  // bytes of each tenant that has blocks
	paused  map[uint32]*pause // of tenants that the destination would not serve
}

// A group holds the blocks of one epoch, in a lane for each shard of each tenant, while there are blocks in it.
type group struct {
	epoch uint32
	lanes []*lane
	byKey map[laneKey]*lane
}

type laneKey struct {
	shard  uint16
	tenant uint32
}

// A lane holds the blocks of one shard and tenant in order. The first of them, while leased, are with a sender.
type lane struct {
	key     laneKey
	at      int // in the lanes of the group
	entries []*entry
	held    int
}

func newDestination(wake *sync.Cond) *destination {
	return &destination{wake: wake, shares: map[uint32]int64{}, paused: map[uint32]*pause{}}
}

func (d *destination) push(e *entry) {
	if n := len(d.groups); n == 0 || d.groups[n-1].epoch != e.epoch {
		d.groups = append(d.groups, &group{epoch: e.epoch, byKey: map[laneKey]*lane{}})
	}
	l := d.groups[len(d.groups)-1].lane(laneKey{e.shard, e.tenant})
	l.entries = append(l.entries, e)
	d.bytes += int64(e.size)
	d.shares[e.tenant] += int64(e.size)
	d.blocks++
	d.wake.Signal()
}

// lane finds or makes a lane.
func (g *group) lane(key laneKey) *lane {
	l := g.byKey[key]
	if l == nil {
		l = &lane{key: key, at: len(g.lanes)}
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
func (d *destination) lease(most Bound) []*entry {
	d.settle()
	if len(d.groups) == 0 {
		return nil
	}
	now := time.Now()
	best := d.groups[0].oldest(func(l *lane) *entry {
		if l.held > 0 || d.isPaused(l.key.tenant, now) {
			return nil
		}
		return l.entry(0)
	})
	if best == nil {
		return nil
	}
	if p := d.paused[best.key.tenant]; p != nil {
		p.probing = true
	}
	best.held = best.within(most)
	d.leased++
	d.held += best.held
	return slices.Clone(best.entries[:best.held])
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
func (d *destination) settle() {
	for len(d.groups) > 0 && len(d.groups[0].lanes) == 0 {
		d.groups[0] = nil
		d.groups = d.groups[1:]
	}
}

// release ends the lease of entries: done takes them out of their lane, else they are the next to be leased again.
func (d *destination) release(entries []*entry, done bool) {
	d.shorten(entries, 0)
	d.leased--
	tenant := entries[0].tenant
	if done {
		l := d.laneOf(entries)
		for _, e := range entries {
			l.remove(0)
			d.removed(e)
		}
		d.groups[0].leave(l)
		delete(d.paused, tenant) // it is served
	} else if p := d.paused[tenant]; p != nil {
		p.probing = false
	}
	// A finished epoch may free every lane of the next.
	d.wake.Broadcast()
}

// shorten gives back all but the first n entries of a lease.
func (d *destination) shorten(entries []*entry, n int) {
	d.laneOf(entries).held = n
	d.held -= len(entries) - n
}

// laneOf is the lane of leased entries: nothing behind the first group is ever leased.
func (d *destination) laneOf(entries []*entry) *lane {
	return d.groups[0].byKey[laneKey{entries[0].shard, entries[0].tenant}]
}

// dropOldest takes out the oldest block that is not leased, of those that may be dropped, or nil.
func (d *destination) dropOldest(of func(tenant uint32) bool) *entry {
	d.settle()
	for _, g := range d.groups {
		l := g.oldest(func(l *lane) *entry {
			if !of(l.key.tenant) {
				return nil
			}
			return l.entry(l.held)
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
func (d *destination) oldest() *entry {
	for _, g := range d.groups {
		if l := g.oldest(func(l *lane) *entry { return l.entry(0) }); l != nil {
			return l.entries[0]
		}
	}
	return nil
}

func (d *destination) removed(e *entry) {
	d.bytes -= int64(e.size)
	d.blocks--
	if d.shares[e.tenant] -= int64(e.size); d.shares[e.tenant] == 0 {
		delete(d.shares, e.tenant)
		delete(d.paused, e.tenant)
	}
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
