// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package queue

import (
	"context"
	"fmt"
	"time"

	"github.com/godwit-otel/godwit/exporter/remotewriteexporter/internal/block"
)

// A Lease is a block in the hands of a sender. Done or Release ends it, exactly once.
type Lease struct {
	Block    block.Block
	Deadline time.Time // when the block gets too old to send; zero is never

	queue       *Queue
	destination int
	entry       *entry
}

// Next waits for a block that a destination may be sent now. It returns ErrClosed after Stop, and another error when
// the storage cannot be read, in which case the block stays where it is.
func (q *Queue) Next(ctx context.Context, destination int) (*Lease, error) {
	for {
		e, err := q.lease(destination)
		if err != nil {
			return nil, err
		}
		l := &Lease{Block: e.known(), queue: q, destination: destination, entry: e}
		if q.cfg.MaxAge > 0 {
			l.Deadline = e.queued.Add(q.cfg.MaxAge)
			if !time.Now().Before(l.Deadline) {
				l.drop(ReasonAge)
				continue
			}
		}
		if l.Block.Body() != nil {
			return l, nil
		}
		stored, err := q.disk.read(ctx, e.seq)
		if err != nil {
			l.Release()
			return nil, fmt.Errorf("cannot read block %d from the storage: %w", e.seq, err)
		}
		read, err := parseEntry(stored)
		if err != nil {
			l.drop(ReasonCorrupt)
			continue
		}
		l.Block = *read.block
		return l, nil
	}
}

// lease waits for an entry. What it returns is the caller's to read until its lease ends.
func (q *Queue) lease(destination int) (*entry, error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	d := q.destinations[destination]
	for {
		if q.stopped {
			return nil, ErrClosed
		}
		if e := d.lease(); e != nil {
			return e, nil
		}
		d.wake.Wait()
	}
}

// Done says that the destination is done with the block, sent or dropped.
func (l *Lease) Done() {
	q := l.queue
	q.mu.Lock()
	q.destinations[l.destination].release(l.entry, true)
	finished := q.finish(l.destination, l.entry, nil)
	q.mu.Unlock()
	q.forget(finished)
}

// Release gives the block back unsent.
func (l *Lease) Release() {
	q := l.queue
	q.mu.Lock()
	q.destinations[l.destination].release(l.entry, false)
	q.mu.Unlock()
}

func (l *Lease) drop(reason string) {
	l.queue.cfg.Dropped(l.destination, reason, l.Block.Header)
	l.Done()
}
