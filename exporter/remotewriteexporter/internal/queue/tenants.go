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

// forgetTenants forgets the names of those that have nothing queued, and were not served since the last time; the caller holds mu.
// Whoever makes blocks bounds the tenants there are, not those there have been.
func (q *Queue) forgetTenants() {
	for name, n := range q.tenants {
		if !slices.ContainsFunc(q.destinations, func(d *destination) bool { return d.shares[n] > 0 || d.served[n].After(q.forgot) }) {
			delete(q.tenants, name)
			for _, d := range q.destinations {
				delete(d.served, n)
			}
		}
	}
	q.forgot = time.Now()
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

// probes is how many senders have data of tenants that the destination would not serve the last time.
func (d *destination) probes() (n int) {
	for _, p := range d.paused {
		if p.probing {
			n++
		}
	}
	return n
}

// servedLately is for how long a destination that took something is one that serves some tenants, if not others.
const servedLately = time.Minute

// serve notes that the destination took data of a tenant.
func (d *destination) serve(tenant uint32) {
	if _, ok := d.served[tenant]; !ok {
		d.unserved -= d.shares[tenant]
	}
	d.lastServed = time.Now()
	d.served[tenant] = d.lastServed
}

// refuse notes that it would not take data of a tenant for so long.
func (d *destination) refuse(tenant uint32, wait time.Duration) {
	if _, ok := d.served[tenant]; ok {
		delete(d.served, tenant)
		d.unserved += d.shares[tenant]
	}
	d.paused[tenant] = &pause{until: time.Now().Add(wait)}
}

// room is how many bytes more a tenant may queue. Without tenants it is all that is free; with them as much as is free beyond what it
// has, so that there is a part left for whoever comes next. But there may always come more whom nobody serves, for anybody can make up
// tenants: so while some are served, an eighth of the queue is for these, and another one for those that were not refused so far, which may
// come to be served. What others have queued beyond that, while nobody was, is not taken off of what is for the served; nor does it keep out
// those that may be served, of whom nothing is known after a start: a sixteenth beyond the size is for one request of each.
func (q *Queue) room(d *destination, tenant uint32) int64 {
	size := d.policy.Size
	if q.cfg.Tenants == 0 {
		return size - d.bytes
	}
	share, newcomers := d.shares[tenant], size/8*7
	if _, served := d.served[tenant]; served {
		return size - (d.bytes - d.unserved) - min(d.unserved, newcomers) - share
	}
	if q.crowdedOut(d, tenant) {
		return 0
	}
	most := newcomers
	switch {
	case time.Since(d.lastServed) > servedLately:
		most = size
	case d.paused[tenant] != nil:
		most = size / 8 * 6
	}
	room := min(size-d.bytes, most-d.unserved) - share
	if share == 0 && d.paused[tenant] == nil && d.policy.OnFull != DropOldest { // nobody has tried yet whether it is served
		room = max(room, size/16*17-d.bytes)
	}
	return room
}

// crowdedOut tells whether a tenant has no place: as many as there may be have something queued, of which none is its own.
func (q *Queue) crowdedOut(d *destination, tenant uint32) bool {
	if q.cfg.Tenants == 0 || len(d.shares) < q.cfg.Tenants {
		return false
	}
	_, served := d.served[tenant]
	_, there := d.shares[tenant]
	return !served && !there
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
	d.refuse(rest[0].tenant, wait)
	if done == 0 {
		d.release(l.lane, l.entries, false)
	}
	q.wakeAfter(d, wait)
}
