// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package otlpstreamexporter

import (
	"sync"
	"time"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/component/componentstatus"
	"go.uber.org/zap"
)

// health knows whether a destination answers, and says so when that changes.
type health struct {
	host component.Host

	mu    sync.Mutex
	sick  bool
	heard time.Time // the last answer
}

// fault notes that what began then has failed. If there was an answer since, it says nothing about the destination now.
func (h *health) fault(d *destination, begun time.Time, err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.sick || begun.Before(h.heard) || d.ctx.Err() != nil {
		return
	}
	h.sick = true
	d.set.Logger.Warn("The destination does not answer: what is sent to it waits", zap.String("endpoint", d.client.Endpoint), zap.Error(err))
	componentstatus.ReportStatus(h.host, componentstatus.NewRecoverableErrorEvent(err))
	if d.ending.Load() {
		d.rest()
	}
}

// ok reports the component as recovered once all its destinations are.
func (h *health) ok(d *destination, now time.Time) {
	h.mu.Lock()
	recovered := h.sick
	h.sick, h.heard = false, now
	h.mu.Unlock()
	if !recovered {
		return
	}
	d.set.Logger.Info("The destination answers again", zap.String("endpoint", d.client.Endpoint))
	for _, other := range d.dests {
		if !other.health.well() {
			return
		}
	}
	componentstatus.ReportStatus(h.host, componentstatus.NewEvent(componentstatus.StatusOK))
}

func (h *health) well() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return !h.sick
}
