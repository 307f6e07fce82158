// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package queue

import (
	"slices"
	"sync"
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
}

// A group holds the blocks of one epoch, a lane for each shard.
type group struct {
	epoch uint32
	lanes []lane
}

// A lane holds the blocks of one shard in order. The first of them, while leased, are with a sender.
type lane struct {
	entries []*entry
	held    int
}

func (d *destination) push(e *entry) {
	if n := len(d.groups); n == 0 || d.groups[n-1].epoch != e.epoch {
		d.groups = append(d.groups, &group{epoch: e.epoch})
	}
	g := d.groups[len(d.groups)-1]
	for len(g.lanes) <= int(e.shard) {
		g.lanes = append(g.lanes, lane{})
	}
	l := &g.lanes[e.shard]
	l.entries = append(l.entries, e)
	d.bytes += int64(e.size)
	d.blocks++
	d.wake.Signal()
}

// lease takes the oldest block whose lane is free, and those that follow it there as far as the bound allows; nil without
// one.
func (d *destination) lease(most Bound) []*entry {
	d.settle()
	if len(d.groups) == 0 {
		return nil
	}
	best := d.groups[0].oldest(func(l *lane) *entry {
		if l.held > 0 {
			return nil
		}
		return l.at(0)
	})
	if best == nil {
		return nil
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
	for len(d.groups) > 0 && d.groups[0].empty() {
		d.groups[0] = nil
		d.groups = d.groups[1:]
	}
}

// release ends the lease of entries: done takes them out of their lane, else they are the next to be leased again.
func (d *destination) release(entries []*entry, done bool) {
	d.shorten(entries, 0)
	d.leased--
	if done {
		l := d.laneOf(entries)
		for _, e := range entries {
			l.remove(0)
			d.removed(e)
		}
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
func (d *destination) laneOf(entries []*entry) *lane { return &d.groups[0].lanes[entries[0].shard] }

// dropOldest takes out the oldest block that is not leased, or nil.
func (d *destination) dropOldest() *entry {
	d.settle()
	for _, g := range d.groups {
		l := g.oldest(func(l *lane) *entry { return l.at(l.held) })
		if l == nil {
			continue
		}
		e := l.entries[l.held]
		l.remove(l.held)
		d.removed(e)
		return e
	}
	return nil
}

// oldest is the block that has waited longest, leased or not.
func (d *destination) oldest() *entry {
	for _, g := range d.groups {
		if l := g.oldest(func(l *lane) *entry { return l.at(0) }); l != nil {
			return l.entries[0]
		}
	}
	return nil
}

func (d *destination) removed(e *entry) {
	d.bytes -= int64(e.size)
	d.blocks--
}

// oldest is the lane whose candidate came first, or nil without a candidate.
func (g *group) oldest(candidate func(*lane) *entry) *lane {
	var best *lane
	var first *entry
	for i := range g.lanes {
		if e := candidate(&g.lanes[i]); e != nil && (first == nil || e.seq < first.seq) {
			best, first = &g.lanes[i], e
		}
	}
	return best
}

func (g *group) empty() bool {
	for i := range g.lanes {
		if len(g.lanes[i].entries) > 0 {
			return false
		}
	}
	return true
}

func (l *lane) at(i int) *entry {
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
