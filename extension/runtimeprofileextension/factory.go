// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package runtimeprofileextension

import (
	"context"
	"os"
	"time"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/extension"

	"github.com/godwit-otel/godwit/extension/runtimeprofileextension/internal/metadata"
)

// NewFactory creates the factory of the runtimeprofile extension.
func NewFactory() extension.Factory {
	return extension.NewFactory(metadata.Type, createDefaultConfig, create, metadata.ExtensionStability)
}

func createDefaultConfig() component.Config {
	return &Config{
		Profile:         ProfileBalanced,
		RefreshInterval: time.Minute,
	}
}

func create(_ context.Context, set extension.Settings, cfg component.Config) (extension.Extension, error) {
	e := newExtension(cfg.(*Config), set.TelemetrySettings, os.DirFS("/"))
	e.id = set.ID
	return e, nil
}
