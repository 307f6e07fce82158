// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package fastprometheusreceiver

import (
	"sync"
	"sync/atomic"
	"time"

	"go.uber.org/zap"
)

// A skip is the reason why a scrape that was due was not made.
type skip int

const (
	skipBacklog     skip = iota // metrics waiting in the pipeline take the memory that they may
	skipConcurrency             // as many scrapes are in progress as allowed
	skipPipeline                // the target's last metrics are still in the pipeline
	skipReading                 // its last page is being read, or waits for a processor
	skipRefused                 // the pipeline refuses metrics
	skipTarget                  // the target has not answered yet
	skipKinds
)

// nameTarget is the name both of a phase and of a reason.
const nameTarget = "target"

// skipReasons are the values of the metric's attribute, sorted.
var skipReasons = [skipKinds]string{"backlog", "concurrency", "pipeline", "reading", "refused", nameTarget}

// skipWords are the explanations for the log, with advice.
var skipWords = [skipKinds]string{
	skipBacklog:     "the pipeline is slow, and the metrics that wait in it take as much memory as they may",
	skipConcurrency: "as many scrapes are under way as `max_concurrent_scrapes` allows",
	skipPipeline:    "the pipeline takes longer for metrics than targets' intervals are",
	skipReading:     "there are not enough processors to read all pages in time",
	skipTarget:      "targets take longer to answer than their intervals are",
}

// calm is how long no scrape must have been skipped for the log to say that it is over.
const calm = time.Minute

// skips counts scrapes that were due and not made. For each reason, the log has one line when this begins and one when
// it is over.
type skips struct {
	log    *zap.Logger
	counts [skipKinds]atomic.Int64
	active atomic.Int32 // reasons that are logged as begun

	mu    sync.Mutex
	kinds [skipKinds]struct {
		active bool
		last   time.Time
		count  int64 // when it began
	}
}

func (s *skips) total() (n int64) {
	for i := range s.counts {
		n += s.counts[i].Load()
	}
	return n
}

// count records that a scrape of the target was skipped.
func (s *skips) count(k skip, t *target) {
	n := s.counts[k].Add(1)
	t.skipped.Add(1)
	if k == skipRefused {
		return // it is already logged that the pipeline refuses
	}
	s.mu.Lock()
	kind := &s.kinds[k]
	begins := !kind.active
	kind.last = time.Now()
	if begins {
		kind.active, kind.count = true, n-1
		s.active.Add(1)
	}
	s.mu.Unlock()
	if begins {
		s.log.Warn("Skipping scrapes: "+skipWords[k], t.assignment.Load().names(zap.String("reason", skipReasons[k]))...)
	}
}

// settle logs what is over.
func (s *skips) settle() {
	if s.active.Load() == 0 {
		return
	}
	var left [skipKinds]int64
	s.mu.Lock()
	for k := range s.kinds {
		if kind := &s.kinds[k]; kind.active && time.Since(kind.last) >= calm {
			kind.active = false
			s.active.Add(-1)
			left[k] = s.counts[k].Load() - kind.count
		}
	}
	s.mu.Unlock()
	for k, n := range left {
		if n > 0 {
			s.log.Info("No more scrapes are skipped", zap.String("reason", skipReasons[k]), zap.Int64("left out", n))
		}
	}
}

// A phase is what a scrape is doing.
type phase int32

const (
	phaseIdle     phase = iota
	phaseTarget         // waits for the target's answer
	phaseWaiting        // waits for a processor, to read the answer or to continue with it
	phaseReading        // reads it
	phasePipeline       // hands on its metrics
	phases
)

var phaseNames = [phases]string{"idle", nameTarget, "waiting", "reading", "pipeline"}

// enter records the next phase of the target's scrape. It returns the last one.
func (t *target) enter(p phase) phase {
	return phase(t.phase.Swap(int32(p)))
}

// miss is called when the target is due and not scraped, because its last scrape is still in progress or none may
// begin.
func (t *target) miss() {
	r := t.job.owner
	s := &r.skips
	switch p := phase(t.phase.Load()); {
	case p == phaseWaiting && r.backlog.isFull(false): // those in the pipeline keep their places until there is room
		s.count(skipBacklog, t)
	case p == phaseIdle && r.cfg.MaxConcurrentScrapes > 0:
		s.count(skipConcurrency, t)
	case p == phaseIdle:
		s.count(phase(t.last.Load()).skips(), t)
	default:
		s.count(p.skips(), t)
	}
}

// skips returns the reason for a skip caused by a scrape in this phase.
func (p phase) skips() skip {
	switch p {
	case phasePipeline:
		return skipPipeline
	case phaseTarget:
		return skipTarget
	default:
		return skipReading
	}
}

// inFlight counts scrapes by phase.
func (t *jobTable) inFlight() (n [phases]int64) {
	for _, j := range t.allJobs() {
		for _, one := range j.all() {
			n[one.phase.Load()]++
		}
	}
	return n
}
