// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package otlpstreamexporter

import (
	"context"
	"runtime"
	"time"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/config/configcompression"
	"go.opentelemetry.io/collector/config/configgrpc"
	"go.opentelemetry.io/collector/config/configoptional"
	"go.opentelemetry.io/collector/config/configretry"
	"go.opentelemetry.io/collector/exporter"
	"go.opentelemetry.io/collector/exporter/exporterhelper"
	"go.opentelemetry.io/collector/exporter/xexporter"

	"github.com/godwit-otel/godwit/exporter/otlpstreamexporter/internal/metadata"
	"github.com/godwit-otel/godwit/exporter/otlpstreamexporter/internal/server"
	"github.com/godwit-otel/godwit/exporter/otlpstreamexporter/internal/transport"
	"github.com/godwit-otel/godwit/internal/otlpstream"
)

// NewFactory creates the factory of the otlpstream exporter.
func NewFactory() exporter.Factory {
	return xexporter.NewFactory(metadata.Type, createDefaultConfig,
		xexporter.WithTraces(createTraces, metadata.TracesStability),
		xexporter.WithMetrics(createMetrics, metadata.MetricsStability),
		xexporter.WithLogs(createLogs, metadata.LogsStability),
		xexporter.WithProfiles(createProfiles, metadata.ProfilesStability))
}

func createDefaultConfig() component.Config {
	return &Config{
		ending: &ending{},

		Client:          defaultClient(),
		Transport:       transport.GRPC,
		Mode:            server.Auto,
		ReprobeInterval: 5 * time.Minute,
		Streams:         max(1, min(4, runtime.NumCPU()/2)),
		Connections:     1,

		HTTP: HTTPConfig{IdleConnTimeout: 90 * time.Second, ForceAttemptHTTP2: true},

		MetadataCardinalityLimit: 100,

		HistoryBytes: 16 << 20,

		Rebalance:     Rebalance{Scope: scopeStream, Timeout: 30 * time.Second, Requests: 1000, DeltaTimeout: 5 * time.Minute},
		InFlight:      InFlight{Requests: 128, Bytes: 32 << 20},
		AckTimeout:    30 * time.Second,
		ResendUnacked: true,
		Shutdown:      Shutdown{WaitForAcks: true, Timeout: 10 * time.Second},
		Retry:         configretry.NewDefaultBackOffConfig(),
		Queue: configoptional.Some(QueueConfig{
			QueueSize: 1000, Sizer: exporterhelper.RequestSizerTypeRequests,
			Batch: configoptional.Default(exporterhelper.BatchConfig{
				FlushTimeout: 200 * time.Millisecond, Sizer: exporterhelper.RequestSizerTypeItems, MinSize: 8192,
			}),
		}),
	}
}

func defaultClient() configgrpc.ClientConfig {
	client := configgrpc.NewDefaultClientConfig()
	client.Compression = configcompression.TypeZstd
	client.WriteBufferSize = 512 << 10
	client.Keepalive = configoptional.Some(configgrpc.KeepaliveClientConfig{Timeout: 10 * time.Second})
	return client
}

func createTraces(ctx context.Context, set exporter.Settings, cfg component.Config) (exporter.Traces, error) {
	e, err := newExporter(ctx, cfg.(*Config), set, otlpstream.Traces)
	if err != nil {
		return nil, err
	}
	return &tracesExporter{e}, nil
}

func createMetrics(ctx context.Context, set exporter.Settings, cfg component.Config) (exporter.Metrics, error) {
	e, err := newExporter(ctx, cfg.(*Config), set, otlpstream.Metrics)
	if err != nil {
		return nil, err
	}
	return &metricsExporter{e}, nil
}

func createLogs(ctx context.Context, set exporter.Settings, cfg component.Config) (exporter.Logs, error) {
	e, err := newExporter(ctx, cfg.(*Config), set, otlpstream.Logs)
	if err != nil {
		return nil, err
	}
	return &logsExporter{e}, nil
}

func createProfiles(ctx context.Context, set exporter.Settings, cfg component.Config) (xexporter.Profiles, error) {
	e, err := newExporter(ctx, cfg.(*Config), set, otlpstream.Profiles)
	if err != nil {
		return nil, err
	}
	return &profilesExporter{e}, nil
}
