// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

// Package queue keeps finished request bodies until each destination is done
// with them, in memory or in a storage extension.
//
// Blocks are immutable and shared: however many destinations there are, a body
// is kept once. Each destination has a queue of its own over them, bounded in
// bytes. A queue is a row of lanes, one per shard; a lane hands out its first
// block, or first few, and no more until these are done, which is what keeps a
// series in order. Blocks of a later epoch (another number of shards) wait until the earlier epoch is done.
//
//	destination ── epoch 4 ── lane 0: [leased] [ ] [ ]
//	            │          └─ lane 1: [ ]
//	            └─ epoch 5 ── lane 0: [ ]               waits for epoch 4
//
// With a storage, Push returns when the blocks are stored, what is done is
// deleted at once, and bodies are read back when their turn comes.
package queue

import (
	"context"
	"errors"
	"math"
	"sync"
	"time"

	"go.opentelemetry.io/collector/extension/xextension/storage"

	"github.com/godwit-otel/godwit/exporter/remotewriteexporter/internal/block"
)

// OnFull says what happens when a destination's queue has no room.
type OnFull uint8

// The policies there are.
const (
	Block      OnFull = iota // whoever brings data waits; see Queue.WaitRoom
	DropOldest               // the oldest blocks make room
	DropNewest               // the new block is left out
)

// Reasons for which the queue drops blocks.
const (
	ReasonFull     = "queue_full"
	ReasonAge      = "max_age"
	ReasonCorrupt  = "corrupt"
	ReasonShutdown = "shutdown"
)

// ErrClosed is returned once the queue is closed.
var ErrClosed = errors.New("the queue is closed")

var errFull = errors.New("the queue dropped the data for want of room")

const (
	// MaxParts is how many destinations there may be for PushTo.
	MaxParts = math.MaxUint8
	// All stands for every destination.
	All = -1
)

const (
	// entryOverhead is what a queued block costs besides its body. Counting it bounds the number of tiny blocks.
	entryOverhead = 256
	// maxRetained bounds the stored bodies that are kept in memory too, so that a queue that keeps up is never
	// read back, and a long one takes no memory.
	maxRetained = 4 << 20
	// mostDropped bounds the blocks that are dropped for others where that makes no room: two files of a log, about.
	mostDropped = 16 << 20
)

// Config says what to keep and where.
type Config struct {
	// Policy is that of destinations which have none of their own.
	Policy

	// Destinations identify the queues, the same after a restart.
	Destinations []string
	// Own are policies of the destinations, in their order; nil gives none a policy of its own.
	Own []Policy
	// Apart says which destinations have none of what is for all, but copies of their own; nil is none of them.
	Apart []bool
	// Tenants says that blocks are of several tenants, each with a share of the queue, and how many there may be that have blocks for a
	// destination but are not served; 0 is of none.
	Tenants int
	// Senders is how many may ask for blocks of a destination at a time; 0 is not known. Tenants that the destination does not serve keep no
	// more than half of them.
	Senders int
	// Batches bounds the batches of the pipeline that have no fate yet, besides; 0 does not.
	Batches int64
	// Legacy is what earlier queues in memory left.
	Legacy []*Legacy
	// Storage keeps the blocks; nil keeps them in memory.
	Storage storage.Client
	// Dropped is told of each block that is dropped. It must not call the queue.
	// Of a corrupt one the header is what it still tells, or zero.
	Dropped func(destination int, reason string, h block.Header)
	// Lost is told of blocks that damage of the storage left nothing of, where that knows how many: of no fewer. It must not call the
	// queue.
	Lost func(blocks int)
	// StorageFailed is told of each failure to read or delete what is stored. It must not call the queue.
	StorageFailed func(error)
}

// A Policy says how far a destination may be behind, and what becomes of its data then.
type Policy struct {
	// Size bounds the queue, in bytes of bodies and some overhead.
	Size int64
	// OnFull is what happens when it is full.
	OnFull OnFull
	// FreshFor is how long a block may wait before those that came later go first; 0 is for ever. What waits longer goes in its
	// own order, when nothing else can.
	FreshFor time.Duration
	// MaxAge is how long a block may wait; 0 is for ever.
	MaxAge time.Duration
}

