// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package interop

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/confmap"
	"go.opentelemetry.io/collector/confmap/provider/yamlprovider"
	"go.opentelemetry.io/collector/connector"
	"go.opentelemetry.io/collector/connector/forwardconnector"
	"go.opentelemetry.io/collector/exporter"
	"go.opentelemetry.io/collector/exporter/debugexporter"
	"go.opentelemetry.io/collector/exporter/nopexporter"
	"go.opentelemetry.io/collector/otelcol"
	"go.opentelemetry.io/collector/processor"
	"go.opentelemetry.io/collector/processor/batchprocessor"
	"go.opentelemetry.io/collector/processor/memorylimiterprocessor"
	"go.opentelemetry.io/collector/receiver"
	"go.opentelemetry.io/collector/service/telemetry/otelconftelemetry"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"

	"github.com/godwit-otel/godwit/exporter/otlpstreamexporter"
	"github.com/godwit-otel/godwit/exporter/prometheusremotewriteexporter"
	"github.com/godwit-otel/godwit/exporter/remotewriteexporter"
	"github.com/godwit-otel/godwit/processor/cardinalityprocessor"
	"github.com/godwit-otel/godwit/receiver/fastprometheusreceiver"
	"github.com/godwit-otel/godwit/receiver/otlpstreamreceiver"
	"github.com/godwit-otel/godwit/receiver/prometheusreceiver"
	"github.com/godwit-otel/godwit/receiver/remotewritereceiver"
)

const (
	patience = 60 * time.Second
	glance   = 5 * time.Millisecond
)

// A collector is the Collector's own service with our components, in the test's process.
type collector struct {
	log  *observer.ObservedLogs
	stop func() // stops it, once
}

// start runs a collector until the test ends.
func start(t testing.TB, config string, more ...processor.Factory) *collector {
	t.Helper()
	return startFrom(t, "yaml:"+config, yamlprovider.NewFactory(), more...)
}

// startFrom is like start, with the URI of the configuration.
func startFrom(t testing.TB, uri string, provider confmap.ProviderFactory, more ...processor.Factory) *collector {
	t.Helper()
	core, log := observer.New(zap.InfoLevel)
	c, err := otelcol.NewCollector(otelcol.CollectorSettings{
		BuildInfo:               component.NewDefaultBuildInfo(),
		Factories:               func() (otelcol.Factories, error) { return factories(more) },
		DisableGracefulShutdown: true,
		// There is one for the process, and it is set without a lock: connections of an earlier collector may still
		// read it.
		SkipSettingGRPCLogger: true,
		ConfigProviderSettings: otelcol.ConfigProviderSettings{ResolverSettings: confmap.ResolverSettings{
			URIs: []string{uri}, ProviderFactories: []confmap.ProviderFactory{provider},
		}},
		LoggingOptions: []zap.Option{zap.WrapCore(func(zapcore.Core) zapcore.Core { return core })},
	})
	require.NoError(t, err)
	ended := make(chan error, 1)
	go func() { ended <- c.Run(context.Background()) }()
	require.Eventually(t, func() bool {
		return len(ended) > 0 || c.GetState() == otelcol.StateRunning
	}, patience, glance)
	if len(ended) > 0 {
		require.NoError(t, <-ended)
	}
	stop := sync.OnceFunc(func() {
		c.Shutdown()
		require.NoError(t, <-ended)
	})
	t.Cleanup(stop)
	return &collector{log, stop}
}

func factories(more []processor.Factory) (f otelcol.Factories, err error) {
	f.Receivers, err = otelcol.MakeFactoryMap[receiver.Factory](fastprometheusreceiver.NewFactory(), prometheusreceiver.NewFactory(),
		remotewritereceiver.NewFactory(), otlpstreamreceiver.NewFactory())
	if err != nil {
		return f, err
	}
	f.Processors, err = otelcol.MakeFactoryMap(append(more,
		batchprocessor.NewFactory(), memorylimiterprocessor.NewFactory(), cardinalityprocessor.NewFactory())...)
	if err != nil {
		return f, err
	}
	f.Exporters, err = otelcol.MakeFactoryMap[exporter.Factory](nopexporter.NewFactory(), debugexporter.NewFactory(),
		remotewriteexporter.NewFactory(), prometheusremotewriteexporter.NewFactory(), otlpstreamexporter.NewFactory())
	if err != nil {
		return f, err
	}
	f.Connectors, err = otelcol.MakeFactoryMap[connector.Factory](forwardconnector.NewFactory())
	f.Telemetry = otelconftelemetry.NewFactory()
	return f, err
}
