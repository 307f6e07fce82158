// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package send

import (
	"fmt"
	"maps"
	"net/http"
	"sync"
	"time"

	"go.uber.org/zap"

	"github.com/godwit-otel/godwit/exporter/remotewriteexporter/internal/block"
)

// LaterError says that a destination would not serve a tenant for the moment, while it may well serve others: so whoever sends had
// better go on with those.
type LaterError struct {
	Done int // blocks that the destination is done with
	Wait time.Duration
	code int
}

func (l *LaterError) Error() string {
	if l.code == 0 {
		return "cannot deliver now: the destination does not answer the tenant"
	}
	return fmt.Sprintf("cannot deliver now: the destination answers the tenant with %d", l.code)
}

const (
	// minRefused is how many refusals are kept without a look at whose data is tried no more.
	minRefused = 1024
	// refusalOver is how long after its pause a refusal is forgotten: what is queued would have been tried again by then, so its
	// data was dropped.
	refusalOver = 10 * time.Minute
)

// tenants are those that a destination does not serve for the moment. They are as many as there are tenants at the most, and those whose
// data was dropped of late.
type tenants struct {
	longest time.Duration // that a limit holds without a trial

	mu       sync.Mutex
	refused  map[string]*refusal
	most     int                // so many are kept before those are looked for that are over
	complain time.Time          // when the log may have the next line about a tenant
	limits   map[string]*limits // of tenants that were sent something before
	recent   map[string]*limits // of those that were lately
	turned   time.Time          // when those that were not were forgotten
}

// refusal is a tenant's failures in a row.
type refusal struct {
	attempts int
	spread   float64   // of its pauses
	since    time.Time // the first attempt with the data that was refused
	until    time.Time // the end of the pause
	counted  bool      // as a failure of the destination
}

// isOver tells whether it was of data that was dropped since, in the queue: what comes now has its own attempts.
func (r *refusal) isOver(now time.Time) bool { return now.Sub(r.until) > refusalOver }

// tenanted tells whether what is wrong with a request may be its tenant.
func (d *Destination) tenanted(b block.Block) bool { return d.cfg.Tenants != nil && b.Tenant != "" }

// limitsHold is for how long, and no less, the limits of a tenant are kept that is sent nothing.
const limitsHold = 10 * time.Minute

// limitsOf are a tenant's.
func (t *tenants) limitsOf(tenant string) *limits {
	t.mu.Lock()
	defer t.mu.Unlock()
	if now := time.Now(); t.recent == nil || now.Sub(t.turned) > limitsHold {
		t.limits, t.recent, t.turned = t.recent, map[string]*limits{}, now
	}
	l := t.recent[tenant]
	if l == nil {
		if l = t.limits[tenant]; l == nil {
			l = &limits{sizes: ceiling{longest: t.longest}}
		}
		t.recent[tenant] = l
	}
	return l
}

// attempts is how often the tenant's data has been refused, and since when; or now.
func (t *tenants) attempts(tenant string, now time.Time) (int, time.Time) {
	t.mu.Lock()
	defer t.mu.Unlock()
	r := t.refused[tenant]
	switch {
	case r == nil:
		return 0, now
	case r.isOver(now):
		delete(t.refused, tenant)
		return 0, now
	}
	return r.attempts, r.since
}

// well notes that the destination serves a tenant, or that its data was dropped: what follows has its own attempts.
func (t *tenants) well(tenant string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.refused, tenant)
}

// later notes that a tenant was refused by the answer to a request that began at some time, or got none, and says how long its data is to
// wait. Answers to requests that were under way together count once.
func (d *Destination) later(tenant string, v verdict, a answer, began time.Time) *LaterError {
	d.telemetry.Retried(a.reason())
	t := &d.served
	t.mu.Lock()
	now := time.Now()
	r := t.refused[tenant]
	first := r == nil
	if first {
		if t.refused == nil {
			t.refused = map[string]*refusal{}
		}
		if len(t.refused) >= max(t.most, minRefused) {
			maps.DeleteFunc(t.refused, func(_ string, r *refusal) bool { return r.isOver(now) })
			t.most = 2 * len(t.refused)
		}
		r = &refusal{since: now, spread: d.cfg.Retry.spread()}
		t.refused[tenant] = r
	}
	wait := r.until.Sub(now)
	if wait <= 0 {
		if wait = d.cfg.Retry.interval(r.attempts, v == retrySlowly, r.spread); a.retryAfter > 0 {
			wait = jitter(min(a.retryAfter, d.cfg.Retry.MaxRetryAfter), 0.1)
		}
		r.attempts++
		r.until = now.Add(wait)
	}
	news := first && !now.Before(t.complain)
	if news {
		t.complain = now.Add(complainInterval)
	}
	// Servers that fail may do so for all: each tenant counts as one failure of the destination, unless others are served. That there is
	// no answer at all always counts, unless others got one meanwhile. Any other answer shows that it is there.
	alive := a.code != 0 && a.code/100 != 5 && a.code != http.StatusRequestTimeout
	counts := !alive && !r.counted && !d.gate.servesSome()
	if a.code == 0 {
		counts = !d.gate.servedSince(began)
	}
	r.counted = r.counted || counts
	t.mu.Unlock()

	switch {
	case alive:
		d.gate.succeeded()
		d.setDown(false, a)
	case counts:
		d.report(retry, answer{code: a.code, text: a.text, err: a.err})
	default:
		d.gate.leave()
	}
	if news && (a.code != 0 || !counts) {
		d.log.Warn("destination does not accept the data of a tenant; it stays in the queue and is retried, others continue",
			append(a.fields(), zap.String("tenant", d.cfg.Tenants.Name(tenant)))...)
	}
	return &LaterError{Wait: wait, code: a.code}
}
