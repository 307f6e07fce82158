// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package queue

import "sync"

// A destination is one endpoint's view of the blocks. Queue.mu guards it.
type destination struct {
	wake   *sync.Cond
	groups []*group // by epoch; blocks are leased from the first only
	bytes  int64
	blocks int
	leased int
	// refused is the size of the block that was last left out for want of room.
	refused int64
}

// A group holds the blocks of one epoch, a lane for each shard.
type group struct {
	epoch uint32
	lanes []lane
}

// A lane holds the blocks of one shard in order. While leased, its first block is with a sender.
type lane struct {
	entries []*entry
	leased  bool
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

// lease takes the oldest block whose lane is free, or nil.
func (d *destination) lease() *entry {
	d.settle()
	if len(d.groups) == 0 {
		return nil
	}
	best := d.groups[0].oldest(func(l *lane) *entry {
		if l.leased {
			return nil
		}
		return l.at(0)
	})
	if best == nil {
		return nil
	}
	best.leased = true
	d.leased++
	return best.entries[0]
}

// settle leaves epochs behind that are done.
func (d *destination) settle() {
	for len(d.groups) > 0 && d.groups[0].empty() {
		d.groups[0] = nil
		d.groups = d.groups[1:]
	}
}

// release ends e's lease: done takes it out of its lane, else it is the next to be leased again.
func (d *destination) release(e *entry, done bool) {
	g := d.groups[0] // nothing behind the first group is ever leased
	l := &g.lanes[e.shard]
	l.leased = false
	d.leased--
	if done {
		l.remove(0)
		d.removed(e)
	}
	// A finished epoch may free every lane of the next.
	d.wake.Broadcast()
}

// dropOldest takes out the oldest block that is not leased, or nil.
func (d *destination) dropOldest() *entry {
	d.settle()
	for _, g := range d.groups {
		l := g.oldest(func(l *lane) *entry { return l.at(l.held()) })
		if l == nil {
			continue
		}
		e := l.entries[l.held()]
		l.remove(l.held())
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

// held is the number of entries that are with a sender.
func (l *lane) held() int {
	if l.leased {
		return 1
	}
	return 0
}

func (l *lane) at(i int) *entry {
	if i < len(l.entries) {
		return l.entries[i]
	}
	return nil
}

// remove takes out the first entry, or the second when the first is leased.
func (l *lane) remove(i int) {
	if i == 1 {
		l.entries[1] = l.entries[0]
	}
	l.entries[0] = nil
	l.entries = l.entries[1:]
}