// Queue is safe for concurrent use, but for Push, which one goroutine calls.
type Queue struct {
	cfg  Config
	disk *disk // nil in memory

	mu           sync.Mutex
	destinations []*destination
	tenants      map[string]uint32 // numbers
	nextTenant   uint32
	mostTenants  int       // so many names are kept before those are looked for that have nothing queued
	forgot       time.Time // when that was
	batches      int64     // of the pipeline, that have no fate yet
	retained     int64     // bytes of stored bodies that are in memory too
	nextSeq      uint64
	unstored     map[uint64]struct{} // blocks that are finished, of which the storage is about to be told
	changed      chan struct{}       // closed and replaced when room appears
	stopped      bool                // no more leases
	closed       bool
}

// Open makes a queue and takes up what its storage holds.
func Open(ctx context.Context, cfg Config) (*Queue, error) {
	q := &Queue{
		cfg: cfg, changed: make(chan struct{}), tenants: map[string]uint32{}, mostTenants: minTenants, unstored: map[uint64]struct{}{},
	}
	for i := range cfg.Destinations {
		policy := cfg.Policy
		if cfg.Own != nil {
			policy = cfg.Own[i]
		}
		q.destinations = append(q.destinations, newDestination(sync.NewCond(&q.mu), policy, cfg.Senders))
	}
	if cfg.Storage == nil {
		for _, l := range cfg.Legacy {
			q.inherit(l)
		}
		return q, nil
	}
	q.disk = &disk{client: cfg.Storage}
	if f, ok := cfg.Storage.(interface{ FreesWithoutRoom() bool }); ok {
		q.disk.frees = f.FreesWithoutRoom()
	}
	if err := q.recover(ctx); err != nil {
		return nil, err
	}
	return q, nil
}

// Destinations identify the queues.
func (q *Queue) Destinations() []string { return q.cfg.Destinations }

// NextEpoch is an epoch after all that the queue holds.
func (q *Queue) NextEpoch() uint32 {
	q.mu.Lock()
	defer q.mu.Unlock()
	var next uint32
	for _, d := range q.destinations {
		for g := range d.groups() {
			next = max(next, g.epoch+1)
		}
	}
	return next
}

// Push queues blocks for every destination, all or none of them. It returns once they are stored, if there is a
// storage. It never waits for room: Block is a promise of whoever brings data, made in WaitRoom. The fate is what becomes of
// them in memory; with a storage it must be nil.
func (q *Queue) Push(ctx context.Context, epoch uint32, blocks []block.Block, fate *Fate) error {
	return q.PushTo(ctx, epoch, blocks, nil, fate)
}

