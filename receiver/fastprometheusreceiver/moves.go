// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package fastprometheusreceiver

import (
	"context"
	"sync"
	"time"

	"github.com/prometheus/prometheus/discovery/targetgroup"
	"go.uber.org/zap"

	promconfig "github.com/prometheus/prometheus/config"

	"github.com/godwit-otel/godwit/receiver/fastprometheusreceiver/internal/discover"
)

const (
	// movesWait limits a question to the target allocator about a target that has left, since it occupies the place of
	// a scrape meanwhile.
	movesWait = 5 * time.Second
	// movesLast is how long an answer counts, or that there was none. Targets that left together are asked about over an
	// interval, and those of a busy cluster move on meanwhile.
	movesLast = 10 * time.Second
)

// moves are the targets of a job that the target allocator has assigned to collectors. It is asked once about targets
// that left together, and whose series end together.
type moves struct {
	mu     sync.Mutex
	asked  time.Time
	hashes map[uint64]struct{}
}

// has reports whether a target that left is assigned to a collector now. If the allocator does not answer, it is not.
func (m *moves) has(hash uint64, left time.Time, ask func() map[uint64]struct{}) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.asked.Before(left) || time.Since(m.asked) > movesLast {
		m.asked = time.Now() // the answer may be as old as the question
		m.hashes = ask()
	}
	_, has := m.hashes[hash]
	return has
}

// isGiven reports whether the target allocator has assigned a target that left the job to another collector, or back to
// this one. That collector continues its series, so they must not get stale markers. A job that has ended is not
// scraped here any more, whatever the allocator still assigns to this collector. If the receiver stops before there is
// an answer, nothing gets stale markers.
func (j *job) isGiven(hash uint64, left time.Time) bool {
	j.mu.Lock()
	cfg, ended := j.tools.cfg, j.ended
	j.mu.Unlock()
	r := j.owner
	if !r.allocation.divides(cfg) {
		return false
	}
	has := j.moves.has(hash, left, func() map[uint64]struct{} {
		ctx, cancel := context.WithTimeout(r.fetching, movesWait)
		defer cancel()
		groups, err := r.allocation.client.Given(ctx, cfg.JobName, !ended)
		if err != nil && r.fetching.Err() == nil {
			r.settings.Logger.Warn("Targets that left get stale markers: the target allocator does not say whether another collector has them",
				zap.String("job", cfg.JobName), zap.Error(err))
		}
		return hashesOf(cfg, groups)
	})
	return has || r.fetching.Err() != nil
}

// hashesOf returns the hashes of the targets of groups.
func hashesOf(cfg *promconfig.ScrapeConfig, groups []*targetgroup.Group) map[uint64]struct{} {
	hashes := map[uint64]struct{}{}
	for _, target := range discover.NewDeriver(cfg, discover.Shard{}).Derive(groups).Targets {
		hashes[target.Hash] = struct{}{}
	}
	return hashes
}
