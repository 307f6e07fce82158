// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package server

import (
	"sync"
	"time"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/component/componentstatus"
	"go.uber.org/zap"

	"github.com/godwit-otel/godwit/internal/redact"
)

// health records whether a server answers. Changes are reported.
type health struct {
	host component.Host

	mu    sync.Mutex
	sick  bool
	heard time.Time // the last answer
	err   error     // the first since then
	since time.Time // when that error was
}

// Fault records that something begun at a time has failed. If there was an answer since then, it says nothing about the
// server's present state.
func (s *Server) Fault(begun time.Time, err error) {
	h := &s.health
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.sick || begun.Before(h.heard) || s.Over.Err() != nil {
		return
	}
	h.sick, h.err, h.since = true, err, time.Now()
	s.Logger.Warn("The destination does not answer: its data waits", zap.String("endpoint", s.Endpoint), zap.Error(err))
	componentstatus.ReportStatus(h.host, componentstatus.NewRecoverableErrorEvent(redact.Error(err)))
	s.Ill()
}

// Answered reports the component as recovered once all its servers are.
func (s *Server) Answered(now time.Time) {
	h := &s.health
	h.mu.Lock()
	recovered := h.sick
	h.sick, h.heard, h.err = false, now, nil
	h.mu.Unlock()
	if !recovered {
		return
	}
	s.Logger.Info("The destination answers again", zap.String("endpoint", s.Endpoint))
	if s.AllWell() {
		componentstatus.ReportStatus(h.host, componentstatus.NewEvent(componentstatus.StatusOK))
	}
}

// IsHealthy reports whether the server answers, as far as is known.
func (s *Server) IsHealthy() bool {
	s.health.mu.Lock()
	defer s.health.mu.Unlock()
	return !s.health.sick
}

// Trouble returns since when the server does not answer, and why, nil while it does.
func (s *Server) Trouble() (since time.Time, why error) {
	s.health.mu.Lock()
	defer s.health.mu.Unlock()
	return s.health.since, s.health.err
}
