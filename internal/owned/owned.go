// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

// Package owned passes data to pipelines for receivers, and keeps it alive until all of them have returned.
//
// With its gate pdata.useProtoPooling the Collector frees data as soon as the first component that was given it
// returns. Behind a fan-out without a processor before it, that is one of several: the others get data that was freed, or
// its next content. Data that already has an owner is left alone.
package owned

import (
	"context"

	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/pdata/pprofile"
	"go.opentelemetry.io/collector/pdata/ptrace"
	"go.opentelemetry.io/collector/pdata/xpdata/pref"
)

// Metrics passes metrics to next. They must not be used afterwards, unless they had an owner or the gate is off.
func Metrics(ctx context.Context, next interface {
	ConsumeMetrics(ctx context.Context, md pmetric.Metrics) error
}, md pmetric.Metrics,
) error {
	if pref.MarkPipelineOwnedMetrics(md) {
		defer pref.UnrefMetrics(md)
	}
	return next.ConsumeMetrics(ctx, md)
}

// Logs is like [Metrics].
func Logs(ctx context.Context, next interface {
	ConsumeLogs(ctx context.Context, ld plog.Logs) error
}, ld plog.Logs,
) error {
	if pref.MarkPipelineOwnedLogs(ld) {
		defer pref.UnrefLogs(ld)
	}
	return next.ConsumeLogs(ctx, ld)
}

// Traces is like [Metrics].
func Traces(ctx context.Context, next interface {
	ConsumeTraces(ctx context.Context, td ptrace.Traces) error
}, td ptrace.Traces,
) error {
	if pref.MarkPipelineOwnedTraces(td) {
		defer pref.UnrefTraces(td)
	}
	return next.ConsumeTraces(ctx, td)
}

// Profiles is like [Metrics].
func Profiles(ctx context.Context, next interface {
	ConsumeProfiles(ctx context.Context, pd pprofile.Profiles) error
}, pd pprofile.Profiles,
) error {
	if pref.MarkPipelineOwnedProfiles(pd) {
		defer pref.UnrefProfiles(pd)
	}
	return next.ConsumeProfiles(ctx, pd)
}
