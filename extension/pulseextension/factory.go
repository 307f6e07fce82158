// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package pulseextension

import (
	"context"
	"time"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/extension"

	"github.com/godwit-otel/godwit/extension/pulseextension/internal/metadata"
)

// NewFactory returns the factory of the pulse extension.
func NewFactory() extension.Factory {
	return extension.NewFactory(metadata.Type, createDefaultConfig, create, metadata.ExtensionStability)
}

func createDefaultConfig() component.Config {
	return &Config{
		Interval: time.Minute,
		First:    3 * time.Second,
	}
}

func create(_ context.Context, set extension.Settings, cfg component.Config) (extension.Extension, error) {
	return newPulse(cfg.(*Config), set.Logger), nil
}
