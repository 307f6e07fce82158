// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package fastprometheusreceiver

import (
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	promconfig "github.com/prometheus/prometheus/config"
	"github.com/prometheus/prometheus/discovery/targetgroup"
	"go.uber.org/zap"

	"github.com/godwit-otel/godwit/receiver/fastprometheusreceiver/internal/discover"
	"github.com/godwit-otel/godwit/receiver/fastprometheusreceiver/internal/schedule"
)

// mostAdopting is the time over which the extra scrapes of many orphans are spread.
const mostAdopting = time.Second

// A job is a scrape configuration in use.
type job struct {
	owner   *scraper
	name    string
	tooMany atomic.Pointer[error] // set while there are more targets than target_limit; fails all scrapes

	mu      sync.Mutex
	tools   *tools
	ended   bool // the configuration no longer has the job
	deriver *discover.Deriver
	seed    uint64
	targets map[uint64]*target
	leaving map[uint64]*target // gone, but not long enough for stale markers
	found   discover.Set       // without its targets, which are above

	moves moves
}

func newJob(owner *scraper, name string) *job {
	return &job{owner: owner, name: name, targets: map[uint64]*target{}, leaving: map[uint64]*target{}}
}

// equip gives the job a new configuration. Targets get it with the next update from discovery.
func (j *job) equip(g *tools) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.tools, j.ended = g, false
	j.deriver = discover.NewDeriver(g.cfg, j.owner.shard)
	j.seed = j.owner.seedOf(g.cfg)
}

// failures is the log of scrape_failure_log_file, nil if there is none. A target's assignment must not be used for it:
// a reload has closed its file before discovery gives the target a new one.
func (j *job) failures() *slog.Logger {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.tools.failures
}

// end removes all targets.
func (j *job) end() {
	j.mu.Lock()
	j.ended = true
	j.mu.Unlock()
	j.sync(nil, time.Time{}, false)
}

// sync replaces the targets by those of groups. since is the time from which on members have agreed to scrape these,
// zero for now. orphans says that new targets may be those of a member that has gone.
func (j *job) sync(groups []*targetgroup.Group, since time.Time, orphans bool) {
	j.mu.Lock()
	defer j.mu.Unlock()
	found := j.deriver.Derive(groups)
	for _, err := range found.Failures {
		j.owner.settings.Logger.Error("Cannot make a target", zap.String("job", j.name), zap.Error(err))
	}
	current := make(map[uint64]*target, len(found.Targets))
	for _, f := range found.Targets {
		t := j.targets[f.Hash]
		if t == nil {
			t = j.arrive(f.Hash)
		}
		if a := t.assignment.Load(); a == nil || a.Target != f || a.tools != j.tools {
			t.assignment.Store(&assignment{Target: f, tools: j.tools})
		}
		j.schedule(t, f, since, orphans)
		current[f.Hash] = t
		delete(j.targets, f.Hash)
	}
	for hash, t := range j.targets {
		j.leave(hash, t)
	}
	j.targets = current
	found.Targets, found.Failures = nil, nil
	j.found = found
	j.checkLimit()
}

// arrive returns the target of this hash as it was if it has only just left, else a new one.
func (j *job) arrive(hash uint64) *target {
	t := j.leaving[hash]
	if t == nil {
		return &target{job: j}
	}
	delete(j.leaving, hash) // its pending retirement now does nothing
	t.successors = nil
	j.owner.clock.Cancel(t.task)
	t.interval = 0
	return t
}

// schedule begins to scrape the target at its interval. Scrapes that were due since another member gave it away are
// caught up on, if they are less than an interval ago.
func (j *job) schedule(t *target, f *discover.Target, since time.Time, orphans bool) {
	if t.interval == f.Interval {
		return
	}
	comes := t.interval == 0
	if !comes {
		j.owner.clock.Cancel(t.task)
	}
	t.interval = f.Interval
	place := f.Hash ^ j.seed
	if j.owner.cfg.AlignScrapes {
		place = 0
	}
	from := time.Now()
	if late := from.Sub(since); late > 0 && late < f.Interval {
		from = since
	}
	first := schedule.Next(from, f.Interval, place)
	if t.task == nil {
		first = first.Add(j.owner.cfg.InitialScrapeOffset)
	}
	t.task = j.owner.clock.Every(f.Interval, first, t.scrape, t.miss)
	if comes && orphans {
		j.adopt(t, f, first)
	}
}

// adopt scrapes an orphan at once, in addition to its turn: the member that has gone may have missed its last scrape.
// If it has not, one more does no harm. It does nothing if the turn comes soon.
func (j *job) adopt(t *target, f *discover.Target, turn time.Time) {
	soon := time.Now().Add(time.Duration(f.Hash % uint64(max(min(f.Interval/10, mostAdopting), 1))))
	if turn.Sub(soon) > f.Interval/4 {
		j.owner.clock.Ahead(t.task, soon)
	}
}

// leave retires the target, with stale markers, when it has missed two scrapes, unless it is assigned to another
// collector by then, or back to this one. Until then it may come back as if nothing had happened, except for its
// connection: a change of labels makes all targets new, with new connections.
func (j *job) leave(hash uint64, t *target) {
	missed, _ := j.owner.clock.Cancel(t.task)
	left := time.Now()
	t.hangUp()
	wait := time.Until(missed) + t.interval + t.interval/10
	j.leaving[hash] = t
	t.task = j.owner.clock.Once(wait, func(time.Time) {
		j.mu.Lock()
		gone := j.leaving[hash] == t
		if gone {
			delete(j.leaving, hash)
		}
		successors := t.successors
		j.mu.Unlock()
		if !gone {
			return
		}
		if j.isGiven(hash, left) {
			t.giveUp()
		} else {
			t.retire(missed, successors)
		}
		j.owner.forget(j)
	})
}

func (j *job) checkLimit() {
	limit := j.tools.cfg.TargetLimit
	if limit == 0 || uint(len(j.targets)) <= limit {
		j.tooMany.Store(nil)
		return
	}
	err := fmt.Errorf("target_limit exceeded (number of targets: %d, limit: %d)", len(j.targets), limit)
	j.tooMany.Store(&err)
}

// A moment is a copy of a job's state.
type moment struct {
	cfg     *promconfig.ScrapeConfig
	found   discover.Set
	targets map[uint64]*target
	ended   bool
}

// now returns a copy of the job's state, so that rendering it, which takes a while, delays nobody.
func (j *job) now() moment {
	j.mu.Lock()
	defer j.mu.Unlock()
	return moment{cfg: j.tools.cfg, found: j.found, targets: maps.Clone(j.targets), ended: j.ended}
}

// all returns the targets, those that are leaving included.
func (j *job) all() []*target {
	j.mu.Lock()
	defer j.mu.Unlock()
	return slices.AppendSeq(slices.Collect(maps.Values(j.targets)), maps.Values(j.leaving))
}

// halt stops the scraping of targets that are not leaving, and returns them.
func (j *job) halt() []*target {
	j.mu.Lock()
	defer j.mu.Unlock()
	for _, t := range j.targets {
		j.owner.clock.Cancel(t.task)
	}
	return slices.Collect(maps.Values(j.targets))
}
