// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package queue

import (
	"math"
	"time"
)

// unknown is the number of tenants that have queued nothing so far.
const unknown = math.MaxUint32

// number is a tenant's, which is found or given. Names are few: whoever makes blocks bounds them. The caller holds mu.
func (q *Queue) number(tenant string) uint32 {
	n, ok := q.tenants[tenant]
	if !ok {
		n = uint32(len(q.tenants))
		q.tenants[tenant] = n
	}
	return n
}

func (q *Queue) numberIfKnown(tenant string) uint32 {
	if n, ok := q.tenants[tenant]; ok {
		return n
	}
	return unknown
}

// pause keeps a tenant's blocks from a destination that would not take them. When it is over, one lane of the tenant tries;
// the others follow once that is served.
type pause struct {
	until   time.Time
	probing bool
}

func (d *destination) isPaused(tenant uint32, now time.Time) bool {
	p := d.paused[tenant]
	return p != nil && (p.probing || now.Before(p.until))
}

// room is how many bytes more a tenant may queue: as much as is free beyond what it has. So each of n tenants that are not
// served comes to a part of n+1, and there is always one part left for whoever comes next. Without tenants it is all that is
// free.
func (q *Queue) room(d *destination, tenant uint32) int64 {
	free := q.cfg.Size - d.bytes
	if !q.cfg.Tenants {
		return free
	}
	return free - d.shares[tenant]
}

// Later gives the blocks back, all but the first few that the destination is done with: it would not serve their tenant
// for so long.
func (l *Lease) Later(done int, wait time.Duration) {
	q := l.queue
	rest := l.entries[done:]
	if done > 0 {
		l.shorten(done)
		l.Done()
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	d := q.destinations[l.destination]
	d.paused[rest[0].tenant] = &pause{until: time.Now().Add(wait)}
	if done == 0 {
		d.release(l.entries, false)
	}
	time.AfterFunc(wait, func() {
		q.mu.Lock()
		defer q.mu.Unlock()
		d.wake.Broadcast()
	})
}