// PushTo is Push of blocks each of which is for one destination, of MaxParts at most: to has their numbers, or All.
func (q *Queue) PushTo(ctx context.Context, epoch uint32, blocks []block.Block, to []int, fate *Fate) error {
	q.mu.Lock()
	if q.closed {
		q.mu.Unlock()
		return ErrClosed
	}
	if len(q.tenants) >= q.mostTenants {
		q.forgetTenants()
	}
	now := time.Now()
	entries := make([]*entry, 0, len(blocks))
	for i := range blocks {
		e := newEntry(q.nextSeq+uint64(i), epoch, now, blocks[i])
		e.block.Hold()
		e.tenant, e.block.fate = q.number(blocks[i].Tenant), fate
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

func (q *Queue) apart(destination int) bool { return q.cfg.Apart != nil && q.cfg.Apart[destination] }

// store writes entries. When the storage is full, the oldest blocks make room for them that wait only for destinations whose
// policy allows it: as many as it takes where room comes back by files, of which some have to be empty first.
func (q *Queue) store(ctx context.Context, entries []*entry) error {
	if q.disk == nil {
		return nil
	}
	room, dropped := sizeOf(entries), int64(0)
	for {
		q.mu.Lock()
		first := q.firstSeq()
		q.mu.Unlock()
		q.forget(nil) // deletions first: they make room
		err := q.disk.append(ctx, first, entries, q.cfg.Destinations)
		if err == nil || !errors.Is(err, storage.ErrStorageFull) {
			return err
		}
		q.mu.Lock()
		var finished []*entry
		for i, d := range q.destinations {
			if d.policy.OnFull == DropOldest {
				finished = q.dropOldest(i, room, q.mayGo, finished)
			}
		}
		q.mu.Unlock()
		dropped += sizeOf(finished)
		if len(finished) == 0 || !q.forget(finished) && (!q.disk.frees || dropped > mostDropped) { // to drop more would make no room
			return err
		}
		if q.disk.frees {
			room *= 2
		}
	}
}

// insert puts e into every destination's queue and adds to finished the entries that nobody waits for any more.
func (q *Queue) insert(e *entry, finished []*entry) []*entry {
	for i, d := range q.destinations {
		if !q.isFor(e, i) {
			continue
		}
		d.taken += e.items()
		if over := int64(e.size) - q.room(d, e.tenant); over > 0 && d.blocks > 0 {
			policy := d.policy.OnFull
			if policy == DropOldest && q.crowdedOut(d, e.tenant) {
				policy = DropNewest // nothing older makes room for one more tenant
			}
			switch policy {
			case DropOldest:
				if q.cfg.Tenants > 0 { // what it drops of its own makes room twice: it is free, and no longer the tenant's
					finished = q.dropOldest(i, (over+1)/2, func(old *entry) bool { return old.tenant == e.tenant }, finished)
					over = d.bytes + int64(e.size) - d.policy.Size
				}
				finished = q.dropOldest(i, over, anyBlock, finished)
			case DropNewest:
				d.refused = int64(e.size)
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
		if size := int64(len(e.block.Body())); q.retained+size <= maxRetained {
			e.kept = true
			q.retained += size
		} else {
			e.block = nil
		}
	}
	return finished
}

func anyBlock(*entry) bool { return true }

// mayGo tells whether all that wait for a block may lose it: else to drop it for one of them makes no room.
func (q *Queue) mayGo(e *entry) bool {
	for i, d := range q.destinations {
		if d.policy.OnFull != DropOldest && q.isFor(e, i) {
			return false
		}
	}
	return true
}

// dropOldest frees room bytes in a destination's queue, as far as blocks that are not leased allow.
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

// finish notes that a destination is done with e, which is no longer in its lane, or about to leave it.
func (q *Queue) finish(destination int, e *entry, finished []*entry) []*entry {
	e.waiting--
	e.done = append(e.done, q.cfg.Destinations[destination])
	q.roomChanged()
	if e.waiting == 0 {
		if e.kept {
			q.retained -= int64(len(e.block.Body()))
			e.kept = false
		}
		q.finished(e)
	}
	if e.waiting == 0 || q.disk != nil {
		return append(finished, e)
	}
	return finished
}

// finished notes that nobody waits for e any more. With a storage the block may be read back as long as that knows it.
func (q *Queue) finished(e *entry) {
	q.seal(e)
	q.noteFinished(e)
	if q.disk == nil {
		e.block.Free()
	}
}

// Stop ends every Next. Leases that are out go on.
func (q *Queue) Stop() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.stopped = true
	for _, d := range q.destinations {
		d.wake.Broadcast()
	}
}

// Close ends every Next and WaitRoom. All leases must have ended. Blocks in memory are dropped; those in a storage
// wait for the next Open.
func (q *Queue) Close(ctx context.Context) error {
	q.Stop()
	q.mu.Lock()
	if q.closed {
		q.mu.Unlock()
		return nil
	}
	q.closed = true
	for i, d := range q.destinations {
		if q.disk != nil {
			break
		}
		for e := d.dropOldest(anyBlock); e != nil; e = d.dropOldest(anyBlock) {
			q.cfg.Dropped(i, ReasonShutdown, e.known().Header)
			q.abandon(e)
		}
	}
	q.roomChanged()
	q.mu.Unlock()
	if q.disk == nil {
		return nil
	}
	q.forget(nil)
	return q.disk.client.Close(ctx)
}

// Stats is what a destination's queue holds at a moment.
type Stats struct {
	Bytes, Capacity int64
	Blocks          int
	Leased          int       // requests under way
	Waiting         int       // blocks that no sender has
	Items           int64     // samples and histograms in all blocks
	Oldest          time.Time // when the oldest block was queued; zero without one
}

// Stats reports on one destination.
func (q *Queue) Stats(destination int) Stats {
	q.mu.Lock()
	defer q.mu.Unlock()
	d := q.destinations[destination]
	s := Stats{Bytes: d.bytes, Capacity: d.policy.Size, Blocks: d.blocks, Leased: d.leased, Waiting: d.blocks - d.held, Items: d.items}
	if e := d.oldest(); e != nil {
		s.Oldest = e.queued
	}
	return s
}

// Taken is how many samples and histograms were ever queued for a destination.
func (q *Queue) Taken(destination int) int64 {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.destinations[destination].taken
}

// firstSeq is the lowest sequence number that a destination waits for, or that the storage has yet to be told is done.
func (q *Queue) firstSeq() uint64 {
	first := q.nextSeq
	for seq := range q.unstored {
		first = min(first, seq)
	}
	for _, d := range q.destinations {
		if e := d.oldest(); e != nil {
			first = min(first, e.seq)
		}
	}
	return first
}
