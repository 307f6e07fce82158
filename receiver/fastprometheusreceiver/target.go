// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package fastprometheusreceiver

import (
	"errors"
	"maps"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/common/model"
	"go.uber.org/zap"

	"github.com/godwit-otel/godwit/internal/redact"
	"github.com/godwit-otel/godwit/receiver/fastprometheusreceiver/internal/discover"
	"github.com/godwit-otel/godwit/receiver/fastprometheusreceiver/internal/fetch"
	"github.com/godwit-otel/godwit/receiver/fastprometheusreceiver/internal/page"
	"github.com/godwit-otel/godwit/receiver/fastprometheusreceiver/internal/schedule"
)

// A target is scraped by one goroutine at a time, and has none in between.
type target struct {
	job        *job
	assignment atomic.Pointer[assignment] // the wanted state, used by the next scrape that begins
	task       *schedule.Task             // guarded by job.mu, like interval and successors
	interval   time.Duration
	successors []*target // if it is leaving: those that stay, with the same public labels

	busy    sync.Mutex // held by the scrape in flight; guards the fields below
	have    *assignment
	fetch   *fetch.Target
	page    *page.Target
	scraped bool
	quick   bool    // its last page was read in little time
	leftOut bool    // its last scrape was skipped because the backlog was full
	refusal refusal // of its metrics

	phase, last      atomic.Int32 // what its scrape is doing, and what may have delayed it
	skipped, refused atomic.Int64 // scrapes

	mu     sync.Mutex
	status status
	said   said // kept only for the API
}

// An assignment is what to scrape, and with what.
type assignment struct {
	*discover.Target

	tools *tools
}

// names returns the fields of a log line about the target. Those with the same URL but for the values of parameters, as of a
// probe, usually differ in their instance.
func (a *assignment) names(more ...zap.Field) []zap.Field {
	return append([]zap.Field{
		zap.String("job", a.tools.cfg.JobName), zap.String("target", a.URL), zap.String("instance", a.Labels.Get(model.InstanceLabel)),
	}, more...)
}

// status is the result of the last scrape.
type status struct {
	state    string // one of the states in metadata.yaml; empty means unknown
	err      error
	at       time.Time
	duration time.Duration
	samples  int
	hits     int
	misses   int
	wire     int    // bytes of the page as transferred
	reason   string // the kind of err
}

const (
	stateHealthy   = "healthy"
	stateFailing   = "failing"
	stateUnknown   = "unknown"
	stateDropped   = "dropped"
	stateElsewhere = "elsewhere"
)

// scrape fetches and reads the page, and hands on its metrics, or those of a failed scrape.
func (t *target) scrape(at time.Time) {
	t.busy.Lock()
	defer t.busy.Unlock()
	t.scrapeBusy(at)
}

// scrapeLast scrapes the target once more on shutdown, unless a scrape is still in progress, which is then the last.
func (t *target) scrapeLast(at time.Time) {
	if t.busy.TryLock() {
		defer t.busy.Unlock()
		t.scrapeBusy(at)
	}
}

// scrapeBusy is scrape for callers that hold busy.
func (t *target) scrapeBusy(at time.Time) {
	r := t.job.owner
	if !t.isWorthIt() {
		return
	}
	t.enter(phaseTarget)
	defer t.rest()
	if before := t.takeAssignment(); before != nil {
		defer t.replace(before, at)
	}

	start := time.Now()
	if tooMany := t.job.tooMany.Load(); tooMany != nil {
		t.fail(at, start, reasonTargetLimit, *tooMany)
		return
	}
	in := &arrival{target: t, at: at, start: start, learner: learner{home: r.learners}}
	defer in.body.Close()
	defer in.learner.end()
	response, err := t.fetch.Get(r.fetching, r.buffers.Take(minBuffer), in.part)
	if r.fetching.Err() != nil {
		r.buffers.Give(response.Body)
		return // shutting down: that says nothing about the target
	}
	slot := in.resume()
	if r.out.isOver() {
		slot.release()
		r.buffers.Give(response.Body)
		r.out.refuse(t, r.out.sending.Err())
		return // nobody waits for it any more
	}
	result, why, err := in.end(start, response, err, slot.decoder)
	in.body.Close()
	r.buffers.Give(response.Body) // before the metrics are handed on, which may take long
	t.report(at, time.Since(start), why, err, result)
	r.out.hand(t, result, slot)
}

// rest ends a scrape.
func (t *target) rest() {
	r := t.job.owner
	t.enter(phaseIdle)
	r.skips.settle()
	if r.fetching.Err() != nil {
		t.fetch.Close() // Shutdown may not have waited
	}
}

// isWorthIt reports whether the pipeline would take a scrape's metrics. If not, the scrape is skipped, and counted.
func (t *target) isWorthIt() bool {
	r := t.job.owner
	if !r.out.refusals.gate.admits(&t.refusal) {
		r.skips.count(skipRefused, t)
		return false
	}
	if t.leftOut = r.backlog.isFull(t.leftOut); t.leftOut {
		r.skips.count(skipBacklog, t)
		return false
	}
	return true
}

