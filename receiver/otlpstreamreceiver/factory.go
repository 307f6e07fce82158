// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package otlpstreamreceiver

import (
	"context"
	"time"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/config/configgrpc"
	"go.opentelemetry.io/collector/config/confighttp"
	"go.opentelemetry.io/collector/config/confignet"
	"go.opentelemetry.io/collector/config/configoptional"
	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/consumer/xconsumer"
	"go.opentelemetry.io/collector/receiver"
	"go.opentelemetry.io/collector/receiver/xreceiver"

	"github.com/godwit-otel/godwit/internal/memlimit"
	"github.com/godwit-otel/godwit/receiver/otlpstreamreceiver/internal/metadata"
)

// NewFactory creates the factory of the otlpstream receiver.
func NewFactory() receiver.Factory {
	return xreceiver.NewFactory(metadata.Type, createDefaultConfig,
		xreceiver.WithTraces(createTraces, metadata.TracesStability),
		xreceiver.WithMetrics(createMetrics, metadata.MetricsStability),
		xreceiver.WithLogs(createLogs, metadata.LogsStability),
		xreceiver.WithProfiles(createProfiles, metadata.ProfilesStability))
}

func createDefaultConfig() component.Config { return defaultsFor(memlimit.Available()) }

// defaultsFor returns the defaults where that much memory is available.
func defaultsFor(available int64) *Config {
	message := messageShare.Of(available)
	grpc := configgrpc.NewDefaultServerConfig()
	grpc.NetAddr = confignet.AddrConfig{Endpoint: "localhost:4317", Transport: confignet.TransportTypeTCP}
	grpc.MaxRecvMsgSizeMiB = int(message >> 20)
	grpc.MaxConcurrentStreams = 256
	// Clients find out that a server is gone by asking it, and may ask every ten seconds.
	grpc.Keepalive = configoptional.Some(configgrpc.KeepaliveServerConfig{
		ServerParameters:  configoptional.Some(configgrpc.KeepaliveServerParameters{Time: pingEvery, Timeout: pingPatience}),
		EnforcementPolicy: configoptional.Some(configgrpc.KeepaliveEnforcementPolicy{MinTime: 5 * time.Second}),
	})
	http := confighttp.NewDefaultServerConfig()
	http.NetAddr.Endpoint = "localhost:4318"
	http.MaxRequestBodySize = message
	inFlight := int(inFlightShare.Of(available))
	return &Config{
		Protocols: Protocols{GRPC: configoptional.Default(grpc), HTTP: configoptional.Default(http)},
		InFlight:  InFlight{Bytes: inFlight, RequestsPerStream: 256, BytesPerStream: min(32<<20, inFlight)},
		Streams:   Streams{Max: 1000, MaxAge: 10 * time.Minute, Memory: int(streamShare.Of(available))},

		Deduplicate: Deduplicate{MaxSlots: 10_000},

		DrainTimeout: 10 * time.Second,
	}
}

func createTraces(_ context.Context, set receiver.Settings, cfg component.Config, next consumer.Traces) (receiver.Traces, error) {
	return shared(cfg.(*Config), set, func(r *otlpReceiver) { r.pipelines.traces = next })
}

func createMetrics(_ context.Context, set receiver.Settings, cfg component.Config, next consumer.Metrics) (receiver.Metrics, error) {
	return shared(cfg.(*Config), set, func(r *otlpReceiver) { r.pipelines.metrics = next })
}

func createLogs(_ context.Context, set receiver.Settings, cfg component.Config, next consumer.Logs) (receiver.Logs, error) {
	return shared(cfg.(*Config), set, func(r *otlpReceiver) { r.pipelines.logs = next })
}

func createProfiles(_ context.Context, set receiver.Settings, cfg component.Config, next xconsumer.Profiles) (xreceiver.Profiles, error) {
	return shared(cfg.(*Config), set, func(r *otlpReceiver) { r.pipelines.profiles = next })
}
