// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package queue

import (
	"context"
	"errors"
	"slices"
	"time"

	"go.opentelemetry.io/collector/extension/xextension/storage"

	"github.com/godwit-otel/godwit/exporter/remotewriteexporter/internal/block"
)

// Push queues blocks for every destination, all or none of them. It returns once they are stored, if there is a
// storage. It never waits for room: with Block, the sender of data does that, in WaitRoom. The fate reports what
// becomes of them in memory; with a storage it must be nil.
func (q *Queue) Push(ctx context.Context, epoch uint32, blocks []block.Block, fate *Fate) error {
	return q.PushTo(ctx, epoch, blocks, nil, fate)
}

// PushTo is Push for blocks that are each for one destination, of at most MaxParts: to has their numbers, or All.
func (q *Queue) PushTo(ctx context.Context, epoch uint32, blocks []block.Block, to []int, fate *Fate) error {
	q.mu.Lock()
	if q.closed {
		q.mu.Unlock()
		return ErrClosed
	}
	if q.tenants.areMany() {
		q.forgetTenants()
	}
	now := time.Now()
	entries := make([]*entry, 0, len(blocks))
	for i := range blocks {
		e := newEntry(q.nextSeq+uint64(i), epoch, now, blocks[i])
		e.block.Hold()
		e.tenant, e.block.fate = q.tenants.number(blocks[i].Tenant), fate
		fate.expect(blocks[i].Tenant)
		if to != nil && to[i] != All {
			e.only = uint8(to[i] + 1)
			if q.apart(to[i]) {
				e.done = copied
			}
		} else {
			for d, name := range q.cfg.Destinations {
				if q.apart(d) {
					e.done = append(e.done, name)
				}
			}
		}
		e.marked = q.disk != nil && e.hasMark()
		entries = append(entries, e)
	}
	q.mu.Unlock()

	if err := q.store(ctx, entries); err != nil {
		return err
	}
	var finished []*entry
	q.mu.Lock()
	q.nextSeq += uint64(len(entries))
	for _, e := range entries {
		finished = q.insert(e, finished)
	}
	q.mu.Unlock()
	q.forget(finished)
	return nil
}

// forgetTenants forgets the names of tenants that have nothing queued, and were not served lately; the caller holds mu.
func (q *Queue) forgetTenants() {
	q.tenants.forget(func(n uint32, before time.Time) bool {
		if slices.ContainsFunc(q.destinations, func(d *destination) bool { return !d.tenantStates.isIdle(n, before) }) {
			return false
		}
		for _, d := range q.destinations {
			delete(d.tenantStates.served, n)
		}
		return true
	})
}

func (q *Queue) apart(destination int) bool { return q.cfg.Apart != nil && q.cfg.Apart[destination] }

// store writes entries. If the storage is full, it drops the oldest blocks that only destinations whose policy allows
// it wait for: several of them if the storage frees space by whole files.
func (q *Queue) store(ctx context.Context, entries []*entry) error {
	if q.disk == nil {
		return nil
	}
	room, dropped := sizeOf(entries), int64(0)
	for {
		q.mu.Lock()
		first := q.firstSeq()
		q.mu.Unlock()
		q.forget(nil) // deletions first, since they free space
		err := q.disk.append(ctx, first, entries, q.cfg.Destinations)
		if err == nil || !errors.Is(err, storage.ErrStorageFull) {
			return err
		}
		q.mu.Lock()
		var finished []*entry
		for i, d := range q.destinations {
			if d.policy.OnFull == DropOldest {
				finished = q.dropOldest(i, room, q.mayDrop, finished)
			}
		}
		q.mu.Unlock()
		dropped += sizeOf(finished)
		if len(finished) == 0 || !q.forget(finished) && (!q.disk.frees || dropped > mostDropped) { // dropping more would not help
			return err
		}
		if q.disk.frees {
			room *= 2
		}
	}
}

// insert adds e to every destination's queue and to finished the entries that nobody waits for any more.
func (q *Queue) insert(e *entry, finished []*entry) []*entry {
	leftOut := false
	for i, d := range q.destinations {
		if !q.isFor(e, i) {
			continue
		}
		d.taken += e.items()
		if over := int64(e.size) - d.room(e.tenant); over > 0 && d.blocks > 0 {
			policy := d.policy.OnFull
			if policy == DropOldest && d.tenantStates.hasNoPlace(e.tenant) {
				policy = DropNewest // one more tenant must not push out older data
			}
			switch policy {
			case DropOldest:
				if q.cfg.Tenants > 0 { // dropping its own data counts twice: that is free, and no longer the tenant's
					finished = q.dropOldest(i, (over+1)/2, func(old *entry) bool { return old.tenant == e.tenant }, finished)
					over = d.bytes + int64(e.size) - d.policy.Size
				}
				finished = q.dropOldest(i, over, anyBlock, finished)
			case DropNewest:
				d.refused, leftOut = int64(e.size), true
				e.done = append(e.done, q.cfg.Destinations[i])
				e.lost(errFull)
				q.cfg.Dropped(i, ReasonFull, e.known().Header)
				continue
			case Block:
			}
		}
		e.waiting++
		d.push(e)
	}
	if e.waiting == 0 {
		q.finished(e)
		return append(finished, e)
	}
	if q.disk != nil {
		q.retain(e)
		if leftOut { // nor may it come back after the next start
			finished = append(finished, e)
		}
	}
	return finished
}

// retain keeps a stored body in memory, too, if there is room for it; the caller holds mu.
func (q *Queue) retain(e *entry) {
	if size := int64(len(e.block.Body())); q.retained+size <= maxRetained {
		e.kept = true
		q.retained += size
	} else {
		e.block = nil
	}
}

func anyBlock(*entry) bool { return true }

// mayDrop reports whether all destinations that wait for a block may lose it: otherwise dropping it for one of them frees
// nothing.
func (q *Queue) mayDrop(e *entry) bool {
	for i, d := range q.destinations {
		if d.policy.OnFull != DropOldest && q.isFor(e, i) {
			return false
		}
	}
	return true
}

// dropOldest frees the given number of bytes in a destination's queue, as far as blocks that are not leased allow.
func (q *Queue) dropOldest(destination int, room int64, may func(*entry) bool, finished []*entry) []*entry {
	d := q.destinations[destination]
	for room > 0 {
		e := d.dropOldest(may)
		if e == nil {
			return finished
		}
		room -= int64(e.size)
		e.lost(errFull)
		q.cfg.Dropped(destination, ReasonFull, e.known().Header)
		finished = q.finish(destination, e, finished)
	}
	return finished
}
