// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package fastprometheusreceiver

import (
	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/receiver"
	"go.uber.org/zap"

	"github.com/godwit-otel/godwit/internal/handback"
	"github.com/godwit-otel/godwit/internal/slab"
)

// reuseKey is the name of the setting in errors and in the log.
const reuseKey = "`reuse`"

// reuse is whether and how the memory of metrics is used again.
type reuse struct {
	allowed bool
	changes handback.Changes // what must be restored first
	unread  bool             // attributes of points may be left out until asked for
	later   bool             // metrics come back after the pipeline has returned
}

// decideReuse decides whether the memory of metrics is used again, and logs it. mutates says that the pipeline changes
// metrics.
func decideReuse(host component.Host, set receiver.Settings, wanted string, mutates bool) reuse {
	r, obstacle := askForReuse(host, set.ID, wanted, mutates)
	if obstacle != nil {
		set.Logger.Info("The memory of metrics is not used again",
			zap.String("because_of", obstacle.What), zap.String("which", obstacle.Why))
		return reuse{}
	}
	r.unread = handback.UnreadWords(host, set.ID)
	set.Logger.Info("The memory of metrics is used again once the pipeline has taken them",
		zap.Stringer("restored_first", r.changes), zap.Bool("attributes_are_written_when_read", r.unread), zap.Bool("comes_back_from_batches", r.later))
	return r
}

// askForReuse asks all that get the metrics. It returns the first reason, if any, why the receiver must not use their
// memory again. With `reuse: always` the user vouches for components that are not known, but not against known facts: a
// gate, an exporter that keeps metrics, a pipeline that changes them. Changes of attributes alone are no obstacle, and
// neither is removing metrics: both are restored.
func askForReuse(host component.Host, id component.ID, wanted string, mutates bool) (reuse, *handback.Obstacle) {
	if wanted == reuseNever {
		return reuse{}, &handback.Obstacle{What: reuseKey, Why: "is never"}
	}
	r := reuse{allowed: true}
	for _, o := range handback.Ask(host, id) {
		switch {
		case o.Batch:
			r.later = true
		case o.Changes != handback.Changes{} && (slab.PutsBack() || !o.Changes.Removes):
			r.changes = r.changes.With(o.Changes)
		case wanted == reuseAuto || !o.Silent:
			return reuse{}, &o
		case mutates:
			return reuse{}, &handback.Obstacle{What: o.What, Why: o.Why + ", and the pipeline changes metrics"}
		}
	}
	return r, nil
}
