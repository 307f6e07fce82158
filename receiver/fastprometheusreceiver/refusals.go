// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package fastprometheusreceiver

import (
	"sync"
	"time"

	"go.opentelemetry.io/collector/consumer/consumererror"
	"go.uber.org/zap"
)

// refusalLines is how many refused targets are logged per minute.
const refusalLines = 10

// refusals limits the log lines about targets whose metrics are refused.
type refusals struct {
	mu    sync.Mutex
	since time.Time
	lines int
}

func (r *refusals) mayTell() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if now := time.Now(); now.Sub(r.since) >= time.Minute {
		r.since, r.lines = now, 0
	}
	r.lines++
	return r.lines <= refusalLines
}

// refuse records that a target's metrics were refused, and lost.
func (r *scraper) refuse(t *target, err error) {
	r.counters.refused.Add(1)
	t.refused.Add(1)
	if r.sending.Err() != nil {
		return // shutting down: that says nothing about the pipeline
	}
	if consumererror.IsPermanent(err) {
		// A permanent error: the same metrics would be refused again, and it says nothing about others.
		r.tellRefused(t, err)
		return
	}
	switch begins, refusing, holding := r.gate.refuse(&t.refusal, err); {
	case begins && holding:
		r.settings.Logger.Warn("The pipeline refuses metrics: scraping about one target per second until it accepts them", zap.Error(err))
	case begins:
		r.settings.Logger.Warn("At least one pipeline or exporter refuses the metrics of all targets: scraping continues for the others", zap.Error(err))
	case !refusing:
		r.tellRefused(t, err)
	}
}

func (r *scraper) tellRefused(t *target, err error) {
	if t.refusal.said || !r.refusals.mayTell() {
		return
	}
	t.refusal.said = true
	r.settings.Logger.Warn("The pipeline refuses the metrics of a target",
		zap.String("job", t.job.name), zap.String("target", t.have.URL), zap.Error(err))
}

// take records that a target's metrics were accepted.
func (r *scraper) take(t *target) {
	if r.gate.take() {
		r.settings.Logger.Info("The pipeline accepts metrics again")
	}
	if t.refusal.said {
		t.refusal.said = false
		r.settings.Logger.Info("The pipeline accepts the metrics of a target again",
			zap.String("job", t.job.name), zap.String("target", t.have.URL))
	}
}
