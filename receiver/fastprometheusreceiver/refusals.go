// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package fastprometheusreceiver

import (
	"sync"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/collector/consumer/consumererror"
	"go.uber.org/zap"
)

// refusalLines is how many refused targets are logged per minute.
const refusalLines = 10

// refusals records which targets' metrics the pipeline refuses: for the gate, which then holds targets back, and for the
// log, which has a line when this begins and one when it is over, for the pipeline or for single targets.
type refusals struct {
	gate    *gate
	log     *zap.Logger
	scrapes atomic.Int64 // whose metrics were refused

	mu    sync.Mutex
	since time.Time // from when on lines were counted
	lines int
}

// count counts a scrape of the target whose metrics were refused.
func (r *refusals) count(t *target) {
	r.scrapes.Add(1)
	t.refused.Add(1)
}

// begin records that the pipeline refused a target's metrics.
func (r *refusals) begin(t *target, err error) {
	if consumererror.IsPermanent(err) {
		// A permanent error: the same metrics would be refused again, and it says nothing about others.
		r.tell(t, err)
		return
	}
	switch begins, refusing, holding := r.gate.refuse(&t.refusal, err); {
	case begins && holding:
		r.log.Warn("The pipeline refuses metrics: scraping about one target per second until it accepts them", zap.Error(err))
	case begins:
		r.log.Warn("At least one pipeline or exporter refuses the metrics of all targets: scraping continues for the others", zap.Error(err))
	case !refusing:
		r.tell(t, err)
	}
}

// end records that the pipeline accepted a target's metrics.
func (r *refusals) end(t *target) {
	if r.gate.take() {
		r.log.Info("The pipeline accepts metrics again")
	}
	if t.refusal.said {
		t.refusal.said = false
		r.log.Info("The pipeline accepts the metrics of a target again", t.have.names()...)
	}
}

// tell logs that a target's metrics are refused, once until they are accepted.
func (r *refusals) tell(t *target, err error) {
	if t.refusal.said || !r.mayTell() {
		return
	}
	t.refusal.said = true
	r.log.Warn("The pipeline refuses the metrics of a target", t.have.names(zap.Error(err))...)
}

// mayTell limits the lines about single targets.
func (r *refusals) mayTell() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if now := time.Now(); now.Sub(r.since) >= time.Minute {
		r.since, r.lines = now, 0
	}
	r.lines++
	return r.lines <= refusalLines
}
