// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package queue

import (
	"context"
	"slices"
	"time"

	"go.opentelemetry.io/collector/extension/xextension/storage"
)

const (
	// forgetAtOnce is how many blocks are deleted in one batch after deleting all at once has failed: fewer may fit
	// where more do not. It may be the other way round, too: bbolt needs no page for those that become empty, and
	// rewrites those that keep something.
	forgetAtOnce = 2
	// forgetPause is the wait after a failure before it is tried again.
	forgetPause = time.Second
	// forgetShare limits the time that is spent on slow failures, to one part in this many: each attempt is about all
	// that could not be deleted before, possibly tens of thousands of blocks.
	forgetShare   = 10
	forgetQuickly = time.Millisecond
)

// forget deletes entries that destinations are done with from the storage, and those that could not be deleted before.
// It returns false if some are left.
func (q *Queue) forget(finished []*entry) bool {
	if q.disk == nil {
		return true
	}
	d := q.disk
	defer q.noteStored(finished)
	d.mu.Lock()
	defer d.mu.Unlock()
	if len(d.undeleted) == 0 {
		if len(finished) == 0 {
			return true
		}
		err := q.writeFinished(finished)
		if err == nil {
			return true
		}
		q.cfg.StorageFailed(err)
	}
	q.addUndeleted(finished)
	begun := time.Now()
	for len(d.undeleted) > 0 {
		n := len(d.undeleted)
		err := q.writeFinished(d.undeleted)
		if err != nil && n > forgetAtOnce {
			n = forgetAtOnce
			err = q.writeFinished(d.undeleted[:n])
		}
		if err != nil {
			if len(finished) > 0 { // else it was already reported
				q.cfg.StorageFailed(err)
			}
			if took := time.Since(begun); took > forgetQuickly {
				d.again = begun.Add(forgetShare * took)
			}
			q.forgetLater()
			return false
		}
		clear(d.undeleted[:n])
		d.undeleted = d.undeleted[n:]
	}
	d.undeleted, d.again = nil, time.Time{}
	return true
}

// forgetDelivered is forget for delivered entries, where space is not needed at once: while failures take long, only
// some calls wait for them.
func (q *Queue) forgetDelivered(finished []*entry) {
	d := q.disk
	d.mu.Lock()
	later := time.Now().Before(d.again)
	if later {
		q.addUndeleted(finished)
		q.forgetLater()
	}
	d.mu.Unlock()
	if later {
		q.noteStored(finished)
		return
	}
	q.forget(finished)
}

// addUndeleted records what must still be deleted from the storage; the caller holds disk.mu.
func (q *Queue) addUndeleted(finished []*entry) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for _, e := range finished {
		if e.waiting == 0 {
			e.block = nil // needs no memory until then
		}
	}
	q.disk.undeleted = append(q.disk.undeleted, finished...)
}

// noteFinished records that a block must be deleted from the storage: until then, every index covers it. The caller
// holds mu.
func (q *Queue) noteFinished(e *entry) {
	if q.disk != nil {
		q.unstored[e.seq] = struct{}{}
	}
}

// noteStored ends what noteFinished began. What could not be deleted is in undeleted.
func (q *Queue) noteStored(finished []*entry) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for _, e := range finished {
		delete(q.unstored, e.seq)
	}
}

// writeFinished writes that destinations are done with entries; the caller holds disk.mu. Their state is read under that lock:
// of two destinations that finish a block, the later one writes last.
func (q *Queue) writeFinished(entries []*entry) error {
	var gone int64
	q.mu.Lock()
	ops := make([]*storage.Operation, 0, 2*len(entries))
	for _, e := range entries {
		if ops = append(ops, forgetOperations(e, q.cfg.Destinations)...); e.waiting == 0 {
			gone += int64(e.size)
		}
	}
	q.mu.Unlock()
	err := q.disk.client.Batch(context.Background(), ops...)
	if err == nil {
		q.disk.held -= gone
	}
	return err
}

// forgetLater makes sure that failed deletions are tried again even if nothing else happens; the caller holds disk.mu.
func (q *Queue) forgetLater() {
	d := q.disk
	if d.wait {
		return
	}
	d.wait = true
	time.AfterFunc(forgetPause, func() {
		q.mu.Lock()
		closed := q.closed
		q.mu.Unlock()
		d.mu.Lock()
		d.wait = false
		d.mu.Unlock()
		if !closed {
			q.forget(nil)
		}
	})
}

// sweep deletes what is outside of the index: blocks whose deletion failed in an earlier process, their marks, and
// invalid keys.
func (q *Queue) sweep(ctx context.Context, keys []string) error {
	for some := range slices.Chunk(keys, forgetAtOnce*recoverBatch) {
		ops := make([]*storage.Operation, 0, len(some))
		for _, k := range some {
			ops = append(ops, storage.DeleteOperation(k))
		}
		if err := q.disk.client.Batch(ctx, ops...); err != nil {
			return err
		}
	}
	return nil
}
