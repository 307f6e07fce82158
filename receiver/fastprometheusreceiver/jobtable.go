// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package fastprometheusreceiver

import (
	"slices"
	"sync"
	"time"

	promconfig "github.com/prometheus/prometheus/config"

	"github.com/godwit-otel/godwit/receiver/fastprometheusreceiver/internal/page"
)

// A jobTable has the jobs that are scraped, and ended ones that still have something to do. The former come from a
// setup.
type jobTable struct {
	mu        sync.Mutex
	jobs      map[string]*job
	made      int                        // number of jobs so far
	logs      failureLogs                // of the setup
	allocated []*promconfig.ScrapeConfig // jobs of the setup that come from the target allocator
	applied   time.Time                  // when it came
	rejected  bool                       // a later change was wrong
}

// set gives jobs the configuration of a setup, makes new ones, and returns the logs of the setup before. Jobs that are
// not in it stay.
func (t *jobTable) set(s *setup, newJob func(name string) *job) failureLogs {
	t.mu.Lock()
	defer t.mu.Unlock()
	for name, g := range s.tools {
		if t.jobs[name] == nil {
			t.jobs[name] = newJob(name)
			t.made++
		}
		t.jobs[name].equip(g)
	}
	old := t.logs
	t.logs, t.allocated, t.applied = s.logs, s.allocated, time.Now()
	return old
}

// forget removes a job that has ended and has nothing left to do.
func (t *jobTable) forget(j *job) {
	t.mu.Lock()
	defer t.mu.Unlock()
	j.mu.Lock()
	defer j.mu.Unlock()
	if t.jobs[j.name] != j { // it was removed before; there may be another one of its name by now
		return
	}
	if j.ended && len(j.targets)+len(j.leaving) == 0 {
		delete(t.jobs, j.name)
		j.tools.client.Close()
	}
}

func (t *jobTable) allJobs() []*job {
	t.mu.Lock()
	defer t.mu.Unlock()
	out := make([]*job, 0, len(t.jobs))
	for _, j := range t.jobs {
		out = append(out, j)
	}
	return out
}

// findSuccessors finds, for targets that are leaving, others with the same public labels, as after a job was given another
// name or path, or a pod was replaced. Series that these have, too, do not end.
func (t *jobTable) findSuccessors() {
	jobs := t.allJobs()
	isLeaving := func(j *job) bool {
		j.mu.Lock()
		defer j.mu.Unlock()
		return len(j.leaving) > 0
	}
	if !slices.ContainsFunc(jobs, isLeaving) {
		return
	}
	staying := map[uint64][]*target{}
	for _, j := range jobs {
		j.mu.Lock()
		for _, one := range j.targets {
			public := one.assignment.Load().Public
			staying[public] = append(staying[public], one)
		}
		j.mu.Unlock()
	}
	for _, j := range jobs {
		j.mu.Lock()
		for _, one := range j.leaving {
			one.successors = staying[one.assignment.Load().Public]
		}
		j.mu.Unlock()
	}
}

// allocatedJobs returns the target allocator's jobs that are applied.
func (t *jobTable) allocatedJobs() []*promconfig.ScrapeConfig {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.allocated
}

// toolsOf returns what targets of a job are scraped with, nil if there is no such job.
func (t *jobTable) toolsOf(name string) *tools {
	t.mu.Lock()
	defer t.mu.Unlock()
	if j := t.jobs[name]; j != nil {
		return j.tools
	}
	return nil
}

// noteChange records whether the last change was wrong.
func (t *jobTable) noteChange(err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.rejected = err != nil
}

// closeLogs closes what failures are logged to, at the end.
func (t *jobTable) closeLogs() error {
	logs := t.logs
	t.logs = nil
	return logs.close()
}

// plans returns how many plans there are and the memory they take.
func (t *jobTable) plans() (count, size int64) {
	seen := map[*page.Job]bool{}
	for _, j := range t.allJobs() {
		j.mu.Lock()
		p := j.tools.page
		j.mu.Unlock()
		if seen[p] {
			continue
		}
		seen[p] = true
		stats := p.Stats()
		count += int64(stats.Plans)
		size += stats.Bytes
	}
	return count, size
}
