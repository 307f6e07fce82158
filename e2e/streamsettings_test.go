// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

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
	"github.com/godwit-otel/godwit/e2e/otlpserver"
	"github.com/godwit-otel/godwit/e2e/wait"
)

// changing is an agent whose exporter's settings are in a separate file, which may change at each restart.
const changing = `
receivers: {otlp: {protocols: {grpc: {endpoint: %s}}}}
exporters: {otlpstream: "${file:%s}"}
extensions: {file_storage: {directory: data, create_directory: true}}
service:
  extensions: [health_check, file_storage]
  pipelines:
    traces: {receivers: [otlp], exporters: [otlpstream]}
    logs: {receivers: [otlp], exporters: [otlpstream]}
    metrics: {receivers: [otlp], exporters: [otlpstream]}
`

const changed = `
endpoint: %s
tls: {insecure: true}
retry_on_failure: {initial_interval: 50ms, max_interval: 500ms, max_elapsed_time: 0}
%s
`

// smallOnDisk is a small queue on disk, which is soon full.
const smallOnDisk = "sending_queue: {queue_size: 60, storage: file_storage}\n"

// The content of a full queue on disk arrives, whatever settings the exporter has after a restart.
func TestStreamQueueOutlivesChangesOfSettings(t *testing.T) {
	t.Parallel()
	const batched = "sending_queue: {queue_size: 60, storage: file_storage, batch: {flush_timeout: 50ms, min_size: 100, max_size: 200}}\n"
	for name, settings := range map[string][]string{
		"modes":        {"mode: unary\n" + smallOnDisk, "mode: auto\n" + smallOnDisk, "mode: unary\n" + smallOnDisk, "mode: stream\n" + smallOnDisk},
		"transports":   {smallOnDisk, "transport: websocket\n" + smallOnDisk, smallOnDisk, "transport: websocket\nmode: unary\n" + smallOnDisk},
		"compressions": {"compression: none\n" + smallOnDisk, "compression: gzip\n" + smallOnDisk, "compression: zstd\n" + smallOnDisk},
		"batches":      {smallOnDisk, batched, smallOnDisk, batched},
		"order":        {smallOnDisk, "ordered: true\n" + smallOnDisk, smallOnDisk},
		"tenants":      {smallOnDisk, "metadata_keys: [x-flock]\n" + smallOnDisk, smallOnDisk},
		"all at once":  {"mode: unary\n" + batched, "transport: websocket\nordered: true\n" + smallOnDisk, "compression: gzip\nmetadata_keys: [x-flock]\n" + batched},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			destination := otlpserver.New(t, otlpserver.Options{})
			server := startReceiving(t, destination.GRPCAddr())
			server.Kill() // so that the queue fills
			file := filepath.Join(t.TempDir(), "exporter.yaml")
			tell := func(settings string) {
				to := server.grpc
				if strings.HasPrefix(settings, "transport: websocket") {
					to = server.http
				}
				require.NoError(t, os.WriteFile(file, fmt.Appendf(nil, changed, to, settings), 0o600))
			}
			tell(settings[0])
			sender := &sending{grpc: freeport.Addr(t)}
			sender.collector = startDistribution(t, "godwit-agent", fmt.Sprintf(changing, sender.grpc, file))
			l := &ledger{padding: 100, withMetrics: true}
			for i := range settings {
				l.fill(t, dial(t, sender.grpc), 3, "queue is full")
				if i%2 == 0 {
					sender.Kill()
				} else {
					assert.Zero(t, sender.Stop(syscall.SIGTERM, drainTime))
				}
				if i+1 < len(settings) {
					tell(settings[i+1])
					server.Restart() // some of the queue may be sent
					server.ready()
				}
				sender.Restart()
				sender.ready()
				if i+1 < len(settings) {
					wait.Until(t, delivery, func() (bool, string) {
						return sender.counter(t, streamAcked) > 0, "nothing is delivered"
					})
					server.Kill()
				}
			}
			server.Restart()
			server.ready()
			wait.Until(t, delivery, l.arrived(destination))
			sender.settles(t)
			t.Logf("%d items acknowledged, %d arrived again", l.acknowledged(), l.repeated(t, destination))
		})
	}
}
