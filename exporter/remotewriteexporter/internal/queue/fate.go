// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package queue

import "errors"

// errShutdown is the fate of what a queue in memory still holds when it is closed.
var errShutdown = errors.New("the exporter was shut down before the data was delivered")

// A Fate tells what becomes of blocks that were pushed together, once every destination is done with all of them. It does
// not outlive the process: what a storage holds at the next start has none.
type Fate struct {
	// Batches is how many of the pipeline's batches are in the blocks; Config.Batches bounds those that have no fate yet.
	Batches int64
	// Awaited says that whoever brought the data waits for its fate, and brings it again if it is not delivered.
	Awaited bool

	sealed chan struct{}
	blocks int
	err    error
}

// NewFate makes a fate for one Push.
func NewFate(batches int64, awaited bool) *Fate {
	return &Fate{Batches: batches, Awaited: awaited, sealed: make(chan struct{})}
}

// Sealed is closed when the fate is known.
func (f *Fate) Sealed() <-chan struct{} { return f.sealed }

// Err is nil if nothing was lost. It is for those who have seen Sealed.
func (f *Fate) Err() error { return f.err }

// lost notes that a destination will not have a block; the caller holds Queue.mu.
func (f *Fate) lost(err error) {
	if f != nil && f.err == nil {
		f.err = err
	}
}

// seal notes that every destination is done with one of the blocks; the caller holds mu.
func (q *Queue) seal(f *Fate) {
	if f == nil {
		return
	}
	if f.blocks--; f.blocks <= 0 {
		q.batches -= f.Batches
		close(f.sealed)
	}
}

// abandon notes that a destination will not have e from this queue; the caller holds mu.
func (q *Queue) abandon(e *entry) {
	e.fate().lost(errShutdown)
	if e.waiting--; e.waiting == 0 {
		q.seal(e.fate())
	}
}

// Take counts a batch as one that has no fate yet. It ends with the fate of a Push, or with Return.
func (q *Queue) Take() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.batches++
}

// Return says that nothing was pushed of so many batches.
func (q *Queue) Return(batches int64) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.batches -= batches
	q.roomChanged()
}

// Open is how many batches have no fate yet.
func (q *Queue) Open() int64 {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.batches
}

// crowded tells whether as many batches are without a fate as may be; the caller holds mu.
func (q *Queue) crowded() bool { return q.cfg.Batches > 0 && q.batches >= q.cfg.Batches }
