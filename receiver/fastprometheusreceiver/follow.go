// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package fastprometheusreceiver

import (
	"errors"
	"maps"
	"reflect"
	"time"

	"go.uber.org/zap"

	"github.com/godwit-otel/godwit/receiver/fastprometheusreceiver/internal/allocator"
	"github.com/godwit-otel/godwit/receiver/fastprometheusreceiver/internal/discover"
)

// A follower applies changes: of what discovery finds, of scrape_config_files and of what the target allocator offers.
type follower struct {
	*scraper

	current reading          // of the files
	offered allocator.Answer // the last one
	broken  map[string]error // jobs of it that cannot be used

	wrong bool // the current files cannot be used
}

// run applies changes until the source closes.
func (f *follower) run() {
	var check <-chan time.Time
	if f.cfg.ReloadInterval > 0 && f.cfg.Prometheus.hasFiles() {
		ticker := time.NewTicker(f.cfg.ReloadInterval)
		defer ticker.Stop()
		check = ticker.C
	}
	for {
		select {
		case update, ok := <-f.source.Updates():
			if !ok {
				return
			}
			f.sync(update)
		case <-check:
			f.reload()
		case o := <-f.allocation.offers:
			o.answer <- f.accept(o.Answer)
		}
	}
}

// sync gives all jobs the targets of an update.
func (f *follower) sync(update discover.Update) {
	for _, j := range f.allJobs() {
		// An update from before a change of the configuration lacks the new jobs, and may have removed ones.
		if found, known := update.Groups[j.name]; known && !j.ended {
			j.sync(found, update.At, update.Orphans)
		}
	}
	f.findSuccessors()
}

// reload applies the configuration in the files, unless it is applied already. After a failure it tries again each
// time, since other files that the configuration names may come later.
func (f *follower) reload() {
	next, err := f.cfg.read()
	isTold := next.sum == f.current.sum
	if isTold && !f.wrong {
		return
	}
	if isTold && err == nil && f.cfg.sum() != next.sum {
		return // it was being written while it was read; the next call will find it complete
	}
	if err == nil {
		var s *setup
		if s, err = f.prepare(next.jobs, f.offered); err == nil {
			err = f.apply(s)
			f.tellBroken(s.broken)
		}
	}
	if f.wrong = err != nil; f.wrong && isTold {
		return
	}
	f.count(err)
	if err != nil {
		f.settings.Logger.Error("Keeping the old configuration: the changed files cannot be used", zap.Error(err))
		f.current.sum = next.sum
		return
	}
	f.settings.Logger.Info("Applied changed configuration files")
	f.current = next
}

// tellBroken logs the jobs of the target allocator that a change of the configuration has made invalid.
func (f *follower) tellBroken(now map[string]error) {
	for name, err := range now {
		if f.broken[name] == nil {
			f.settings.Logger.Error("Cannot use a job of the target allocator with the new configuration", zap.String("job", name), zap.Error(err))
		}
	}
	f.broken = now
}

// accept applies an offer. Jobs of it that cannot be used stay as they were, if they existed before.
func (f *follower) accept(offered allocator.Answer) verdict {
	s, err := f.prepare(f.current.jobs, offered)
	if err != nil {
		f.count(err)
		return verdict{err: err}
	}
	f.offered = offered
	before := f.broken
	f.broken = s.broken
	if isAsBroken(s.broken, before) && reflect.DeepEqual(s.allocated, f.allocatedJobs()) {
		return verdict{s.broken, s.logs.close()} // it was offered again, and is still wrong
	}
	if err = f.apply(s); err == nil && len(s.broken) > 0 {
		f.count(errBroken)
	} else {
		f.count(err)
	}
	return verdict{s.broken, err}
}

// isAsBroken reports whether the same jobs are wrong as before, and at least one.
func isAsBroken(now, before map[string]error) bool {
	return len(now) > 0 && maps.EqualFunc(now, before, func(error, error) bool { return true })
}

// errBroken marks a change of the configuration as failed, although some of it was applied.
var errBroken = errors.New("some jobs of the target allocator cannot be used")

// count records whether a change of the configuration succeeded.
func (f *follower) count(err error) {
	if err != nil {
		f.counters.rejected.Add(1)
	} else {
		f.counters.applied.Add(1)
	}
	f.noteChange(err)
}
