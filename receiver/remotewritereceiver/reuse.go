// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package remotewritereceiver

import (
	"context"
	"errors"
	"fmt"
	"time"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/otel/metric"
	"go.uber.org/zap"

	"github.com/godwit-otel/godwit/internal/handback"
	"github.com/godwit-otel/godwit/internal/slab"
)

// decideReuse finds out whether the memory of metrics is used again, and says so.
func (r *remoteWriteReceiver) decideReuse(host component.Host) {
	obstacles := handback.Ask(host, r.settings.ID)
	if !slab.Places() {
		obstacles = append(obstacles, handback.Obstacle{What: "this build", Why: "does not know how metrics look in memory"})
	}
	if r.reuse = len(obstacles) == 0; r.reuse {
		r.settings.Logger.Info("The memory of metrics is used again once the pipeline has taken them")
		return
	}
	r.settings.Logger.Info("The memory of metrics is not used again",
		zap.String("because_of", obstacles[0].What), zap.String("which", obstacles[0].Why))
}

// observe shows what is reused and known to whoever reads metrics.
func (r *remoteWriteReceiver) observe() error {
	err := errors.Join(
		r.telemetry.RegisterReceiverRemotewriteReuseCallback(func(_ context.Context, o metric.Int64Observer) error {
			used := int64(0)
			if r.reuse {
				used = 1
			}
			o.Observe(used)
			return nil
		}),
		r.telemetry.RegisterReceiverRemotewriteKnownBytesCallback(func(_ context.Context, o metric.Int64Observer) error {
			bytes, _ := r.known.stats()
			o.Observe(int64(bytes))
			return nil
		}),
		r.telemetry.RegisterReceiverRemotewriteUnkeptLabelSetsCallback(func(_ context.Context, o metric.Int64Observer) error {
			_, unkept := r.known.stats()
			o.Observe(unkept)
			return nil
		}),
	)
	if err != nil {
		return fmt.Errorf("cannot set up telemetry: %w", err)
	}
	return nil
}

// tree is memory for the metrics of a request.
func (r *remoteWriteReceiver) tree() *tree {
	if t, ok := r.trees.Get().(*tree); ok {
		return t
	}
	return newTree(r.reuse)
}

// takeBack is given what the pipeline has taken.
func (r *remoteWriteReceiver) takeBack(t *tree) {
	if t.takeBack() {
		r.trees.Put(t)
	}
}

// ageEvery is how often it is looked whether what is known is asked for.
const ageEvery = 10 * time.Second

// age lets go of what nobody has said for a while, now and then.
func (r *remoteWriteReceiver) age() {
	now := time.Now()
	if last := r.aged.Load(); now.UnixNano()-last > int64(ageEvery) && r.aged.CompareAndSwap(last, now.UnixNano()) {
		r.known.age(now)
	}
}
