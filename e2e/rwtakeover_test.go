// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/godwit-otel/godwit/e2e/freeport"
	"github.com/godwit-otel/godwit/e2e/rwserver"
	"github.com/godwit-otel/godwit/e2e/wait"
)

// takenOver is the log message at the end of a takeover.
const takenOver = "the queue of file_storage is sent"

// A gateway with its queue of metrics in file_storage is upgraded, and killed meanwhile: what was queued arrives first,
// the file is deleted, and the queues of traces and logs stay.
func TestGatewayTakesOverItsQueueInFileStorage(t *testing.T) {
	t.Parallel()
	y := newTally()
	server := rwserver.New(t, rwserver.Options{CountOnly: true, Observe: y.observe})
	server.Always(rwserver.Step{Status: 503})
	data := filepath.Join(t.TempDir(), "data")
	before := startGateway(t, "127.0.0.1:1", gatewaySettings{
		data: data, config: strings.Replace(metricsTo(server.URL()), "batch: ", "queue: {storage: file_storage}, batch: ", 1),
	})
	stop := y.flood(t, before.grpc)
	y.progress(t)
	before.Kill()
	stop()
	file := filepath.Join(data, "exporter_remotewrite__remotewrite")
	require.FileExists(t, file)

	after := startGateway(t, "127.0.0.1:1", gatewaySettings{data: data, config: metricsTo(server.URL())})
	stop = y.flood(t, after.grpc)
	y.progress(t)
	after.Kill() // with data in both the old and the new files
	stop()
	server.Always(rwserver.Step{})
	after.Restart()
	after.ready()
	wait.Until(t, delivery, y.arrivedBut(0))
	after.WaitLog(delivery, takenOver)
	assert.NoFileExists(t, file)
	assert.Len(t, after.queueFiles(), 2, "of traces and logs")
	assert.Zero(t, after.Stop(syscall.SIGTERM, drainTime))
	t.Logf("%d samples acknowledged, %d arrived again", y.acknowledged(), y.sound(t))
}

// dropIn configures the drop-in exporter with contrib's keys.
const dropIn = `
receivers: {otlp: {protocols: {grpc: {endpoint: %s}}}}
exporters:
  prometheusremotewrite:
    endpoint: %s
    timeout: 30s
    retry_on_failure: {initial_interval: 50ms, max_interval: 200ms}
    target_info: {enabled: false}
    disable_scope_info: true
    wal: {directory: %q}
service: {pipelines: {metrics: {receivers: [otlp], exporters: [prometheusremotewrite]}}}
`

// What an earlier version of the drop-in queued in a file of `wal.directory` arrives first. That file was written by
// file_storage, as for the remotewrite exporter, which writes it here.
func TestTheDropInTakesOverItsWAL(t *testing.T) {
	t.Parallel()
	y := newTally()
	server := rwserver.New(t, rwserver.Options{CountOnly: true, Observe: y.observe})
	server.Always(rwserver.Step{Status: 503})
	addr, wal := freeport.Addr(t), filepath.Join(t.TempDir(), "wal")
	before := startCollector(t, fmt.Sprintf(impatient, server.URL(), addr), patient, fmt.Sprintf(`
exporters: {remotewrite: {batch: {timeout: 20ms}, queue: {storage: file_storage, size: 1000000000}, target_info: {enabled: false}}}
extensions: {file_storage: {directory: %q, create_directory: true, fsync: true}}
service: {extensions: [health_check, file_storage]}
`, wal))
	stop := y.flood(t, addr)
	y.progress(t)
	before.Kill()
	stop()
	file := filepath.Join(wal, "exporter_prometheusremotewrite__remotewrite")
	require.NoError(t, os.Rename(filepath.Join(wal, "exporter_remotewrite__remotewrite"), file))
	old := y.mark()

	after := startDistribution(t, "godwit", fmt.Sprintf(dropIn, addr, server.URL(), wal))
	stop = y.flood(t, addr)
	y.progress(t)
	after.Kill()
	stop()
	missing, _ := y.missing(old)
	assert.Positive(t, missing, "nothing was in the file")
	server.Always(rwserver.Step{})
	after.Restart()
	after.ready()
	wait.Until(t, delivery, y.arrivedBut(0))
	after.WaitLog(delivery, takenOver)
	assert.NoFileExists(t, file)
	assert.Zero(t, after.Stop(syscall.SIGTERM, drainTime))
	t.Logf("%d samples acknowledged, %d arrived again", y.acknowledged(), y.sound(t))
}
