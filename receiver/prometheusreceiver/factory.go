// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package prometheusreceiver

import (
	"context"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/featuregate"
	"go.opentelemetry.io/collector/receiver"

	"github.com/godwit-otel/godwit/internal/gates"
	"github.com/godwit-otel/godwit/receiver/fastprometheusreceiver"
	"github.com/godwit-otel/godwit/receiver/prometheusreceiver/internal/metadata"
)

// contribs are the gates of contrib's receiver.
var contribs = gates.Register(
	gates.Gate{
		ID: "receiver.prometheusreceiver.EnableCreatedTimestampZeroIngestion", Stage: featuregate.StageAlpha,
		Description: "Has no effect: created timestamps are always start timestamps.",
	},
	gates.Gate{
		ID: "receiver.prometheusreceiver.IgnoreScopeInfoMetric", Stage: featuregate.StageBeta,
		Description: "Has no effect: otel_scope_info is a metric like any other.",
		Changed:     "otel_scope_info is never looked at for the attributes of scopes",
	},
)

// NewFactory creates the factory of the fastprometheus receiver, under the type prometheus.
func NewFactory() receiver.Factory {
	ours := fastprometheusreceiver.NewFactoryOfType(metadata.Type)
	create := func(ctx context.Context, set receiver.Settings, cfg component.Config, next consumer.Metrics) (receiver.Metrics, error) {
		contribs.Warn(set.Logger)
		return ours.CreateMetrics(ctx, set, cfg, next)
	}
	return receiver.NewFactory(metadata.Type, ours.CreateDefaultConfig, receiver.WithMetrics(create, ours.MetricsStability()))
}
