// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package queue

import (
	"context"
	"fmt"
	"time"

	"go.opentelemetry.io/collector/extension/xextension/storage"

	"github.com/godwit-otel/godwit/exporter/remotewriteexporter/internal/block"
)

// recoverBatch is how many blocks are read at a time: few enough to hold, many enough to be quick.
const recoverBatch = 16

// farthest is how far behind the last block that the index names one may be of which it does not know, since it is damaged itself. A key
// may be damaged, too.
const farthest = 1 << 16

// A ledger is a storage that knows how many blocks it should have.
type ledger interface {
	// Promised is how many there were, or fewer, when it was last written to. It is false unless some of it is damaged.
	Promised() (blocks int, ok bool)
}

// recovered is what was found.
type recovered struct {
	sound   int
	corrupt []*entry
}

// recover takes up what an earlier process stored. Nobody else uses the queue yet.
func (q *Queue) recover(ctx context.Context) error {
	raw, err := q.disk.client.Get(ctx, indexKey)
	if err != nil {
		return fmt.Errorf("cannot read the index of the stored queue: %w", err)
	}
	promised, isDamaged := 0, false
	if l, ok := q.disk.client.(ledger); ok {
		promised, isDamaged = l.Promised()
	}
	if raw == nil && !isDamaged {
		return nil
	}
	first, next, err := parseIndex(raw)
	isStale := err != nil || isDamaged
	switch {
	case err != nil:
		if !isDamaged {
			q.cfg.Dropped(0, ReasonCorrupt, block.Header{})
		}
		if first, next, err = q.rebuildIndex(ctx); err != nil {
			return err
		}
	case isDamaged:
		if next, err = q.nextIn(ctx, next); err != nil {
			return err
		}
	}
	q.nextSeq = next
	if err := q.sweep(ctx, first, next); err != nil {
		q.cfg.StorageFailed(fmt.Errorf("cannot delete what is left over in the stored queue: %w", err)) // it takes room, no more
	}
	var r recovered
	for seq := first; seq < next; {
		n := min(next-seq, recoverBatch)
		if err := q.recoverBlocks(ctx, seq, n, &r); err != nil {
			return err
		}
		seq += n
	}
	if !isDamaged {
		promised = r.sound + len(r.corrupt)
	}
	if lost := q.countLost(&r, promised); lost > 0 {
		q.cfg.Lost(lost)
	}
	if isStale { // what is lost is so once
		if err := q.disk.client.Set(ctx, indexKey, indexOf(first, next)); err != nil {
			q.cfg.StorageFailed(fmt.Errorf("cannot write the index of the stored queue: %w", err))
		}
	}
	return nil
}

// countLost counts blocks that are damaged for each destination that waits for them, and tells how many more are lost. If more are
// damaged than are missing some were done with, and damage took what said so: which, nobody knows.
func (q *Queue) countLost(r *recovered, promised int) (more int) {
	missing := max(0, promised-r.sound)
	if len(r.corrupt) > missing {
		return missing
	}
	for _, e := range r.corrupt {
		for i := range q.destinations {
			if q.isFor(e, i) {
				q.cfg.Dropped(i, ReasonCorrupt, e.known().Header)
			}
		}
	}
	return missing - len(r.corrupt)
}

// nextIn is the number after the last block, where what says so may be of an earlier time.
func (q *Queue) nextIn(ctx context.Context, said uint64) (uint64, error) {
	walker, ok := q.disk.client.(storage.Walker)
	if !ok {
		return said, nil
	}
	next := said
	err := walker.Walk(ctx, func(k string, _ []byte) ([]*storage.Operation, error) {
		if seq, ok := parseKey(BlockPrefix, k); ok && seq >= next && seq-said < farthest {
			next = seq + 1
		}
		return nil, nil
	})
	if err != nil {
		return 0, fmt.Errorf("cannot list the keys of the stored queue: %w", err)
	}
	return next, nil
}

// rebuildIndex finds the blocks of a queue whose index is lost. Where the storage cannot list its keys they stay lost.
func (q *Queue) rebuildIndex(ctx context.Context) (first, next uint64, err error) {
	walker, ok := q.disk.client.(storage.Walker)
	if !ok {
		return 0, 0, nil
	}
	if first, next, err = span(ctx, walker); err != nil {
		return 0, 0, fmt.Errorf("cannot list the keys of the stored queue: %w", err)
	}
	return first, next, nil
}

// span is the first and next number of the blocks that a storage has.
func span(ctx context.Context, walker storage.Walker) (first, next uint64, err error) {
	err = walker.Walk(ctx, func(k string, _ []byte) ([]*storage.Operation, error) {
		first, next = widen(first, next, k)
		return nil, nil
	})
	return first, next, err
}

// widen makes room in a span for a block, if that is what a key is of.
func widen(first, next uint64, k string) (_, _ uint64) {
	seq, ok := parseKey(BlockPrefix, k)
	switch {
	case !ok:
		return first, next
	case next == 0:
		return seq, seq + 1
	}
	return min(first, seq), max(next, seq+1)
}

// recoverBlocks takes up those of so many numbers that are there.
func (q *Queue) recoverBlocks(ctx context.Context, first, n uint64, r *recovered) error {
	ops := make([]*storage.Operation, 0, 2*n)
	for seq := first; seq < first+n; seq++ {
		ops = append(ops, storage.GetOperation(key(BlockPrefix, seq)), storage.GetOperation(key(donePrefix, seq)))
	}
	if err := q.disk.client.Batch(ctx, ops...); err != nil {
		return fmt.Errorf("cannot read blocks %d to %d from the storage: %w", first, first+n-1, err)
	}
	var finished []*entry
	for i := range n {
		stored, done := ops[2*i].Value, ops[2*i+1].Value
		if stored == nil {
			if done != nil { // whose block was deleted, but not the mark
				finished = append(finished, &entry{seq: first + i, marked: true})
			}
			continue
		}
		e, err := parseEntry(stored)
		if err != nil {
			e = newEntry(0, 0, time.Time{}, block.New(salvage(stored), nil))
		}
		e.seq = first + i
		e.tenant = q.number(e.known().Tenant)
		var only string
		if e.done, only = parseDone(done); only != "" {
			q.adopt(e, only)
		}
		e.marked = done != nil
		q.disk.held += int64(e.size)
		if err != nil {
			r.corrupt = append(r.corrupt, e)
			finished = append(finished, e)
			continue
		}
		r.sound++
		e.block = nil
		for i, d := range q.destinations {
			if q.isFor(e, i) {
				e.waiting++
				d.push(e)
			}
		}
		if e.waiting == 0 {
			finished = append(finished, e)
		}
	}
	q.forget(finished)
	return nil
}
