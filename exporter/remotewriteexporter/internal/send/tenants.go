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

// LaterError means that a destination will not serve a tenant for the moment, although it may serve others: the sender
// should continue with those.
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
	// minRefused is how many refusals are kept before expired ones are looked for.
	minRefused = 1024
	// refusalOver is how long after its pause a refusal is forgotten: queued data would have been tried again by then,
	// so it was dropped.
	refusalOver = 10 * time.Minute
)

// tenants are those that a destination does not serve for the moment. There are at most as many as tenants with data,
// and with data that was dropped lately.
type tenants struct {
	longest time.Duration // limit of a pause without a trial

	mu       sync.Mutex
	refused  map[string]*refusal
	most     int                // refusals kept before expired ones are looked for
	complain time.Time          // when the next line about a tenant may be logged
	limits   map[string]*limits // of tenants that were sent something
	recent   map[string]*limits // of those since the last turn
	turned   time.Time          // when others were forgotten
}

// refusal is a tenant's consecutive failures.
type refusal struct {
	attempts int
	spread   float64   // of its pauses
	since    time.Time // first attempt with the data that was refused
	until    time.Time // the end of the pause
	counted  bool      // it counts as a failure of the destination
}

// isOver reports whether it was about data that the queue has since dropped: later data has its own attempts.
func (r *refusal) isOver(now time.Time) bool { return now.Sub(r.until) > refusalOver }

// tenanted reports whether a request's failure may be about its tenant.
func (d *Destination) tenanted(b block.Block) bool { return d.cfg.Tenants != nil && b.Tenant != "" }

// limitsHold is how long, at least, the limits of an idle tenant are kept.
const limitsHold = 10 * time.Minute

// limitsOf returns the limits of a tenant.
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

// attempts returns how often the tenant's data has been refused, and since when; or now.
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

// well records that the destination serves a tenant, or that its data was dropped: what follows has its own attempts.
func (t *tenants) well(tenant string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.refused, tenant)
}

// later records that a tenant was refused by the answer to a request, or got none, and returns how long its data must
// wait. Answers to requests that were in flight together count once.
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
	// Servers that fail may do so for all: each tenant counts as one failure of the destination, unless others are
	// served. A missing answer always counts, unless others got one meanwhile. Any other answer shows that it is up.
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
