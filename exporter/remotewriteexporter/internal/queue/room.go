// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package queue

import (
	"context"
	"time"
)

// WaitRoom returns when every destination has room for data of the tenants, or its queue makes room by dropping.
func (q *Queue) WaitRoom(ctx context.Context, tenants []string) error {
	for {
		q.mu.Lock()
		full, changed, closed := q.full(tenants), q.changed, q.closed
		q.mu.Unlock()
		switch {
		case closed:
			return ErrClosed
		case !full:
			return nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// Blocks reports whether WaitRoom would wait now.
func (q *Queue) Blocks(tenants []string) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return !q.closed && q.full(tenants)
}

// full reports whether a destination with the policy Block has no room for one of the tenants; the caller holds mu.
func (q *Queue) full(tenants []string) bool {
	if q.cfg.OnFull == Block && q.batches.isFull() {
		return true
	}
	for _, d := range q.destinations {
		if d.policy.OnFull != Block {
			continue
		}
		for _, tenant := range tenants {
			if d.room(q.tenants.numberIfKnown(tenant)) <= 0 {
				return true
			}
		}
	}
	return false
}

// Refuses reports whether every destination would drop a new block: it is full, or has no room for a block of the size
// that was last dropped.
func (q *Queue) Refuses(tenants []string) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.cfg.OnFull == DropNewest && q.batches.isFull() {
		return true
	}
	for _, d := range q.destinations {
		if d.policy.OnFull != DropNewest || d.blocks == 0 {
			return false
		}
		for _, tenant := range tenants {
			if d.room(q.tenants.numberIfKnown(tenant)) >= max(d.refused, 1) {
				return false
			}
		}
	}
	return true
}

// Drain waits until nothing is queued, or ctx ends.
func (q *Queue) Drain(ctx context.Context) {
	for {
		q.mu.Lock()
		blocks, changed := 0, q.changed
		for _, d := range q.destinations {
			blocks += d.blocks
		}
		q.mu.Unlock()
		if blocks == 0 {
			return
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return
		}
	}
}

// room is how many more bytes a tenant may queue. Without tenants that is all that is free; with them, as much as is
// free after what it has, so that something is left for the next. But anybody can make up any number of tenants that
// are never served: so while some are served, an eighth of the queue is reserved for these, and another eighth for
// those that were not refused so far. What others queued beyond that, while nobody was served, is not taken off the
// part for the served; nor does it keep out those of whom nothing is known yet, as after a start: a sixteenth beyond
// the size is for one request of each.
func (d *destination) room(tenant uint32) int64 {
	s, size := &d.tenantStates, d.policy.Size
	if s.tenants == 0 {
		return size - d.bytes
	}
	share, newcomers := s.shares[tenant], size/8*7
	if _, served := s.served[tenant]; served {
		return size - (d.bytes - s.unserved) - min(s.unserved, newcomers) - share
	}
	if s.hasNoPlace(tenant) {
		return 0
	}
	most := newcomers
	switch {
	case time.Since(s.lastServed) > servedLately:
		most = size
	case s.paused[tenant] != nil:
		most = size / 8 * 6
	}
	room := min(size-d.bytes, most-s.unserved) - share
	if share == 0 && s.paused[tenant] == nil && d.policy.OnFull != DropOldest { // it is not known yet whether it is served
		room = max(room, size/16*17-d.bytes)
	}
	return room
}

// roomChanged wakes those who wait for room or for an empty queue.
func (q *Queue) roomChanged() {
	close(q.changed)
	q.changed = make(chan struct{})
}
