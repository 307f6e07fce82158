// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package queue

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"time"

	"github.com/godwit-otel/godwit/exporter/remotewriteexporter/internal/block"
)

// Bound limits the blocks of one lane that are leased together. Zero leases each by itself.
type Bound struct {
	Samples    int
	Bytes, Raw int // after compression, and before
}

// A Lease is one block that a sender has, or several of one lane and tenant in their order. Exactly one call of Done,
// Release, ReleaseRest or Later ends it.
type Lease struct {
	Blocks    []block.Block
	Queued    []time.Time // when each block was queued
	Deadlines []time.Time // when each block becomes too old to send; zero is never

	queue       *Queue
	destination int
	lane        *lane
	entries     []*entry
}

const (
	// readPause is how long a lane waits before a block that could not be read is tried again.
	readPause = time.Second
	// readTime is how long that is tried.
	readTime = time.Minute
)

// Next waits for a block that may be sent to a destination now; those after it come with it, up to a bound. It returns
// ErrClosed after Stop, and another error if the storage cannot be read; the block then stays where it is for a while,
// and other lanes continue.
func (q *Queue) Next(ctx context.Context, destination int, most Bound) (*Lease, error) {
	for {
		from, entries, err := q.lease(destination, most)
		if err != nil {
			return nil, err
		}
		l := &Lease{queue: q, destination: destination, lane: from, entries: entries}
		switch reason, err := l.read(ctx, most.Raw); {
		case err != nil:
			l.readAgain()
			return nil, err
		case reason != "":
			q.cfg.Dropped(destination, reason, entries[0].known().Header)
			l.done([]error{errors.New("the queue dropped the data: " + reason)}, false)
		default:
			return l, nil
		}
	}
}

// read reads the blocks, and gives back those from the first on that must be sent, or dropped, by itself. If the first
// block cannot be sent, it returns the reason.
func (l *Lease) read(ctx context.Context, most int) (reason string, err error) {
	raw := 0
	for i, e := range l.entries {
		b, deadline, reason, err := l.queue.read(ctx, l.destination, e)
		raw += b.RawSize
		switch fine := err == nil && reason == ""; {
		case i == 0 && !fine:
			l.shorten(1)
			if err != nil && !l.lane.unread.IsZero() && time.Since(l.lane.unread) >= readTime {
				return ReasonCorrupt, nil
			}
			return reason, err
		case i > 0 && (!fine || b.Tenant != l.Blocks[0].Tenant || raw > most):
			l.shorten(i) // the reason will be returned when it comes first
			return "", nil
		}
		l.Blocks, l.Queued, l.Deadlines = append(l.Blocks, b), append(l.Queued, e.queued), append(l.Deadlines, deadline)
	}
	return "", nil
}

// read reads the block of a leased entry, or returns the reason why it must be dropped.
func (q *Queue) read(ctx context.Context, destination int, e *entry) (b block.Block, deadline time.Time, reason string, err error) {
	if limit := q.destinations[destination].policy.MaxAge; limit > 0 {
		deadline = e.queued.Add(limit)
		if !time.Now().Before(deadline) {
			return b, deadline, ReasonAge, nil
		}
	}
	if b = e.known(); b.Body() != nil {
		return b, deadline, "", nil
	}
	stored, err := q.disk.read(ctx, e.seq)
	if isGone(err) {
		return b, deadline, ReasonCorrupt, nil
	}
	if err != nil {
		return b, deadline, "", fmt.Errorf("cannot read block %d from the storage: %w", e.seq, err)
	}
	if read, err := parseEntry(stored); err == nil {
		return read.block.Block, deadline, "", nil
	}
	return b, deadline, ReasonCorrupt, nil
}

// isGone reports whether an error says that a stored value is missing, as after somebody deleted or truncated a file.
func isGone(err error) bool {
	return errors.Is(err, fs.ErrNotExist) || errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF)
}

// readAgain gives back the blocks after the first could not be read: a disk may be away for a moment, but a block that
// has failed for long is lost.
func (l *Lease) readAgain() {
	q, now := l.queue, time.Now()
	q.mu.Lock()
	defer q.mu.Unlock()
	if l.lane.unread.IsZero() {
		l.lane.unread = now
	}
	l.lane.until = now.Add(readPause)
	d := q.destinations[l.destination]
	d.release(l.lane, l.entries, false)
	q.wakeAfter(d, readPause)
}

// wakeAfter wakes those who wait for blocks of a destination, after a pause.
func (q *Queue) wakeAfter(d *destination, pause time.Duration) {
	time.AfterFunc(pause, func() {
		q.mu.Lock()
		defer q.mu.Unlock()
		d.wake.Broadcast()
	})
}

// lease waits for entries. The caller may read them until the lease ends.
func (q *Queue) lease(destination int, most Bound) (*lane, []*entry, error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	d := q.destinations[destination]
	for {
		if q.stopped {
			return nil, nil, ErrClosed
		}
		if from, entries := d.lease(most); entries != nil {
			return from, entries, nil
		}
		d.wake.Wait()
	}
}

// shorten gives back all blocks except the first n.
func (l *Lease) shorten(n int) {
	q := l.queue
	q.mu.Lock()
	defer q.mu.Unlock()
	q.destinations[l.destination].shorten(l.lane, l.entries, n)
	l.entries = l.entries[:n]
}

// Done records that the destination is done with the blocks, sent or dropped: lost has an error for each that was not
// delivered, and is nil if all were. It returns once the storage has recorded that, before the lane may be leased
// again: so after a crash, at most the blocks of one lease of a lane are sent again.
func (l *Lease) Done(lost []error) { l.done(lost, true) }

// done is Done; blocks that the queue drops by itself are no answer, and do not show whether the destination serves the
// tenant.
func (l *Lease) done(lost []error, answered bool) {
	q := l.queue
	var finished []*entry
	delivered := false
	q.mu.Lock()
	defer q.mu.Unlock()
	for i, e := range l.entries {
		if i < len(lost) && lost[i] != nil {
			e.lost(lost[i])
		} else {
			delivered = true
		}
		finished = q.finish(l.destination, e, finished)
	}
	if q.disk != nil {
		q.mu.Unlock()
		q.forgetDelivered(finished)
		q.mu.Lock()
	}
	d := q.destinations[l.destination]
	d.release(l.lane, l.entries, true)
	if answered {
		d.tenantStates.answered(l.lane.key.tenant)
	}
	if delivered {
		d.tenantStates.serve(l.lane.key.tenant)
	}
	q.roomChanged()
}

// Release gives back the blocks unsent.
func (l *Lease) Release() {
	q := l.queue
	q.mu.Lock()
	q.destinations[l.destination].release(l.lane, l.entries, false)
	q.mu.Unlock()
}

// ReleaseRest gives back the blocks unsent, except the first ones, with which the destination is done.
func (l *Lease) ReleaseRest(done int, lost []error) {
	if done == 0 {
		l.Release()
		return
	}
	l.shorten(done)
	l.Done(lost)
}

// Later gives back the blocks, except the first ones, with which the destination is done: it would not serve their
// tenant for so long.
func (l *Lease) Later(done int, lost []error, wait time.Duration) {
	q := l.queue
	rest := l.entries[done:]
	if done > 0 {
		l.shorten(done)
		l.Done(lost)
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	d := q.destinations[l.destination]
	d.tenantStates.refuse(rest[0].tenant, wait)
	if done == 0 {
		d.release(l.lane, l.entries, false)
	}
	q.wakeAfter(d, wait)
}
