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

// metricsTo lets the gateway send metrics to a destination that it tries again soon, and which may take its time for an
// answer: a queue that has filled goes out in large requests. The log tells of every change.
func metricsTo(url string) string {
	return fmt.Sprintf("exporters: {remotewrite: {endpoint: %q, timeout: 30s, batch: {timeout: 20ms}, "+
		"retry: {initial_interval: 50ms, max_interval: 200ms}, circuit_breaker: {open_for: 200ms}}}\n"+
		"service: {telemetry: {logs: {sampling: {enabled: false}}}}", url)
}

// Metrics that were acknowledged arrive although the disk was full meanwhile. Others are refused, with the reason, and
// the log says when that begins and ends.
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

// startDamaged starts a gateway with a queue of metrics that was damaged while nobody had it open, and takes what comes.
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

// A queue of metrics of which a part is gone is never mistaken for a sound one, or an empty one: it is said how many bytes cannot be read
// and how many requests are lost, and the rest arrives.
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

// Damage to what is queued costs the requests that it hits. They are counted; all others arrive, and so does what is new.
func TestGatewayLosesWhatIsDamagedOfMetrics(t *testing.T) {
	t.Parallel()
	g, y := startDamaged(t, func(b []byte) {
		at := bytes.Index(b[len(b)/2:], []byte("gwb\x01")) // with which a request begins
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
