// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/godwit-otel/godwit/e2e/rwserver"
	"github.com/godwit-otel/godwit/e2e/wait"
)

// metricsTo makes the gateway send metrics to a URL, with short retry intervals. The timeout is long, because a full
// queue is sent in large requests. Sampling of logs is off, so that every change is logged.
func metricsTo(url string) string {
	return fmt.Sprintf("exporters: {remotewrite: {endpoint: %q, timeout: 30s, batch: {timeout: 20ms}, "+
		"retry: {initial_interval: 50ms, max_interval: 200ms}, circuit_breaker: {open_for: 200ms}}}\n"+
		"service: {telemetry: {logs: {sampling: {enabled: false}}}}", url)
}

// Acknowledged metrics arrive although the disk was full in between. Others are refused with the reason, and the log
// says when that begins and ends.
func TestGatewayKeepsMetricsOnAFullDisk(t *testing.T) {
	t.Parallel()
	for _, disk := range fullDisks {
		t.Run(disk.name, func(t *testing.T) {
			t.Parallel()
			y := newTally()
			destination := rwserver.New(t, rwserver.Options{CountOnly: true, Observe: y.observe})
			destination.Always(rwserver.Step{Status: 503})
			data := t.TempDir()
			g := startGateway(t, "127.0.0.1:1", gatewaySettings{config: metricsTo(destination.URL()), data: data, under: disk.under(t, data, 256)})
			stop := y.flood(t, g.grpc)
			refusal := y.refusals(t, 100).Error()
			require.True(t, strings.Contains(refusal, disk.says) || strings.Contains(refusal, "run out of available space"), refusal)
			text := page(t, g.telemetry)
			assert.Positive(t, metric(t, text, "otelcol_exporter_remotewrite_storage_failures"))
			assert.Positive(t, metric(t, text, "otelcol_exporter_enqueue_failed_metric_points"))
			destination.Always(rwserver.Step{})
			y.progress(t)
			stop()
			wait.Until(t, delivery, y.arrivedBut(0))
			assert.Zero(t, g.Stop(syscall.SIGTERM, drainTime))
			assert.NotContains(t, g.Output(), "panic:")
			fails := strings.Count(g.Output(), "the storage of the queue fails;")
			assert.Positive(t, fails)
			assert.Equal(t, fails, strings.Count(g.Output(), "the storage of the queue works again"))
			t.Logf("%d samples acknowledged, %d arrived again, the storage failed %d times", y.acknowledged(), y.sound(t), fails)
		})
	}
}

// startDamaged starts a gateway with a queue of metrics that was damaged while closed. Its destination accepts data.
func startDamaged(t *testing.T, damage func([]byte)) (g *gateway, y *tally) {
	t.Helper()
	y = newTally()
	destination := rwserver.New(t, rwserver.Options{CountOnly: true, Observe: y.observe})
	destination.Always(rwserver.Step{Status: 503})
	g = startGateway(t, "127.0.0.1:1", gatewaySettings{config: metricsTo(destination.URL())})
	stop := y.flood(t, g.grpc)
	y.progress(t)
	g.Kill()
	stop()
	files, err := filepath.Glob(filepath.Join(g.data, "exporter_remotewrite", "*.log"))
	require.NoError(t, err)
	require.NotEmpty(t, files)
	content, err := os.ReadFile(files[0])
	require.NoError(t, err)
	damage(content)
	require.NoError(t, os.WriteFile(files[0], content, 0o600))
	destination.Always(rwserver.Step{})
	g.Restart()
	g.ready()
	return g, y
}

// A queue of metrics with a part missing is taken neither for an intact nor for an empty one: the gateway reports the
// unreadable bytes and the lost requests, and sends the rest.
func TestGatewaySendsWhatIsLeftOfItsMetrics(t *testing.T) {
	t.Parallel()
	wiped := 0
	g, y := startDamaged(t, func(b []byte) {
		wiped = len(b) / 3
		clear(b[:wiped])
	})
	old := y.mark()
	wait.Until(t, delivery, func() (bool, string) {
		left := metric(t, page(t, g.telemetry), "otelcol_exporter_queue_size")
		return left == 0, fmt.Sprintf("%v bytes are still queued", left)
	})
	text := page(t, g.telemetry)
	assert.GreaterOrEqual(t, metric(t, text, "otelcol_exporter_remotewrite_storage_damaged_bytes"), float64(wiped))
	assert.Positive(t, metricWith(t, text, "otelcol_exporter_remotewrite_dropped_blocks", `reason="corrupt"`))
	assert.Contains(t, g.Output(), "a part of the queue on disk cannot be read")
	lost, _ := y.missing(old)
	assert.Positive(t, lost)
	assert.Less(t, lost, y.acknowledged()/2)
	stop := y.flood(t, g.grpc)
	y.progress(t)
	stop()
	wait.Until(t, delivery, y.arrivedBut(lost))
	assert.Zero(t, g.Stop(syscall.SIGTERM, drainTime))
	y.sound(t)
}

// Damage inside the queue costs only the requests that it hits. They are counted; all others arrive, and so does new
// data.
func TestGatewayLosesWhatIsDamagedOfMetrics(t *testing.T) {
	t.Parallel()
	g, y := startDamaged(t, func(b []byte) {
		at := bytes.Index(b[len(b)/2:], []byte("gwb\x01")) // the start of a request
		require.Positive(t, at)
		b[len(b)/2+at+64] ^= 1
	})
	old := y.mark()
	wait.Until(t, delivery, func() (bool, string) {
		left := metric(t, page(t, g.telemetry), "otelcol_exporter_queue_size")
		return left == 0, fmt.Sprintf("%v bytes are still queued", left)
	})
	lost, _ := y.missing(old)
	stop := y.flood(t, g.grpc)
	y.progress(t)
	stop()
	wait.Until(t, delivery, y.arrivedBut(lost))
	text := page(t, g.telemetry)
	assert.Positive(t, metricWith(t, text, "otelcol_exporter_remotewrite_dropped_blocks", `reason="corrupt"`))
	assert.GreaterOrEqual(t, metricWith(t, text, "otelcol_exporter_remotewrite_dropped_items", `reason="corrupt"`), float64(max(1, lost)))
	assert.Equal(t, 1, strings.Count(g.Output(), "the queue dropped a block;"))
	assert.Zero(t, g.Stop(syscall.SIGTERM, drainTime))
	y.sound(t)
}
