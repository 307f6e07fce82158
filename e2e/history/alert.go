// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package history

import (
	"time"

	"github.com/prometheus/prometheus/promql"
)

// Alert is an alerting rule with its state, as in Prometheus: it fires for a series that the expression has returned in
// each evaluation for a while.
type Alert struct {
	Expr string
	For  time.Duration

	since map[string]time.Time
}

// Evaluate evaluates the rule once, and returns what fires.
func (a *Alert) Evaluate(h *History) (firing promql.Vector) {
	h.t.Helper()
	since := map[string]time.Time{}
	for _, s := range h.Query(a.Expr) {
		key := s.Metric.String()
		begun, ok := a.since[key]
		if !ok {
			begun = h.now
		}
		since[key] = begun
		if h.now.Sub(begun) >= a.For {
			firing = append(firing, s)
		}
	}
	a.since = since
	return firing
}
