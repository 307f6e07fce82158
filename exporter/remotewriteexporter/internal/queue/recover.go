// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package queue

import (
	"context"
	"fmt"
	"iter"
	"slices"
	"time"

	"go.opentelemetry.io/collector/extension/xextension/storage"

	"github.com/godwit-otel/godwit/exporter/remotewriteexporter/internal/block"
)

// recoverBatch is how many blocks are read at a time: few enough for the memory, many enough to be fast.
const recoverBatch = 16

// recover adds what an earlier process stored. Nobody else uses the queue yet.
func (q *Queue) recover(ctx context.Context) error {
	raw, err := q.disk.client.Get(ctx, indexKey)
	if err != nil {
		return fmt.Errorf("cannot read the index of the stored queue: %w", err)
	}
	l, _ := q.disk.client.(blockCounter)
	isDamaged := l != nil && l.IsDamaged()
	if raw == nil && !isDamaged {
		return nil
	}
	found, err := list(ctx, q.disk.client)
	if err != nil {
		return err
	}
	first, next, err := parseIndex(raw)
	isStale := err != nil || isDamaged
	if err != nil && !isDamaged {
		q.cfg.Dropped(0, ReasonCorrupt, block.Header{})
	}
	if found != nil { // else blocks that the index does not cover stay lost
		from, to := found.span()
		if err != nil {
			first = from
		}
		isStale = isStale || to > next // an old index, as in a file that two processes wrote
		next = max(next, to)
	}
	q.nextSeq = next
	if found != nil {
		if err := q.sweep(ctx, found.outside(first, next)); err != nil {
			q.cfg.StorageFailed(fmt.Errorf("cannot delete what is left over in the stored queue: %w", err)) // it takes space, nothing else
		}
	}
	var r recovered
	for numbers := range batches(found, first, next) {
		if err := q.recoverBlocks(ctx, numbers, &r); err != nil {
			return err
		}
	}
	if lost := q.countLost(&r, l); lost > 0 {
		q.cfg.Lost(lost)
	}
	if isStale { // report losses only once
		if err := q.disk.client.Set(ctx, indexKey, indexOf(first, next)); err != nil {
			q.cfg.StorageFailed(fmt.Errorf("cannot write the index of the stored queue: %w", err))
		}
	}
	return nil
}

// batches returns the block numbers of a span, a few at a time: all numbers if the existing ones are not known.
func batches(found *listing, first, next uint64) iter.Seq[[]uint64] {
	if found != nil {
		return slices.Chunk(found.within(first, next), recoverBatch)
	}
	return func(yield func([]uint64) bool) {
		for seq := first; seq < next; {
			var numbers []uint64
			for ; seq < next && len(numbers) < recoverBatch; seq++ {
				numbers = append(numbers, seq)
			}
			if !yield(numbers) {
				return
			}
		}
	}
}

// recoverBlocks adds those of the numbered blocks that exist.
func (q *Queue) recoverBlocks(ctx context.Context, numbers []uint64, r *recovered) error {
	ops := make([]*storage.Operation, 0, 2*len(numbers))
	for _, seq := range numbers {
		ops = append(ops, storage.GetOperation(key(BlockPrefix, seq)), storage.GetOperation(key(donePrefix, seq)))
	}
	if err := q.disk.client.Batch(ctx, ops...); err != nil {
		return fmt.Errorf("cannot read blocks %d to %d from the storage: %w", numbers[0], numbers[len(numbers)-1], err)
	}
	now := time.Now()
	var finished []*entry
	for i, seq := range numbers {
		stored, done := ops[2*i].Value, ops[2*i+1].Value
		if stored == nil {
			if done != nil { // the block was deleted, but not its mark
				finished = append(finished, &entry{seq: seq, marked: true})
			}
			continue
		}
		e, err := parseEntry(stored)
		if err != nil {
			e = newEntry(0, 0, time.Time{}, block.New(salvage(stored), nil))
		}
		e.seq = seq
		e.tenant = q.tenants.number(e.known().Tenant)
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
		if e.queued.After(now) { // the clock was set back since: it would wait until then
			e.queued = now
		}
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
