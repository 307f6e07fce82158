// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package fastprometheusreceiver

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	promconfig "github.com/prometheus/prometheus/config"

	"github.com/godwit-otel/godwit/receiver/fastprometheusreceiver/internal/allocator"
)

// A setup is a list of jobs and what each is scraped with.
type setup struct {
	own       []*promconfig.ScrapeConfig
	allocated []*promconfig.ScrapeConfig // from the target allocator, as far as they can be used
	broken    map[string]error           // errors of the target allocator's other jobs
	tools     map[string]*tools
	logs      failureLogs
}

// prepare sets up jobs. It fails if one of the configuration's own cannot be used. If one from the target allocator
// cannot, it stays as it was, if it existed.
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
		name := cfg.JobName
		if s.broken[name] == nil || s.tools[name] != nil {
			continue
		}
		kept := *r.toolsOf(name)
		var err error
		if kept.failures, err = s.logs.logger(cfg); err != nil { // its file is closed once the setup is applied
			s.broken[name] = errors.Join(s.broken[name], err)
		}
		s.tools[name] = &kept
		s.allocated = append(s.allocated, cfg)
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

// apply replaces all jobs by those of the setup.
func (r *scraper) apply(s *setup) error {
	old := r.set(s, func(name string) *job { return newJob(r, name) })
	for _, j := range r.allJobs() {
		if s.tools[j.name] == nil && !j.ended {
			j.end()
			r.forget(j)
		}
	}
	return errors.Join(old.close(), r.source.Apply(slices.Concat(s.own, s.allocated)))
}
