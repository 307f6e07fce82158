// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package server

import (
	"strings"
	"sync"
	"time"

	"go.uber.org/zap"
)

// complaintInterval is how often the log has what a destination says about requests that it accepted.
const complaintInterval = time.Minute

// complaints are what a destination says about requests that it accepted: that it rejected some of their items for
// good, or a warning. The first is logged at once, and later one per interval, with the number since.
type complaints struct {
	mu     sync.Mutex
	logged time.Time // the last
	items  int       // refused since then, and of how many requests
	n      int
}

// due counts a complaint, and reports whether it is time to log, and how many.
func (c *complaints) due(rejected int, now time.Time) (items, requests int, due bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.items += rejected
	c.n++
	if !c.logged.IsZero() && now.Sub(c.logged) < complaintInterval {
		return 0, 0, false
	}
	items, requests = c.items, c.n
	c.logged, c.items, c.n = now, 0, 0
	return items, requests, true
}

// Complains logs, now and then, that the server accepted a request only in part or with a warning.
func (s *Server) Complains(rejected int, message string, now time.Time) {
	items, requests, due := s.complaints.due(rejected, now)
	if !due {
		return
	}
	const maxText = 1000
	s.Logger.Warn("The destination rejected parts of requests, or sent a warning",
		zap.String("endpoint", s.Endpoint), zap.Int("rejected_items", items), zap.Int("requests", requests),
		zap.String("message", strings.ToValidUTF8(message[:min(len(message), maxText)], "\uFFFD")))
}
