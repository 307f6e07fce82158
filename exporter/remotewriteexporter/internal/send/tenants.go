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
	mu       sync.Mutex
	refused  map[string]*refusal
	most     int       // so many are kept before those are looked for that are over
	complain time.Time // when the log may have the next line about a tenant
}

// refusal is a tenant's failures in a row.
type refusal struct {
	attempts int
	spread   float64   // of its pauses
	since    time.Time // the first attempt with the data that was refused
	until    time.Time // the end of the pause
	counted  bool      // as a failure of the destination
}

// tenanted tells whether what is wrong with a request may be its tenant.
func (d *Destination) tenanted(b block.Block) bool { return d.cfg.Tenants != nil && b.Tenant != "" }

// attempts is how often the tenant's data has been refused, and since when; or now.
func (t *tenants) attempts(tenant string, now time.Time) (int, time.Time) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if r := t.refused[tenant]; r != nil {
		return r.attempts, r.since
	}
	return 0, now
}

// well notes that the destination serves a tenant, or that its data was dropped: what follows has its own attempts.
func (t *tenants) well(tenant string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.refused, tenant)
}

// later notes that a tenant was refused, and says how long its data is to wait. Answers to requests that were under way
// together count once.
func (d *Destination) later(tenant string, v verdict, a answer) *LaterError {
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
			maps.DeleteFunc(t.refused, func(_ string, r *refusal) bool { return now.Sub(r.until) > refusalOver })
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
	// Servers that fail may do so for all: each tenant counts as one failure of the destination, unless others are served. Any other
	// answer shows that it is there.
	alive := a.code/100 != 5 && a.code != http.StatusRequestTimeout
	counts := !alive && !r.counted && !d.gate.servesSome()
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
	if news {
		d.log.Warn("destination does not take the data of a tenant; it stays in the queue and is tried again, others go on",
			append(a.fields(), zap.String("tenant", d.cfg.Tenants.Name(tenant)))...)
	}
	return &LaterError{Wait: wait, code: a.code}
}
