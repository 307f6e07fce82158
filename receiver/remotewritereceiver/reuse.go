// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package remotewritereceiver

import (
	"context"
	"errors"
	"fmt"
	"time"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/consumer/consumererror"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
	"go.uber.org/zap"

	"github.com/godwit-otel/godwit/internal/handback"
	"github.com/godwit-otel/godwit/internal/slab"
)

// decideReuse decides whether the memory of metrics is used again, and logs it.
func (r *remoteWriteReceiver) decideReuse(host component.Host) {
	obstacles := handback.Ask(host, r.settings.ID)
	if !slab.Places() {
		obstacles = append(obstacles, handback.Obstacle{What: "this build", Why: "does not know how metrics look in memory"})
	}
	if r.reuse = len(obstacles) == 0; r.reuse {
		r.defers = handback.Unread(host, r.settings.ID)
		r.settings.Logger.Info("The memory of metrics is used again once the pipeline has taken them", zap.Bool("points_are_written_when_read", r.defers))
		return
	}
	r.settings.Logger.Info("The memory of metrics is not used again",
		zap.String("because_of", obstacles[0].What), zap.String("which", obstacles[0].Why))
}

// observe registers metrics about what is reused and known.
func (r *remoteWriteReceiver) observe() error {
	own := r.measured()
	err := errors.Join(
		r.telemetry.RegisterReceiverRemotewriteReuseCallback(func(_ context.Context, o metric.Int64Observer) error {
			used := int64(0)
			if r.reuse {
				used = 1
			}
			o.Observe(used, own)
			return nil
		}),
		r.telemetry.RegisterReceiverRemotewriteKnownBytesCallback(func(_ context.Context, o metric.Int64Observer) error {
			bytes, _ := r.known.Load().stats()
			o.Observe(int64(bytes), own)
			return nil
		}),
		r.telemetry.RegisterReceiverRemotewriteUnkeptLabelSetsCallback(func(_ context.Context, o metric.Int64Observer) error {
			_, unkept := r.known.Load().stats()
			o.Observe(unkept, own)
			return nil
		}),
	)
	if err != nil {
		return fmt.Errorf("cannot set up telemetry: %w", err)
	}
	return nil
}

// measured returns the attributes of a measurement: the receiver, since all of a process share the metrics, and more.
func (r *remoteWriteReceiver) measured(more ...attribute.KeyValue) metric.MeasurementOption {
	return metric.WithAttributeSet(attribute.NewSet(append(more, attribute.String("receiver", r.settings.ID.String()))...))
}

// tree returns memory for the metrics of a request.
func (r *remoteWriteReceiver) tree() *tree {
	if t, ok := r.trees.Get().(*tree); ok {
		return t
	}
	t := newTree(r.reuse)
	t.mayDefer = r.defers
	return t
}

// refused takes back what the pipeline has refused. If the component that refused it is known not to keep it, a memory
// limiter or our exporter, the memory is used again: a limiter refuses for lack of memory, and refused data should not
// take any.
func (r *remoteWriteReceiver) refused(t *tree, err error) {
	if r.defers && !consumererror.IsPermanent(err) {
		r.takeBack(t)
	} else {
		t.drop()
	}
}

// takeBack takes back what the pipeline has accepted.
func (r *remoteWriteReceiver) takeBack(t *tree) {
	switch taken := t.takeBack(); {
	case taken && r.known.Load().isIntact():
		r.trees.Put(t)
	case (taken || t.isSpoiled()) && r.spoiled.CompareAndSwap(false, true):
		r.known.Store(newKnown(r.knownBytes, false))
		r.settings.Logger.Error("A component of the pipeline changed attributes that several requests share: some of them may have been "+
			"delivered with its changes. From now on nothing is shared",
			zap.String("what_to_do", "find the processor that changes attributes of points in place and says that it does not keep metrics"))
	}
}

// ageEvery is how often entries that were not used are looked for.
const ageEvery = 10 * time.Second

// age drops, now and then, what was not received for a while.
func (r *remoteWriteReceiver) age() {
	last := r.aged.Load() // before the time, so that this is not earlier
	now := time.Now()
	since := now.UnixNano() - last // less than 0 if the clock was set back
	if (since > int64(ageEvery) || since < 0) && r.aged.CompareAndSwap(last, now.UnixNano()) {
		r.known.Load().age(now)
	}
}
