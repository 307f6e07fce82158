// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package remotewriteexporter

import (
	"context"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/exporter"
	"go.opentelemetry.io/collector/extension/xextension/storage"

	"github.com/godwit-otel/godwit/exporter/remotewriteexporter/internal/metadata"
)

// NewFactory creates the factory of the remotewrite exporter.
func NewFactory() exporter.Factory {
	return exporter.NewFactory(metadata.Type,
		func() component.Config { return NewDefaultConfig() },
		exporter.WithMetrics(func(_ context.Context, set exporter.Settings, cfg component.Config) (exporter.Metrics, error) {
			return New(cfg.(*Config), set)
		}, metadata.MetricsStability))
}

// New makes an exporter, for a component that bears another type and has keys of its own.
func New(cfg *Config, set exporter.Settings, options ...Option) (exporter.Metrics, error) {
	e, err := newExporter(cfg, set)
	if err != nil {
		return nil, err
	}
	for _, option := range options {
		option(e)
	}
	return e, nil
}

// Option is what a configuration cannot say.
type Option func(*remoteWrite)

// WithStorage keeps the queue in a storage that is the exporter's own: it is started before the exporter and shut down after
// it. It takes the place of `queue.storage`.
func WithStorage(s storage.Extension) Option {
	return func(e *remoteWrite) { e.ownStorage = s }
}
