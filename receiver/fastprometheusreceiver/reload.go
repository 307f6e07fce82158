// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package fastprometheusreceiver

import (
	"errors"
	"fmt"

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
		err = r.apply(next.jobs)
	}
	if err != nil {
		r.counters.rejected.Add(1)
		r.settings.Logger.Error("Keeping the configuration: its files have changed for the worse", zap.Error(err))
		return next
	}
	r.counters.applied.Add(1)
	r.settings.Logger.Info("Applied changed configuration files")
	return next
}

// apply makes the jobs these, or changes nothing if one of them cannot be made.
func (r *scraper) apply(configs []*promconfig.ScrapeConfig) error {
	gears := make(map[string]*gear, len(configs))
	logs := failureLogs{}
	var errs []error
	for _, cfg := range configs {
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
		}
		r.jobs[name].equip(g)
	}
	old := r.logs
	r.logs = logs
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
