// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package queue

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"github.com/godwit-otel/godwit/exporter/remotewriteexporter/internal/block"
)

// Legacy is what a queue in memory had when it was closed. The next queue may be in a storage.
type Legacy struct {
	destinations []string
	served       []string // those of destinations that have received it
	entries      []*entry
}

// Without returns what is left when some of the destinations have received their blocks.
func (l *Legacy) Without(served []string) *Legacy {
	return &Legacy{destinations: l.destinations, served: served, entries: l.entries}
}

// Header sums up the blocks.
func (l *Legacy) Header() (h block.Header, blocks int) {
	for _, e := range l.entries {
		h.Samples += int(e.samples)
		h.Histograms += int(e.histograms)
		h.Exemplars += int(e.exemplars)
	}
	return h, len(l.entries)
}

// Destinations are those that the blocks are for.
func (l *Legacy) Destinations() []string { return l.destinations }

// Leave removes what a queue has in memory only, and returns it for a queue that is opened later. Call it between Stop
// and Close, when all leases have ended. It leaves out blocks whose sender waits for the result and will send them
// again. It returns nil if there is nothing.
func (q *Queue) Leave() *Legacy {
	q.mu.Lock()
	defer q.mu.Unlock()
	l := &Legacy{destinations: q.cfg.Destinations}
	seen := map[*entry]bool{}
	leave := func(destination int, e *entry) {
		q.cfg.Dropped(destination, ReasonShutdown, e.known().Header)
		if f := e.fate(); !seen[e] && (f == nil || !f.Awaited) {
			l.entries = append(l.entries, e)
		}
		seen[e] = true
	}
	for i, d := range q.destinations {
		if q.disk != nil {
			for e := range d.entries() {
				if e.inMemoryOnly() {
					leave(i, e)
				}
			}
			continue
		}
		for e := d.dropOldest(anyBlock); e != nil; e = d.dropOldest(anyBlock) {
			leave(i, e)
			q.abandon(e)
		}
	}
	q.roomChanged()
	if len(l.entries) == 0 {
		return nil
	}
	slices.SortFunc(l.entries, func(a, b *entry) int { return cmp.Compare(a.seq, b.seq) })
	return l
}

// inheritAtOnce is how many inherited bytes are stored together.
const inheritAtOnce = 4 << 20

// inherit adds what another queue left, for those destinations that still exist. Nobody else uses the queue yet.
// Several queues may inherit the same blocks, so they are copied. Those that cannot be stored stay in memory.
func (q *Queue) inherit(ctx context.Context, l *Legacy) {
	epoch := q.NextEpoch()
	var some []*entry
	take := func() {
		if err := q.storeInherited(ctx, some); err != nil {
			q.cfg.StorageFailed(fmt.Errorf("cannot store what was in memory before a reload, where it stays: %w", err))
		}
		some = nil
	}
	for _, old := range l.entries {
		e := q.inherited(old, l)
		if e.waiting == 0 {
			continue
		}
		e.seq, e.epoch = q.nextSeq+uint64(len(some)), old.epoch+epoch
		if some = append(some, e); sizeOf(some) >= inheritAtOnce {
			take()
		}
	}
	take()
}

// inherited returns the entry for one of another queue: without a fate.
func (q *Queue) inherited(old *entry, l *Legacy) *entry {
	e := *old
	e.waiting, e.done = 0, slices.Clone(old.done)
	if old.only != 0 {
		e.only = 0
		q.adopt(&e, l.destinations[old.only-1])
	}
	adopted := old.only != 0 && e.only == 0
	e.block = &held{Block: old.block.Block}
	e.block.Hold() // the other queue holds it too, so its memory stays valid
	e.tenant = q.tenants.number(e.block.Tenant)
	for i, name := range q.cfg.Destinations {
		switch {
		case !q.isFor(&e, i):
		case slices.Contains(l.served, name):
			e.done = append(e.done, name)
		case adopted || slices.Contains(l.destinations, name):
			e.waiting++
		default: // it is new
			e.done = append(e.done, name)
		}
	}
	return &e
}

// storeInherited adds entries, after storing them if there is a storage.
func (q *Queue) storeInherited(ctx context.Context, entries []*entry) error {
	if len(entries) == 0 {
		return nil
	}
	for _, e := range entries {
		e.marked = q.disk != nil && e.hasMark()
	}
	err := q.store(ctx, entries)
	q.mu.Lock()
	defer q.mu.Unlock()
	q.nextSeq += uint64(len(entries))
	for _, e := range entries {
		for i, d := range q.destinations {
			if q.isFor(e, i) {
				d.push(e)
			}
		}
		if q.disk != nil && err == nil {
			q.retain(e)
		}
	}
	return err
}