// takeSlot waits for a slot.
func (t *target) takeSlot(r rank) *slot {
	before := t.enter(phaseWaiting)
	t.last.Store(int32(phaseWaiting))
	slot := t.job.owner.slots.take(r)
	t.enter(before)
	return slot
}

// fail hands on the metrics of a scrape whose page could not be fetched.
func (t *target) fail(at, start time.Time, why string, err error) {
	slot := t.takeSlot(quick)
	duration := time.Since(start)
	result := t.page.Fail(at, page.Report{Duration: duration, Err: err})
	t.report(at, duration, why, err, result)
	t.job.owner.out.hand(t, result, slot)
}

// report counts the scrape and records its result. Only a change of state is logged.
func (t *target) report(at time.Time, duration time.Duration, why string, err error, result page.Result) {
	r := t.job.owner
	t.scraped = true
	r.counters.scrapes.Add(1)
	state := stateHealthy
	if err != nil {
		err = redact.Error(err, t.fetch.Secrets()...) // it may quote what the target answered
		state = stateFailing
		r.counters.failed(why)
		if log := t.job.failures(); log != nil {
			log.Error(err.Error(), "target", redact.URL(t.have.URL), "instance", t.have.Labels.Get(model.InstanceLabel))
		}
	}
	t.mu.Lock()
	before := t.status.state
	t.status = status{
		state: state, err: err, at: at, duration: duration,
		samples: result.Samples, hits: result.Hits, misses: result.Misses, reason: why,
	}
	if err == nil {
		t.status.wire = t.fetch.Size()
	}
	t.mu.Unlock()
	if r.cfg.APIServer.Enabled && err == nil && (result.Misses > 0 || before != stateHealthy) {
		said := describe(t.page, result)
		t.mu.Lock()
		t.said = said
		t.mu.Unlock()
	}
	switch {
	case state == stateFailing && before != stateFailing:
		r.settings.Logger.Warn("Target is down", t.have.names(zap.Error(err))...)
	case state == stateHealthy && before == stateFailing:
		r.settings.Logger.Info("Target is up again", t.have.names()...)
	}
}

// takeAssignment applies the current configuration and what discovery found. If pages are read in another way from now
// on, it returns what is known of those before.
func (t *target) takeAssignment() (before *page.Target) {
	want, have := t.assignment.Load(), t.have
	if want == have {
		return nil
	}
	if have == nil || want.tools.page != have.tools.page {
		if t.scraped {
			before = t.page
		}
		t.page = want.tools.page.NewTarget(want.Resource(), want.Labels)
	}
	t.page.Timeout = want.Timeout
	if have == nil || want.tools.client != have.tools.client || want.tools.accept != have.tools.accept || want.Timeout != have.Timeout {
		if have != nil {
			t.fetch.Close()
		}
		if have != nil && want.tools.client != have.tools.client {
			have.tools.client.Close()
		}
		t.fetch = want.tools.client.NewTarget(want.URL, want.Socket, want.Timeout, want.tools.accept)
	}
	t.have = want
	return before
}

// replace ends the series that the target had when its pages were read in another way, and has no more. A shutdown ends
// none.
func (t *target) replace(before *page.Target, at time.Time) {
	if !t.page.Past || t.job.owner.out.isOver() {
		return
	}
	slot := t.takeSlot(quick)
	t.job.owner.out.hand(t, before.RetireBeside(at, t.page.Shown()), slot)
}

// retire ends the series of a target that is gone for good, except those that one of its successors continues.
func (t *target) retire(at time.Time, successors []*target) {
	continued := page.Shown{}
	for _, s := range successors {
		maps.Copy(continued, s.shown())
	}
	t.busy.Lock()
	if t.scraped {
		t.enter(phaseWaiting)
		slot := t.takeSlot(quick)
		t.job.owner.out.hand(t, t.page.RetireBeside(at, continued), slot)
		t.enter(phaseIdle)
	}
	t.job.owner.out.refusals.gate.leave(&t.refusal)
	t.busy.Unlock()
	t.close()
}

// shown returns the series of the target's last page, nil if it has none.
func (t *target) shown() page.Shown {
	t.busy.Lock()
	defer t.busy.Unlock()
	if t.page == nil {
		return nil
	}
	return t.page.Shown()
}

// giveUp forgets a target whose series another collector continues.
func (t *target) giveUp() {
	t.busy.Lock()
	if t.page != nil {
		t.page.Leave()
	}
	t.job.owner.out.refusals.gate.leave(&t.refusal)
	t.busy.Unlock()
	t.close()
}

// close closes the connection.
func (t *target) close() {
	t.busy.Lock()
	defer t.busy.Unlock()
	if t.fetch != nil {
		t.fetch.Close()
	}
}

// hangUp closes the connection unless a scrape is using it.
func (t *target) hangUp() {
	if !t.busy.TryLock() {
		return
	}
	defer t.busy.Unlock()
	if t.fetch != nil {
		t.fetch.Close()
	}
}

// pageReason distinguishes pages beyond a limit from malformed ones.
func pageReason(err error) string {
	switch {
	case errors.Is(err, page.ErrLimit):
		return reasonLimit
	case errors.Is(err, page.ErrMemory):
		return reasonPageMemory
	default:
		return reasonParse
	}
}
