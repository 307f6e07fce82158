// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package fastprometheusreceiver

import (
	"cmp"
	"time"

	"github.com/prometheus/prometheus/model/labels"

	"github.com/godwit-otel/godwit/internal/inorder"
)

// A Snapshot is the state of a receiver's targets at a moment.
type Snapshot struct {
	Jobs []JobSnapshot
}

// A JobSnapshot is the state of one job.
type JobSnapshot struct {
	Name      string
	Targets   []TargetSnapshot
	Dropped   []labels.Labels // before relabelling, which dropped them; no more than keep_dropped_targets
	Drops     int             // all that were dropped
	Elsewhere int             // targets that other members have
}

// A TargetSnapshot is the state of one target.
type TargetSnapshot struct {
	URL        string
	Discovered labels.Labels // before relabelling
	Labels     labels.Labels // after it, reserved ones included
	Interval   time.Duration
	Timeout    time.Duration

	State        string // healthy, failing, unknown
	LastError    string
	LastScrape   time.Time
	LastDuration time.Duration
	Samples      int // on the last page
	PlanHits     int // expected lines of the last page
	PlanMisses   int // other lines of the last page
}

// Snapshot returns the state of all targets, sorted by job and URL. It costs nothing when nobody asks.
func (t *jobTable) Snapshot() Snapshot {
	var out Snapshot
	for _, j := range t.allJobs() {
		out.Jobs = append(out.Jobs, j.snapshot())
	}
	inorder.Sort(out.Jobs, func(a, b JobSnapshot) int { return cmp.Compare(a.Name, b.Name) })
	return out
}

func (j *job) snapshot() JobSnapshot {
	now := j.now()
	out := JobSnapshot{Name: j.name, Drops: now.found.Drops, Elsewhere: now.found.Elsewhere}
	for _, dropped := range now.found.Dropped {
		out.Dropped = append(out.Dropped, dropped.Labels(now.cfg))
	}
	for _, t := range now.targets {
		out.Targets = append(out.Targets, t.snapshot())
	}
	inorder.Sort(out.Targets, func(a, b TargetSnapshot) int { return cmp.Compare(a.URL, b.URL) })
	return out
}

func (t *target) snapshot() TargetSnapshot {
	a := t.assignment.Load()
	t.mu.Lock()
	s := t.status
	t.mu.Unlock()
	out := TargetSnapshot{
		URL: a.URL, Discovered: a.Discovered(), Labels: a.Labels, Interval: a.Interval, Timeout: a.Timeout,
		State: cmp.Or(s.state, stateUnknown), LastScrape: s.at, LastDuration: s.duration,
		Samples: s.samples, PlanHits: s.hits, PlanMisses: s.misses,
	}
	if s.err != nil {
		out.LastError = s.err.Error()
	}
	return out
}

// census counts targets by state.
func (t *jobTable) census() map[string]int {
	states := map[string]int{stateDropped: 0, stateElsewhere: 0, stateFailing: 0, stateHealthy: 0, stateUnknown: 0}
	for _, j := range t.allJobs() {
		j.mu.Lock()
		states[stateDropped] += j.found.Drops
		states[stateElsewhere] += j.found.Elsewhere
		for _, one := range j.targets {
			one.mu.Lock()
			states[cmp.Or(one.status.state, stateUnknown)]++
			one.mu.Unlock()
		}
		j.mu.Unlock()
	}
	return states
}
