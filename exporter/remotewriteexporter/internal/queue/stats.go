// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package queue

import (
	"time"
)

// Stats is what a destination's queue holds at a moment.
type Stats struct {
	Bytes, Capacity int64
	Blocks          int
	Leased          int       // requests in flight
	Waiting         int       // blocks that are not leased, without those of tenants that the destination does not serve
	Items           int64     // samples and histograms in all blocks
	Oldest          time.Time // when the oldest block was queued; zero if there is none
}

// Stats reports on one destination.
func (q *Queue) Stats(destination int) Stats {
	q.mu.Lock()
	defer q.mu.Unlock()
	d := q.destinations[destination]
	s := Stats{Bytes: d.bytes, Capacity: d.policy.Size, Blocks: d.blocks, Leased: d.leased, Waiting: d.waiting(), Items: d.items}
	if e := d.oldest(); e != nil {
		s.Oldest = e.queued
	}
	return s
}

// waiting counts blocks that are not leased. Those of tenants that are not served do not wait for senders.
func (d *destination) waiting() int {
	n := d.blocks - d.held
	if d.tenantStates.tenants == 0 || len(d.tenantStates.paused) == 0 {
		return n
	}
	for g := range d.groups() {
		for _, l := range g.lanes {
			if d.tenantStates.paused[l.key.tenant] != nil {
				n -= len(l.entries) - l.held
			}
		}
	}
	return n
}

// Taken is the number of samples and histograms ever queued for a destination.
func (q *Queue) Taken(destination int) int64 {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.destinations[destination].taken
}

// Rest is what a storage keeps for the next Open.
type Rest struct {
	Blocks              int
	Bytes               int64
	Samples, Histograms int64
}

// Rest returns what the storage has that some destination waits for.
func (q *Queue) Rest() (r Rest) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for i, d := range q.destinations {
		for e := range d.entries() {
			if q.disk == nil || q.isForAnyBefore(e, i) || e.inMemoryOnly() {
				continue
			}
			r.Blocks++
			r.Bytes += int64(e.size - entryOverhead)
			r.Samples += int64(e.samples)
			r.Histograms += int64(e.histograms)
		}
	}
	return r
}
