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
	"go.opentelemetry.io/collector/exporter/exporterhelper/xexporterhelper"

	"github.com/godwit-otel/godwit/exporter/otlpstreamexporter/internal/metadata"
	"github.com/godwit-otel/godwit/internal/otlpstream"
)

// NewFactory creates the factory of the otlpstream exporter.
func NewFactory() exporter.Factory {
	return exporter.NewFactory(metadata.Type, createDefaultConfig,
		exporter.WithTraces(createTraces, metadata.TracesStability),
		exporter.WithMetrics(createMetrics, metadata.MetricsStability),
		exporter.WithLogs(createLogs, metadata.LogsStability))
}

func createDefaultConfig() component.Config {
	client := configgrpc.NewDefaultClientConfig()
	client.Compression = configcompression.TypeZstd
	client.WriteBufferSize = 512 << 10
	return &Config{
		Client:          client,
		Transport:       transportGRPC,
		Mode:            modeAuto,
		ReprobeInterval: 5 * time.Minute,
		Streams:         max(1, min(4, runtime.NumCPU()/2)),
		Connections:     1,
		Rebalance:       Rebalance{Timeout: 30 * time.Second, Requests: 1000},
		InFlight:        InFlight{Requests: 128, Bytes: 32 << 20},
		AckTimeout:      30 * time.Second,
		ResendUnacked:   true,
		Shutdown:        Shutdown{WaitForAcks: true, Timeout: 10 * time.Second},
		Retry:           configretry.NewDefaultBackOffConfig(),
		Queue: configoptional.Some(QueueConfig{
			QueueSize: 1000, Sizer: exporterhelper.RequestSizerTypeRequests,
		}),
	}
}

func createTraces(ctx context.Context, set exporter.Settings, cfg component.Config) (exporter.Traces, error) {
	e, err := newExporter(cfg.(*Config), set, otlpstream.Traces)
	if err != nil {
		return nil, err
	}
	helper, err := xexporterhelper.NewTracesRequest(ctx, set, e.fromTraces, e.push, e.options()...)
	e.helper = helper
	return &tracesExporter{streamExporter: e, next: helper}, err
}

func createMetrics(ctx context.Context, set exporter.Settings, cfg component.Config) (exporter.Metrics, error) {
	e, err := newExporter(cfg.(*Config), set, otlpstream.Metrics)
	if err != nil {
		return nil, err
	}
	helper, err := xexporterhelper.NewMetricsRequest(ctx, set, e.fromMetrics, e.push, e.options()...)
	e.helper = helper
	return &metricsExporter{streamExporter: e, next: helper}, err
}

func createLogs(ctx context.Context, set exporter.Settings, cfg component.Config) (exporter.Logs, error) {
	e, err := newExporter(cfg.(*Config), set, otlpstream.Logs)
	if err != nil {
		return nil, err
	}
	helper, err := xexporterhelper.NewLogsRequest(ctx, set, e.fromLogs, e.push, e.options()...)
	e.helper = helper
	return &logsExporter{streamExporter: e, next: helper}, err
}
