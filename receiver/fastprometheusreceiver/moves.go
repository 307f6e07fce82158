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
	// movesWait bounds a question to the target allocator about a target that has left: meanwhile it keeps a scrape's place.
	movesWait = 5 * time.Second
	// movesRetry is how soon the allocator is asked again when it did not answer.
	movesRetry = 10 * time.Second
)

// moves are the targets of a job that the target allocator has given to collectors. It is asked once about all targets
// that left together.
type moves struct {
	mu     sync.Mutex
	asked  time.Time
	failed bool
	hashes map[uint64]struct{}
}

// has tells whether a target that left at a time is some collector's now. Where the allocator does not say, it is not.
func (m *moves) has(hash uint64, left time.Time, ask func() (map[uint64]struct{}, error)) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.asked.Before(left) || m.failed && time.Since(m.asked) > movesRetry {
		asked := time.Now() // the answer may be as old as the question
		hashes, err := ask()
		m.asked, m.failed, m.hashes = asked, err != nil, hashes
	}
	_, has := m.hashes[hash]
	return has
}

// divides tells whether the targets of a job are those that the target allocator gives to this collector.
func (r *scraper) divides(job *promconfig.ScrapeConfig) bool {
	return r.allocator != nil && r.allocator.Has(job)
}

// isGiven tells whether the target allocator has given a target that left the job to another collector, or meanwhile back to this one. That one goes on
// with its series, and nobody is to call them stale. A job that has ended is scraped here no more, whatever the allocator still lists for this collector.
// Where the receiver stops before there is an answer nobody knows, and nothing ends by a shutdown.
func (j *job) isGiven(hash uint64, left time.Time) bool {
	j.mu.Lock()
	cfg, ended := j.tools.cfg, j.ended
	j.mu.Unlock()
	r := j.owner
	if !r.divides(cfg) {
		return false
	}
	has := j.moves.has(hash, left, func() (map[uint64]struct{}, error) {
		ctx, cancel := context.WithTimeout(r.fetching, movesWait)
		defer cancel()
		groups, err := r.allocator.Given(ctx, cfg.JobName, !ended)
		if err != nil && r.fetching.Err() == nil {
			r.settings.Logger.Warn("Targets that left get stale markers: the target allocator does not say whether another collector has them",
				zap.String("job", cfg.JobName), zap.Error(err))
		}
		return hashesOf(cfg, groups), err
	})
	return has || r.fetching.Err() != nil
}

// hashesOf are those of the targets that groups come to.
func hashesOf(cfg *promconfig.ScrapeConfig, groups []*targetgroup.Group) map[uint64]struct{} {
	hashes := map[uint64]struct{}{}
	for _, target := range discover.NewDeriver(cfg, discover.Shard{}).Derive(groups).Targets {
		hashes[target.Hash] = struct{}{}
	}
	return hashes
}
