// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package prometheusremotewriteexporter

import (
	"context"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/exporter"
	"go.opentelemetry.io/collector/exporter/xexporter"

	"github.com/godwit-otel/godwit/exporter/prometheusremotewriteexporter/internal/metadata"
	"github.com/godwit-otel/godwit/exporter/remotewriteexporter"
)

// NewFactory creates the factory of the prometheus_remote_write exporter, which prometheusremotewrite names too.
func NewFactory() exporter.Factory {
	return xexporter.NewFactory(metadata.Type, createDefaultConfig,
		xexporter.WithMetrics(createMetrics, metadata.MetricsStability),
		xexporter.WithDeprecatedTypeAlias(metadata.DeprecatedType))
}

func createMetrics(_ context.Context, set exporter.Settings, cfg component.Config) (exporter.Metrics, error) {
	theirs := cfg.(*Config)
	for _, warning := range theirs.warnings() {
		set.Logger.Warn(warning)
	}
	contribs.Warn(set.Logger)
	if wal := theirs.WAL.Get(); wal != nil {
		wal.warnOfContribs(set.Logger)
	}
	return remotewriteexporter.New(theirs.translate(), set, theirs.keys())
}
