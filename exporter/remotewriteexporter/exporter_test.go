// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package remotewriteexporter

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/exporter/exportertest"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/godwit-otel/godwit/exporter/remotewriteexporter/internal/metadata"
)

const patience = 30 * time.Second

// gauges returns one point for each of the given number of series, with a time that increases with n.
func gauges(series, n int) pmetric.Metrics {
	md := pmetric.NewMetrics()
	rm := md.ResourceMetrics().AppendEmpty()
	rm.Resource().Attributes().PutStr("service.name", "bird")
	points := rm.ScopeMetrics().AppendEmpty().Metrics().AppendEmpty()
	points.SetName("wingbeats")
	data := points.SetEmptyGauge().DataPoints()
	for i := range series {
		dp := data.AppendEmpty()
		dp.Attributes().PutStr("bird", fmt.Sprintf("bird-%d", i))
		dp.SetTimestamp(pcommon.Timestamp(1_700_000_000_000+n) * 1_000_000)
		dp.SetDoubleValue(float64(n))
	}
	return md
}

// start runs an exporter with a fast configuration, modified by change, until the test ends.
func start(t *testing.T, host component.Host, change func(*Config)) *remoteWrite {
	t.Helper()
	e := create(t, change)
	require.NoError(t, e.Start(t.Context(), host))
	t.Cleanup(func() { require.NoError(t, e.Shutdown(context.Background())) })
	return e
}

func create(t *testing.T, change func(*Config)) *remoteWrite {
	t.Helper()
	t.Cleanup(forgetPlaces) // otherwise exporters of other tests, which have the same name, would mention them
	cfg := NewDefaultConfig()
	cfg.Batch.Timeout = 5 * time.Millisecond
	cfg.Retry.InitialInterval = time.Millisecond
	cfg.Retry.MaxInterval = 10 * time.Millisecond
	cfg.CircuitBreaker.OpenFor = 10 * time.Millisecond
	cfg.Labels.TargetInfo.Enabled = false
	cfg.ShutdownTimeout = patience
	change(cfg)
	require.NoError(t, cfg.Validate())
	set := exportertest.NewNopSettings(metadata.Type)
	set.ID = component.NewID(metadata.Type) // otherwise it differs after a restart
	e, err := newExporter(cfg, set, ownKeys)
	require.NoError(t, err)
	// The port may soon be used by another test.
	t.Cleanup(func() { left.take(set.ID, identities(cfg.clients())) })
	return e
}

func eventually(t *testing.T, condition func() bool, what string) {
	t.Helper()
	require.Eventually(t, condition, patience, 2*time.Millisecond, what)
}

func TestEverySampleArrivesInOrder(t *testing.T) {
	d := newReceived(t, nil)
	e := start(t, componenttest.NewNopHost(), func(c *Config) { c.Endpoint = d.URL })
	for n := range 50 {
		require.NoError(t, e.ConsumeMetrics(t.Context(), gauges(20, n)))
	}
	eventually(t, func() bool { return d.samples() == 1000 }, "all samples arrive")
	d.requireOrdered(t)
	h := d.headers()[0]
	require.Equal(t, zstd, h.Get("Content-Encoding"))
	require.Equal(t, "application/x-protobuf;proto=io.prometheus.write.v2.Request", h.Get("Content-Type"))
	require.Equal(t, "2.0.0", h.Get("X-Prometheus-Remote-Write-Version"))
	require.Equal(t, "otelcol/latest", h.Get("User-Agent"))
	require.Empty(t, h.Get("Retry-Attempt"))
}
