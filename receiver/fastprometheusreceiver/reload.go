// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package fastprometheusreceiver

import (
	"errors"
	"fmt"
	"slices"
	"time"

	promconfig "github.com/prometheus/prometheus/config"
	"go.uber.org/zap"
)

// reload applies the configuration as it is in its files, if that is not how it is applied already.
func (r *scraper) reload(current reading) reading {
	next, err := r.cfg.read()
	if next.sum == current.sum {
		return current
	}
	if err == nil {
		err = r.apply(next.jobs, r.allocated)
	}
	r.count(err)
	if err != nil {
		r.settings.Logger.Error("Keeping the configuration: its files have changed for the worse", zap.Error(err))
		return reading{jobs: current.jobs, sum: next.sum}
	}
	r.settings.Logger.Info("Applied changed configuration files")
	return next
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

// apply makes the jobs these, or changes nothing if one of them cannot be made.
func (r *scraper) apply(own, allocated []*promconfig.ScrapeConfig) error {
	configs := slices.Concat(own, allocated)
	gears := make(map[string]*gear, len(configs))
	logs := failureLogs{}
	var errs []error
	for _, cfg := range configs {
		if gears[cfg.JobName] != nil {
			errs = append(errs, fmt.Errorf("cannot set up job %q: both `config` and the target allocator have it", cfg.JobName))
			continue
		}
		g, err := r.newGear(cfg, r.gearOf(cfg.JobName))
		if err == nil {
			g.failures, err = logs.logger(cfg)
		}
		if err != nil {
			errs = append(errs, fmt.Errorf("cannot set up job %q: %w", cfg.JobName, err))
		}
		gears[cfg.JobName] = g
	}
	if err := errors.Join(errs...); err != nil {
		return errors.Join(err, logs.close())
	}
	r.mu.Lock()
	for name, g := range gears {
		if r.jobs[name] == nil {
			r.jobs[name] = newJob(r, name)
			r.made++
		}
		r.jobs[name].equip(g)
	}
	old := r.logs
	r.logs = logs
	r.allocated, r.applied = allocated, time.Now()
	r.mu.Unlock()
	for _, j := range r.allJobs() {
		if gears[j.name] == nil && !j.ended {
			j.end()
			r.forget(j)
		}
	}
	return errors.Join(old.close(), r.source.Apply(configs))
}

func (r *scraper) gearOf(name string) *gear {
	r.mu.Lock()
	defer r.mu.Unlock()
	if j := r.jobs[name]; j != nil {
		return j.gear
	}
	return nil
}
