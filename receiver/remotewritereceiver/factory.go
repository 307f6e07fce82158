// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package remotewritereceiver

import (
	"context"
	"time"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/config/confighttp"
	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/receiver"
	"go.opentelemetry.io/collector/receiver/xreceiver"

	"github.com/godwit-otel/godwit/receiver/remotewritereceiver/internal/metadata"
)

// NewFactory creates the factory of the remotewrite receiver, which prometheusremotewrite, the name of contrib's, names too.
func NewFactory() receiver.Factory {
	return xreceiver.NewFactory(metadata.Type, createDefaultConfig,
		xreceiver.WithMetrics(createMetrics, metadata.MetricsStability),
		xreceiver.WithDeprecatedTypeAlias(metadata.DeprecatedType))
}

func createDefaultConfig() component.Config {
	server := confighttp.NewDefaultServerConfig()
	server.NetAddr.Endpoint = "localhost:19291"
	server.MaxRequestBodySize = 20 << 20
	server.ReadHeaderTimeout = 10 * time.Second
	server.ReadTimeout = time.Minute
	server.IdleTimeout = 3 * time.Minute // longer than proxies and clients keep unused connections, so that they close first
	server.WriteTimeout = 2 * time.Minute
	return &Config{
		HTTP:               server,
		Path:               "/api/v1/write",
		MaxDecodedBodySize: 32 << 20,
		TargetInfo:         TargetInfoConfig{MaxTargets: 10_000, TenantHeader: "X-Scope-OrgID"},
		Replicas: ReplicasConfig{
			ClusterLabel: labelCluster, ReplicaLabel: labelReplica, FailoverTimeout: 30 * time.Second, MaxClusters: 1000,
			TenantHeader: "X-Scope-OrgID",
		},
	}
}

func createMetrics(_ context.Context, set receiver.Settings, cfg component.Config, next consumer.Metrics) (receiver.Metrics, error) {
	return newReceiver(cfg.(*Config), set, next)
}
