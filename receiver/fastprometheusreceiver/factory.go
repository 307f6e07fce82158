// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package fastprometheusreceiver

import (
	"context"
	"time"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/config/configoptional"
	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/receiver"

	"github.com/godwit-otel/godwit/receiver/fastprometheusreceiver/internal/allocator"
	"github.com/godwit-otel/godwit/receiver/fastprometheusreceiver/internal/api"
	"github.com/godwit-otel/godwit/receiver/fastprometheusreceiver/internal/metadata"
)

// NewFactory creates the factory of the fastprometheus receiver.
func NewFactory() receiver.Factory {
	return NewFactoryOfType(metadata.Type)
}

// NewFactoryOfType creates the same factory under another type, for modules that stand in for another receiver.
func NewFactoryOfType(typ component.Type) receiver.Factory {
	return receiver.NewFactory(typ, createDefaultConfig, receiver.WithMetrics(createMetrics, metadata.MetricsStability))
}

func createDefaultConfig() component.Config {
	return &Config{
		TargetAllocator: configoptional.Default(allocator.NewDefaultConfig()),
		APIServer:       api.NewDefaultConfig(),
		StaleMarkers:    true,
		Reuse:           reuseAuto,
		LocalIdentity:   true,
		ReloadInterval:  10 * time.Second,
	}
}

func createMetrics(_ context.Context, set receiver.Settings, cfg component.Config, next consumer.Metrics) (receiver.Metrics, error) {
	return newReceiver(cfg.(*Config), set, next)
}
