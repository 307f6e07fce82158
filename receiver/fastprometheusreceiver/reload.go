// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package fastprometheusreceiver

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	promconfig "github.com/prometheus/prometheus/config"
	"go.uber.org/zap"

	"github.com/godwit-otel/godwit/receiver/fastprometheusreceiver/internal/allocator"
)

// reload applies the configuration as it is in its files, if that is not how it is applied already.
func (r *scraper) reload(current reading) reading {
	next, err := r.cfg.read()
	if next.sum == current.sum {
		return current
	}
	if err == nil {
		var s *setup
		if s, err = r.prepare(next.jobs, r.offered); err == nil {
			err = r.apply(s)
			r.tellBroken(s.broken)
		}
	}
	r.count(err)
	if err != nil {
		r.settings.Logger.Error("Keeping the old configuration: its changed files cannot be used", zap.Error(err))
		return reading{jobs: current.jobs, sum: next.sum}
	}
	r.settings.Logger.Info("Applied changed configuration files")
	return next
}

// tellBroken tells of jobs of the target allocator that a change of the configuration has made wrong.
func (r *scraper) tellBroken(now map[string]error) {
	for name, err := range now {
		if r.broken[name] == nil {
			r.settings.Logger.Error("Cannot use a job of the target allocator's with the new configuration", zap.String("job", name), zap.Error(err))
		}
	}
	r.broken = now
}

// count notes what came of a change of the configuration.
func (r *scraper) count(err error) {
	if err != nil {
		r.counters.rejected.Add(1)
	} else {
		r.counters.applied.Add(1)
	}
	r.mu.Lock()
	r.rejected = err != nil
	r.mu.Unlock()
}

// A setup is jobs with what they are scraped with.
type setup struct {
	own       []*promconfig.ScrapeConfig
	allocated []*promconfig.ScrapeConfig // by the target allocator, as far as they can be used
	broken    map[string]error           // jobs of the target allocator that cannot be used
	tools     map[string]*tools
	logs      failureLogs
}

// prepare sets up jobs. It fails when one of the configuration's own cannot be used. One that the target allocator offers is
// set up as it was, if it was there, when it cannot be used.
func (r *scraper) prepare(own []*promconfig.ScrapeConfig, offered allocator.Answer) (*setup, error) {
	s := &setup{own: own, broken: maps.Clone(offered.Broken), tools: map[string]*tools{}, logs: failureLogs{}}
	var errs []error
	for _, cfg := range own {
		if err := r.equip(s, cfg); err != nil {
			errs = append(errs, fmt.Errorf("cannot set up job %q: %w", cfg.JobName, err))
		}
	}
	if err := errors.Join(errs...); err != nil {
		return nil, errors.Join(err, s.logs.close())
	}
	if s.broken == nil {
		s.broken = map[string]error{}
	}
	for _, offer := range offered.Jobs {
		if s.tools[offer.JobName] != nil {
			s.broken[offer.JobName] = errors.New("both `config` and the target allocator have it")
			continue
		}
		cfg, err := complete(offer, r.cfg.MaxBodySize)
		if err == nil {
			err = r.equip(s, cfg)
		}
		if err != nil {
			s.broken[offer.JobName] = err
			continue
		}
		s.allocated = append(s.allocated, cfg)
	}
	for _, cfg := range r.allocatedJobs() {
		if s.broken[cfg.JobName] != nil && s.tools[cfg.JobName] == nil {
			s.tools[cfg.JobName] = r.toolsOf(cfg.JobName)
			s.allocated = append(s.allocated, cfg)
		}
	}
	slices.SortFunc(s.allocated, func(a, b *promconfig.ScrapeConfig) int { return strings.Compare(a.JobName, b.JobName) })
	return s, nil
}

// equip makes what a job is scraped with.
func (r *scraper) equip(s *setup, cfg *promconfig.ScrapeConfig) error {
	g, err := r.newTools(cfg, r.toolsOf(cfg.JobName))
	if err != nil {
		return err
	}
	if g.failures, err = s.logs.logger(cfg); err != nil {
		return err
	}
	s.tools[cfg.JobName] = g
	return nil
}

// apply makes the jobs those of the setup, and no others.
func (r *scraper) apply(s *setup) error {
	r.mu.Lock()
	for name, g := range s.tools {
		if r.jobs[name] == nil {
			r.jobs[name] = newJob(r, name)
			r.made++
		}
		r.jobs[name].equip(g)
	}
	old := r.logs
	r.logs = s.logs
	r.allocated, r.applied = s.allocated, time.Now()
	r.mu.Unlock()
	for _, j := range r.allJobs() {
		if s.tools[j.name] == nil && !j.ended {
			j.end()
			r.forget(j)
		}
	}
	return errors.Join(old.close(), r.source.Apply(slices.Concat(s.own, s.allocated)))
}

// allocatedJobs are those of the target allocator's that are applied.
func (r *scraper) allocatedJobs() []*promconfig.ScrapeConfig {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.allocated
}

func (r *scraper) toolsOf(name string) *tools {
	r.mu.Lock()
	defer r.mu.Unlock()
	if j := r.jobs[name]; j != nil {
		return j.tools
	}
	return nil
}
