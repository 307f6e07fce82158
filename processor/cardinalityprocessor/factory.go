// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package cardinalityprocessor

import (
	"context"
	"time"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/processor"

	"github.com/godwit-otel/godwit/processor/cardinalityprocessor/internal/metadata"
	"github.com/godwit-otel/godwit/processor/cardinalityprocessor/internal/policy"
)

// NewFactory creates the factory of the cardinality processor.
func NewFactory() processor.Factory {
	return processor.NewFactory(metadata.Type, createDefaultConfig,
		processor.WithMetrics(createMetrics, metadata.MetricsStability))
}

func createDefaultConfig() component.Config {
	return &Config{
		Mode:        policy.ModeEnforce,
		IdleTimeout: 10 * time.Minute,
		Memory:      MemoryConfig{MaxSeries: 2_000_000, MaxGroups: 100_000, OverflowStateMiB: 64, AggregateStateMiB: 64},
		Defaults:    DefaultsConfig{Exceed: ExceedConfig{OnExceed: []string{policy.NameCollapse, policy.NameOverflow}, Gauge: policy.NameDrop}},
		Overflow:    OverflowConfig{Interval: time.Minute, KeepService: true},

		RulesPollInterval: 10 * time.Second,
		SnapshotInterval:  time.Minute,
		Statistics:        StatisticsConfig{Enabled: true},

		Sharing: &sharing{},
	}
}

func createMetrics(_ context.Context, set processor.Settings, cfg component.Config, next consumer.Metrics) (processor.Metrics, error) {
	config := cfg.(*Config)
	if of, ok := config.Sharing.(*sharing); ok && config.Shared {
		return of.join(config, set, next)
	}
	p, err := newProcessor(config, set, next)
	if err != nil {
		return nil, err
	}
	return p.pass(set, next)
}
