// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package queue

import (
	"context"
	"errors"
	"fmt"
)

// errShutdown is the fate of what a queue in memory still has when it is closed.
var errShutdown = errors.New("the exporter was shut down before the data was delivered")

// A Fate reports the result of blocks that were pushed together, once every destination is done with all of them: for
// each tenant separately, so that nobody learns what others have lost. It does not survive the process: blocks that a
// storage holds at the next start have none.
type Fate struct {
	// Batches is how many of the pipeline's batches are in the blocks; Config.Batches limits those without a result.
	Batches int64
	// Awaited says that the sender of the data waits for the result, and sends it again if it is not delivered.
	Awaited bool

	blocks int
	shares map[string]*share // by tenant; entries do not change after the Push
}

// share is the fate of one tenant's blocks.
type share struct {
	sealed chan struct{}
	blocks int
	err    error // of the first block that was lost
}

// NewFate makes a fate for one Push.
func NewFate(batches int64, awaited bool) *Fate {
	return &Fate{Batches: batches, Awaited: awaited, shares: map[string]*share{}}
}

// Await returns when the result for a tenant is known, with an error if anything was lost. Call it after the Push.
func (f *Fate) Await(ctx context.Context, tenant string) error {
	s := f.shares[tenant]
	if s == nil {
		return nil // it has no blocks
	}
	select {
	case <-s.sealed:
		return s.err
	case <-ctx.Done():
		return fmt.Errorf("cannot wait for the data to be delivered: %w", context.Cause(ctx))
	}
}

// expect counts a block of a tenant; the caller holds Queue.mu.
func (f *Fate) expect(tenant string) {
	if f == nil {
		return
	}
	s := f.shares[tenant]
	if s == nil {
		s = &share{sealed: make(chan struct{})}
		f.shares[tenant] = s
	}
	f.blocks++
	s.blocks++
}

// lost records that a destination will not get e; the caller holds Queue.mu.
func (e *entry) lost(err error) {
	if f := e.fate(); f != nil {
		if s := f.shares[e.block.Tenant]; s.err == nil {
			s.err = err
		}
	}
}

// seal records that every destination is done with e; the caller holds mu.
func (q *Queue) seal(e *entry) {
	f := e.fate()
	if f == nil {
		return
	}
	s := f.shares[e.block.Tenant]
	if s.blocks--; s.blocks == 0 {
		close(s.sealed)
	}
	if f.blocks--; f.blocks == 0 {
		q.batches.open -= f.Batches
	}
}

// abandon records that a destination will not get e from this queue; the caller holds mu.
func (q *Queue) abandon(e *entry) {
	e.lost(errShutdown)
	if e.waiting--; e.waiting == 0 {
		q.seal(e)
	}
}

// openBatches counts the pipeline's batches without a result. Queue.mu guards it.
type openBatches struct {
	most, open int64 // 0 is no limit
}

// isFull reports whether the limit is reached.
func (b *openBatches) isFull() bool { return b.most > 0 && b.open >= b.most }

// Take counts a batch as one without a result, and reports whether it is the last that there is room for. The fate of a
// Push, or Return, ends it.
func (q *Queue) Take() (isLast bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.batches.open++
	return q.batches.isFull()
}

// Return records that nothing of the given number of batches was pushed.
func (q *Queue) Return(batches int64) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.batches.open -= batches
	q.roomChanged()
}

// Open is the number of batches without a result.
func (q *Queue) Open() int64 {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.batches.open
}
