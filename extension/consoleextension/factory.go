// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package consoleextension

import (
	"context"
	"time"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/config/confighttp"
	"go.opentelemetry.io/collector/extension"

	"github.com/godwit-otel/godwit/extension/consoleextension/internal/metadata"
)

// NewFactory returns the factory of the console extension.
func NewFactory() extension.Factory {
	return extension.NewFactory(metadata.Type, createDefaultConfig, create, metadata.ExtensionStability)
}

func createDefaultConfig() component.Config {
	server := confighttp.NewDefaultServerConfig()
	server.NetAddr.Endpoint = defaultEndpoint
	server.MaxRequestBodySize = 1 << 20
	server.CompressionAlgorithms = []string{""} // none: the requests are small
	server.ReadTimeout = 10 * time.Second
	server.WriteTimeout = 30 * time.Second // longer than a look at a target takes
	return &Config{ServerConfig: server}
}

func create(_ context.Context, set extension.Settings, cfg component.Config) (extension.Extension, error) {
	return newConsole(cfg.(*Config), set, time.Now), nil
}
