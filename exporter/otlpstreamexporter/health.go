// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package otlpstreamexporter

import (
	"sync"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/component/componentstatus"
	"go.uber.org/zap"
)

// health knows whether a destination answers, and says so when that changes.
type health struct {
	host component.Host

	mu   sync.Mutex
	sick bool
}

func (h *health) fault(d *destination, err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.sick || d.ctx.Err() != nil {
		return
	}
	h.sick = true
	d.set.Logger.Warn("The destination does not answer: what is sent to it waits", zap.String("endpoint", d.client.Endpoint), zap.Error(err))
	componentstatus.ReportStatus(h.host, componentstatus.NewRecoverableErrorEvent(err))
}

// ok reports the component as recovered once all its destinations are.
func (h *health) ok(d *destination) {
	h.mu.Lock()
	recovered := h.sick
	h.sick = false
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
