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

// Legacy is what a queue in memory held when it was closed. The next may be in a storage.
type Legacy struct {
	destinations []string
	served       []string // of these, those that have had what was left for them
	entries      []*entry
}

// Without is what is left when some of the destinations have had theirs.
func (l *Legacy) Without(served []string) *Legacy {
	return &Legacy{destinations: l.destinations, served: served, entries: l.entries}
}

// Header sums up what is in it.
func (l *Legacy) Header() (h block.Header, blocks int) {
	for _, e := range l.entries {
		h.Samples += int(e.samples)
		h.Histograms += int(e.histograms)
		h.Exemplars += int(e.exemplars)
	}
	return h, len(l.entries)
}

// Destinations are those that it was for.
func (l *Legacy) Destinations() []string { return l.destinations }

// Leave drops what a queue holds in memory only, and returns it for one that is opened later. Call it between Stop and Close, when
// all leases have ended. What somebody waits for, and will bring again, is not left. It is nil if there is nothing.
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

// inheritAtOnce is how many bytes of what was left are stored together.
const inheritAtOnce = 4 << 20

// inherit takes up what another queue left, for the destinations that are still there. Nobody else uses the queue yet. What
// was left may be for several queues, so it is copied. What cannot be stored stays in memory, as it was.
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
		e := q.heirOf(old, l)
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

// heirOf is what a queue takes up of an entry of another: nobody may wait for it.
func (q *Queue) heirOf(old *entry, l *Legacy) *entry {
	e := *old
	e.waiting, e.done = 0, slices.Clone(old.done)
	if old.only != 0 {
		e.only = 0
		q.adopt(&e, l.destinations[old.only-1])
	}
	adopted := old.only != 0 && e.only == 0
	e.block = &held{Block: old.block.Block}
	e.block.Hold() // as the queue before still does, so that its memory is for none but these
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

// storeInherited takes up entries, which it stores if there is a storage.
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
