// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package queue

import (
	"math"
	"slices"
	"time"
)

// unknown is the number of tenants that have queued nothing so far.
const unknown = math.MaxUint32

// minTenants is how many names are kept without a look at who still has something queued.
const minTenants = 1024

// number is a tenant's, which is found or given. The caller holds mu.
func (q *Queue) number(tenant string) uint32 {
	n, ok := q.tenants[tenant]
	if !ok {
		n = q.nextTenant
		q.nextTenant = (n + 1) % unknown
		q.tenants[tenant] = n
	}
	return n
}

// forgetTenants forgets the names of those that have nothing queued; the caller holds mu. Whoever makes blocks bounds the
// tenants there are, not those there have been.
func (q *Queue) forgetTenants() {
	for name, n := range q.tenants {
		if !slices.ContainsFunc(q.destinations, func(d *destination) bool { return d.shares[n] > 0 }) {
			delete(q.tenants, name)
		}
	}
	q.mostTenants = max(minTenants, 2*len(q.tenants))
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
	free := d.policy.Size - d.bytes
	if !q.cfg.Tenants {
		return free
	}
	return free - d.shares[tenant]
}

// Later gives the blocks back, all but the first few that the destination is done with: it would not serve their tenant
// for so long.
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
	d.paused[rest[0].tenant] = &pause{until: time.Now().Add(wait)}
	if done == 0 {
		d.release(l.lane, l.entries, false)
	}
	time.AfterFunc(wait, func() {
		q.mu.Lock()
		defer q.mu.Unlock()
		d.wake.Broadcast()
	})
}
