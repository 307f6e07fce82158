// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package encode

import "sync/atomic"

// Stats is the state of the caches.
type Stats struct {
	Series    int // known data points; a histogram counts as one
	Resources int
	Symbols   int
	Tenants   int
	Deltas    int
	Hits      uint64 // data points recognised
	Misses    uint64 // data points translated
	Moves     uint64 // hits found by hash, because they did not follow their last neighbour
	Evictions uint64
}

type counters struct {
	hits, misses, moves, evictions atomic.Uint64
}

// Stats may be called at any time.
func (e *Encoder) Stats() Stats {
	s := Stats{
		Hits:      e.counters.hits.Load(),
		Misses:    e.counters.misses.Load(),
		Moves:     e.counters.moves.Load(),
		Evictions: e.counters.evictions.Load(),
		Symbols:   e.cache.Symbols.Size(),
		Deltas:    e.deltas.Len(),
	}
	e.mu.RLock()
	defer e.mu.RUnlock()
	s.Series, s.Resources = e.cache.Size()
	e.tenantsMu.Lock()
	defer e.tenantsMu.Unlock()
	s.Tenants = len(e.tenants)
	return s
}
