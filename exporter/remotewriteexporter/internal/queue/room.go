// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package queue

import "context"

// WaitRoom returns when every destination has room for what some tenants bring, or its queue makes room by dropping.
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

// Blocks tells whether WaitRoom would wait now.
func (q *Queue) Blocks(tenants []string) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return !q.closed && q.full(tenants)
}

// full tells whether some destination that makes others wait has no room for one of the tenants; the caller holds mu.
func (q *Queue) full(tenants []string) bool {
	if q.cfg.OnFull == Block && q.crowded() {
		return true
	}
	for _, d := range q.destinations {
		if d.policy.OnFull != Block {
			continue
		}
		for _, tenant := range tenants {
			if q.room(d, q.numberIfKnown(tenant)) <= 0 {
				return true
			}
		}
	}
	return false
}

// Refuses tells whether every destination would leave a new block out: it is full, or has no room for one like the last
// that was left out.
func (q *Queue) Refuses(tenants []string) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.cfg.OnFull == DropNewest && q.crowded() {
		return true
	}
	for _, d := range q.destinations {
		if d.policy.OnFull != DropNewest || d.blocks == 0 {
			return false
		}
		for _, tenant := range tenants {
			if q.room(d, q.numberIfKnown(tenant)) >= max(d.refused, 1) {
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

// roomChanged wakes those who wait for room or for emptiness.
func (q *Queue) roomChanged() {
	close(q.changed)
	q.changed = make(chan struct{})
}
