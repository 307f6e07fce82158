// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/godwit-otel/godwit/e2e/rwserver"
	"github.com/godwit-otel/godwit/e2e/wait"
)

// metricsTo lets the gateway send metrics to a destination that it tries again soon.
func metricsTo(url string) string {
	return fmt.Sprintf("exporters: {remotewrite: {endpoint: %q, timeout: 1s, batch: {timeout: 20ms}, "+
		"retry: {initial_interval: 50ms, max_interval: 200ms}, circuit_breaker: {open_for: 200ms}}}", url)
}

// Metrics that were acknowledged arrive although the disk was full meanwhile.
func TestGatewayKeepsMetricsOnAFullDisk(t *testing.T) {
	t.Parallel()
	y := newTally()
	destination := rwserver.New(t, rwserver.Options{CountOnly: true, Observe: y.observe})
	destination.Always(rwserver.Step{Status: 503})
	data := t.TempDir()
	g := startGateway(t, "127.0.0.1:1", gatewaySettings{config: metricsTo(destination.URL()), data: data, under: smallDisk(t, data, "512k")})
	stop := y.flood(t, g.grpc)
	y.refusals(t, 100)
	text := page(t, g.telemetry)
	assert.Positive(t, metric(t, text, "otelcol_exporter_remotewrite_storage_failures"))
	assert.Positive(t, metric(t, text, "otelcol_exporter_enqueue_failed_metric_points"))
	destination.Always(rwserver.Step{})
	y.progress(t)
	stop()
	wait.Until(t, delivery, y.arrivedBut(0))
	assert.Zero(t, g.Stop(syscall.SIGTERM, drainTime))
	assert.NotContains(t, g.Output(), "panic:")
	y.sound(t)
}

// A queue of metrics that cannot be read is never mistaken for an empty one.
func TestGatewayStopsAtADamagedQueueOfMetrics(t *testing.T) {
	t.Parallel()
	y := newTally()
	destination := rwserver.New(t, rwserver.Options{CountOnly: true, Observe: y.observe})
	destination.Always(rwserver.Step{Status: 503})
	g := startGateway(t, "127.0.0.1:1", gatewaySettings{config: metricsTo(destination.URL())})
	stop := y.flood(t, g.grpc)
	y.progress(t)
	g.Kill()
	stop()
	files, err := filepath.Glob(filepath.Join(g.data, "exporter_remotewrite_*"))
	require.NoError(t, err)
	require.Len(t, files, 1)
	whole, err := os.ReadFile(files[0])
	require.NoError(t, err)
	damaged := bytes.Clone(whole)
	copy(damaged, bytes.Repeat([]byte{0xaa}, 2*os.Getpagesize()))
	require.NoError(t, os.WriteFile(files[0], damaged, 0o600))

	g.Restart()
	assert.NotZero(t, g.Wait(commandTimeout))
	assert.Contains(t, g.Output(), `"remotewrite" exporter`)
	left, err := os.ReadFile(files[0])
	require.NoError(t, err)
	assert.True(t, bytes.Equal(damaged, left), "it was changed")

	require.NoError(t, os.WriteFile(files[0], whole, 0o600))
	destination.Always(rwserver.Step{})
	g.Restart()
	g.ready()
	wait.Until(t, delivery, y.arrivedBut(0))
	assert.Zero(t, g.Stop(syscall.SIGTERM, drainTime))
	y.sound(t)
}
