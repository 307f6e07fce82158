// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

// Package queue keeps finished request bodies until each destination is done
// with them, in memory or in a storage extension.
//
// Blocks are immutable and shared: however many destinations there are, a body
// is kept once. Each destination has its own queue of references, limited in
// bytes. A queue is a row of lanes, one per shard. A lane leases its first
// block, or first few, and no more until these are done, which keeps a
// series in order. If the number of shards changes, a new epoch begins: a tenant's blocks of a later epoch wait until its earlier epoch is done.
//
//	destination ── epoch 4 ── lane 0: [leased] [ ] [ ]
//	            │          └─ lane 1: [ ]
//	            └─ epoch 5 ── lane 0: [ ]               waits for epoch 4
//
// With a storage, Push returns when the blocks are stored. Delivered blocks are
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

// OnFull is the policy of a destination's queue without room.
type OnFull uint8

// The policies.
const (
	Block      OnFull = iota // the sender of data waits; see Queue.WaitRoom
	DropOldest               // the oldest blocks are dropped
	DropNewest               // the new block is dropped
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

var errFull = errors.New("the queue dropped the data because it was full")

const (
	// MaxParts is how many destinations there may be for PushTo.
	MaxParts = math.MaxUint8
	// All stands for every destination.
	All = -1
)

const (
	// entryOverhead is what a queued block takes besides its body. Counting it limits the number of tiny blocks.
	entryOverhead = 256
	// maxRetained limits the stored bodies that are also kept in memory, so that a queue that keeps up is never read
	// back, and a long one takes no memory.
	maxRetained = 4 << 20
	// mostDropped limits the blocks that are dropped for others where that frees space in steps only: about two files
	// of a log.
	mostDropped = 16 << 20
)

// Config says what to keep and where.
type Config struct {
	// Policy is for destinations that have none of their own.
	Policy

	// Destinations identify the queues, the same after a restart.
	Destinations []string
	// Own are policies of the destinations, in their order; nil gives none a policy of its own.
	Own []Policy
	// Apart says which destinations get copies of their own instead of what is for all; nil if none do.
	Apart []bool
	// Tenants says that blocks are of several tenants, each with a share of the queue, and how many may have blocks for
	// a destination without being served; 0 if there are no tenants.
	Tenants int
	// Senders is how many may ask for blocks of a destination at the same time; 0 if not known. Tenants that the
	// destination does not serve occupy at most half of them.
	Senders int
	// Batches also limits the batches of the pipeline without a result; 0 is no limit.
	Batches int64
	// Legacy is what earlier queues in memory left.
	Legacy []*Legacy
	// Storage keeps the blocks; nil keeps them in memory.
	Storage storage.Client
	// Dropped is called for each block that is dropped. It must not call the queue. For a corrupt block, the header is
	// what could be salvaged, or zero.
	Dropped func(destination int, reason string, h block.Header)
	// Lost is called with the number of blocks that a damaged storage has lost without a trace, as far as that is
	// known. It must not call the queue.
	Lost func(blocks int)
	// StorageFailed is called for each failure to read or delete what is stored. It must not call the queue.
	StorageFailed func(error)
}

// A Policy says how much a destination may have queued, and what happens to further data.
type Policy struct {
	// Size limits the queue, in bytes of bodies and some overhead.
	Size int64
	// OnFull is what happens when it is full.
	OnFull OnFull
	// FreshFor is how long a block may wait before later ones go first; 0 is for ever. Blocks that wait longer are sent
	// in their own order, when nothing else can be.
	FreshFor time.Duration
	// MaxAge is how long a block may wait; 0 is for ever.
	MaxAge time.Duration
}

// Queue is safe for concurrent use, except for Push, which only one goroutine may call.
type Queue struct {
	cfg  Config
	disk *disk // nil in memory

	mu           sync.Mutex
	destinations []*destination
	tenants      tenants
	batches      openBatches
	retained     int64 // bytes of stored bodies that are also in memory
	nextSeq      uint64
	unstored     map[uint64]struct{} // finished blocks that are about to be deleted from the storage
	changed      chan struct{}       // closed and replaced when there is new room
	stopped      bool                // no more leases
	closed       bool
}

// Open makes a queue and recovers what its storage has.
func Open(ctx context.Context, cfg Config) (*Queue, error) {
	q := &Queue{
		cfg: cfg, changed: make(chan struct{}), tenants: newTenants(), batches: openBatches{most: cfg.Batches}, unstored: map[uint64]struct{}{},
	}
	for i := range cfg.Destinations {
		policy := cfg.Policy
		if cfg.Own != nil {
			policy = cfg.Own[i]
		}
		q.destinations = append(q.destinations, newDestination(sync.NewCond(&q.mu), policy, newTenantStates(cfg.Tenants, cfg.Senders)))
	}
	if cfg.Storage != nil {
		q.disk = &disk{client: cfg.Storage}
		if f, ok := cfg.Storage.(interface{ FreesWithoutRoom() bool }); ok {
			q.disk.frees = f.FreesWithoutRoom()
		}
		if err := q.recover(ctx); err != nil {
			return nil, err
		}
	}
	for _, l := range cfg.Legacy {
		q.inherit(ctx, l)
	}
	return q, nil
}

// Destinations identify the queues.
func (q *Queue) Destinations() []string { return q.cfg.Destinations }

// NextEpoch returns an epoch after all that are queued.
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

// finish records that a destination is done with e, which has left its lane, or is about to.
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

// finished records that nobody waits for e any more. With a storage the block may be read again until it is deleted
// there.
func (q *Queue) finished(e *entry) {
	q.seal(e)
	q.noteFinished(e)
	if q.disk == nil {
		e.block.Free()
	}
}

// Stop ends every Next. Leases stay valid.
func (q *Queue) Stop() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.stopped = true
	for _, d := range q.destinations {
		d.wake.Broadcast()
	}
}

// Close ends every Next and WaitRoom. All leases must have ended. Blocks in memory are dropped; stored ones wait for
// the next Open.
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

// firstSeq is the lowest sequence number that a destination waits for, or that must still be deleted from the storage.
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
