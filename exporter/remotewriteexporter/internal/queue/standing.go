// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package queue

import "time"

// servedLately is for how long a destination that took something is one that serves some tenants, if not others.
const servedLately = time.Minute

// standing is how tenants stand with a destination: how much each has queued, and whether it is served.
type standing struct {
	tenants int // so many may have something queued though they are not served; 0 if blocks are of no tenants
	senders int // half of which may be with tenants that are not served; 0 is any number

	shares map[uint32]int64  // bytes of each tenant that has blocks
	paused map[uint32]*pause // of tenants that the destination would not serve
	// served is when the destination last took something of a tenant, if it refused nothing since; lastServed that of any.
	served     map[uint32]time.Time
	lastServed time.Time
	unserved   int64 // bytes of tenants that are not among the served
}

// pause keeps a tenant's blocks from a destination that would not take them. When it is over, one lane of the tenant tries;
// the others follow once that is served.
type pause struct {
	until   time.Time
	probing bool
}

func newStanding(tenants, senders int) standing {
	return standing{
		tenants: tenants, senders: senders,
		shares: map[uint32]int64{}, paused: map[uint32]*pause{}, served: map[uint32]time.Time{},
	}
}

// charge adds bytes to what a tenant has queued, or takes them off. One that has nothing left has no pause either.
func (s *standing) charge(tenant uint32, bytes int64) {
	s.shares[tenant] += bytes
	if _, ok := s.served[tenant]; !ok {
		s.unserved += bytes
	}
	if s.shares[tenant] == 0 {
		delete(s.shares, tenant)
		delete(s.paused, tenant)
	}
}

// mayProbe says whether one more sender may be with a tenant that the destination would not serve the last time.
func (s *standing) mayProbe() bool {
	if s.senders == 0 {
		return true
	}
	probes := 0
	for _, p := range s.paused {
		if p.probing {
			probes++
		}
	}
	return probes < max(1, s.senders/2)
}

// waits says whether nothing of a tenant goes now.
func (s *standing) waits(tenant uint32, now time.Time, mayProbe bool) bool {
	p := s.paused[tenant]
	return p != nil && (!mayProbe || p.probing || now.Before(p.until))
}

// probe notes whether a sender is with a tenant. It matters where that was refused.
func (s *standing) probe(tenant uint32, probing bool) {
	if p := s.paused[tenant]; p != nil {
		p.probing = probing
	}
}

// answered notes that the destination has looked at data of a tenant.
func (s *standing) answered(tenant uint32) { delete(s.paused, tenant) }

// serve notes that the destination took data of a tenant.
func (s *standing) serve(tenant uint32) {
	if _, ok := s.served[tenant]; !ok {
		s.unserved -= s.shares[tenant]
	}
	s.lastServed = time.Now()
	s.served[tenant] = s.lastServed
}

// refuse notes that it would not take data of a tenant for so long.
func (s *standing) refuse(tenant uint32, wait time.Duration) {
	if _, ok := s.served[tenant]; ok {
		delete(s.served, tenant)
		s.unserved += s.shares[tenant]
	}
	s.paused[tenant] = &pause{until: time.Now().Add(wait)}
}

// crowdedOut tells whether a tenant has no place: as many as there may be have something queued, of which none is its own.
func (s *standing) crowdedOut(tenant uint32) bool {
	if s.tenants == 0 || len(s.shares) < s.tenants {
		return false
	}
	_, served := s.served[tenant]
	_, there := s.shares[tenant]
	return !served && !there
}

// isIdle says whether a tenant has nothing queued, and was not served after a time.
func (s *standing) isIdle(tenant uint32, since time.Time) bool {
	return s.shares[tenant] == 0 && !s.served[tenant].After(since)
}
