// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package runtimeprofileextension

import (
	"context"
	"errors"

	"go.opentelemetry.io/otel/metric"

	"github.com/godwit-otel/godwit/extension/runtimeprofileextension/internal/metadata"
)

// startTelemetry registers callbacks only: the runtime is read when metrics are collected, and its actual settings are
// reported, whoever made them.
func (e *runtimeProfile) startTelemetry() error {
	t, err := metadata.NewTelemetryBuilder(e.set)
	if err != nil {
		return err
	}
	e.telemetry = t
	return errors.Join(
		t.RegisterExtensionRuntimeprofileBinaryPagesReleasedCallback(integer(func() (int64, bool) {
			return e.pages.bytes.Load(), true
		})),
		t.RegisterExtensionRuntimeprofileGcCPURatioCallback(float(func() float64 {
			e.mu.Lock()
			defer e.mu.Unlock()
			return e.gcRatio
		})),
		t.RegisterExtensionRuntimeprofileGcCPUTimeCallback(float(func() float64 { return readSample().gcSeconds })),
		t.RegisterExtensionRuntimeprofileGcCyclesCallback(integer(func() (int64, bool) { return readSample().cycles, true })),
		t.RegisterExtensionRuntimeprofileGogcCallback(integer(func() (int64, bool) { return int64(readKnobs().gogc), true })),
		t.RegisterExtensionRuntimeprofileGoroutinesCallback(integer(func() (int64, bool) { return readSample().goroutines, true })),
		t.RegisterExtensionRuntimeprofileHeapLiveCallback(integer(func() (int64, bool) { return readSample().live, true })),
		t.RegisterExtensionRuntimeprofileMemoryBudgetCallback(integer(func() (int64, bool) {
			e.mu.Lock()
			defer e.mu.Unlock()
			return e.budget.total(), e.budget.total() > 0
		})),
		t.RegisterExtensionRuntimeprofileMemoryLimitCallback(integer(func() (int64, bool) {
			limit := readKnobs().limit
			return limit, limit != noLimit
		})),
	)
}

// integer observes a value unless it is absent.
func integer(read func() (value int64, present bool)) metric.Int64Callback {
	return func(_ context.Context, o metric.Int64Observer) error {
		if value, present := read(); present {
			o.Observe(value)
		}
		return nil
	}
}

func float(read func() float64) metric.Float64Callback {
	return func(_ context.Context, o metric.Float64Observer) error {
		o.Observe(read())
		return nil
	}
}
