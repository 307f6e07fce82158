// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package queue

import "time"

// servedLately is how long after its last success a destination counts as one that serves some tenants.
const servedLately = time.Minute

// tenantStates is what a destination's queue knows about tenants: how much each has queued, and whether it is served.
type tenantStates struct {
	tenants int // how many may have something queued without being served; 0 if there are no tenants
	senders int // half of which may be used for tenants that are not served; 0 is no limit

	shares map[uint32]int64  // bytes of each tenant that has blocks
	paused map[uint32]*pause // tenants that the destination refused
	// served is when the destination last accepted data of a tenant, if it refused nothing since; lastServed that of
	// any tenant.
	served     map[uint32]time.Time
	lastServed time.Time
	unserved   int64 // bytes of tenants that are not served
}

// pause keeps a tenant's blocks from a destination that refused them. When it is over, one lane of the tenant tries;
// the others follow once that succeeds.
type pause struct {
	until   time.Time
	probing bool
}

func newTenantStates(tenants, senders int) tenantStates {
	return tenantStates{
		tenants: tenants, senders: senders,
		shares: map[uint32]int64{}, paused: map[uint32]*pause{}, served: map[uint32]time.Time{},
	}
}

// charge adds bytes to what a tenant has queued. A tenant with nothing left has no pause either.
func (s *tenantStates) charge(tenant uint32, bytes int64) {
	s.shares[tenant] += bytes
	if _, ok := s.served[tenant]; !ok {
		s.unserved += bytes
	}
	if s.shares[tenant] == 0 {
		delete(s.shares, tenant)
		delete(s.paused, tenant)
	}
}

// mayProbe reports whether another sender may try a tenant that the destination refused the last time.
func (s *tenantStates) mayProbe() bool {
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

// waits reports whether no block of a tenant may be sent now.
func (s *tenantStates) waits(tenant uint32, now time.Time, mayProbe bool) bool {
	p := s.paused[tenant]
	return p != nil && (!mayProbe || p.probing || now.Before(p.until))
}

// probe records whether a sender tries a tenant that was refused.
func (s *tenantStates) probe(tenant uint32, probing bool) {
	if p := s.paused[tenant]; p != nil {
		p.probing = probing
	}
}

// answered records that the destination has examined data of a tenant.
func (s *tenantStates) answered(tenant uint32) { delete(s.paused, tenant) }

// serve records that the destination accepted data of a tenant.
func (s *tenantStates) serve(tenant uint32) {
	if _, ok := s.served[tenant]; !ok {
		s.unserved -= s.shares[tenant]
	}
	s.lastServed = time.Now()
	s.served[tenant] = s.lastServed
}

// refuse records that it refused a tenant, for so long.
func (s *tenantStates) refuse(tenant uint32, wait time.Duration) {
	if _, ok := s.served[tenant]; ok {
		delete(s.served, tenant)
		s.unserved += s.shares[tenant]
	}
	s.paused[tenant] = &pause{until: time.Now().Add(wait)}
}

// hasNoPlace reports whether a tenant has no place: as many tenants as allowed have something queued, and it has
// nothing.
func (s *tenantStates) hasNoPlace(tenant uint32) bool {
	if s.tenants == 0 || len(s.shares) < s.tenants {
		return false
	}
	_, served := s.served[tenant]
	_, there := s.shares[tenant]
	return !served && !there
}

// isIdle reports whether a tenant has nothing queued, and was not served since.
func (s *tenantStates) isIdle(tenant uint32, since time.Time) bool {
	return s.shares[tenant] == 0 && !s.served[tenant].After(since)
}
