// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package remotewriteexporter

import (
	"context"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/exporter"

	"github.com/godwit-otel/godwit/exporter/remotewriteexporter/internal/metadata"
)

// NewFactory creates the factory of the remotewrite exporter.
func NewFactory() exporter.Factory {
	return exporter.NewFactory(metadata.Type,
		func() component.Config { return NewDefaultConfig() },
		exporter.WithMetrics(func(_ context.Context, set exporter.Settings, cfg component.Config) (exporter.Metrics, error) {
			return New(cfg.(*Config), set, ownKeys)
		}, metadata.MetricsStability))
}

// New makes an exporter for a component with another type and other keys.
func New(cfg *Config, set exporter.Settings, keys Keys) (exporter.Metrics, error) {
	e, err := newExporter(cfg, set, keys)
	if err != nil {
		return nil, err
	}
	return e, nil
}
