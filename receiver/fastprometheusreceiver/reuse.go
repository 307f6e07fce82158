// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package fastprometheusreceiver

import (
	"go.opentelemetry.io/collector/component"
	"go.uber.org/zap"

	"github.com/godwit-otel/godwit/internal/handback"
	"github.com/godwit-otel/godwit/internal/slab"
)

// reuseKey is the name of the setting in errors and in the log.
const reuseKey = "`reuse`"

// decideReuse decides whether the memory of metrics is used again, and logs it.
func (r *scraper) decideReuse(host component.Host) {
	r.changes, r.unread, r.later = handback.Changes{}, false, false
	obstacle := r.obstacle(host)
	if r.reuse = obstacle == nil; r.reuse {
		r.unread = handback.UnreadWords(host, r.settings.ID)
		r.settings.Logger.Info("The memory of metrics is used again once the pipeline has taken them",
			zap.Stringer("restored_first", r.changes), zap.Bool("attributes_are_written_when_read", r.unread), zap.Bool("comes_back_from_batches", r.later))
		return
	}
	r.settings.Logger.Info("The memory of metrics is not used again",
		zap.String("because_of", obstacle.What), zap.String("which", obstacle.Why))
}

// obstacle returns the first reason, if any, why the receiver must not use the memory of its metrics again. With
// `reuse: always` the user vouches for components that are not known, but not against known facts: a gate, an exporter
// that keeps metrics, a pipeline that changes them. Changes of attributes alone are no obstacle, and neither is
// removing metrics: both are restored.
func (r *scraper) obstacle(host component.Host) *handback.Obstacle {
	if r.cfg.Reuse == reuseNever {
		return &handback.Obstacle{What: reuseKey, Why: "is never"}
	}
	for _, o := range handback.Ask(host, r.settings.ID) {
		switch {
		case o.Batch:
			r.later = true
		case o.Changes != handback.Changes{} && (slab.PutsBack() || !o.Changes.Removes):
			r.changes = r.changes.With(o.Changes)
		case r.cfg.Reuse == reuseAuto || !o.Silent:
			return &o
		case r.next.Capabilities().MutatesData:
			return &handback.Obstacle{What: o.What, Why: o.Why + ", and the pipeline changes metrics"}
		}
	}
	return nil
}
